//! Writes the archive from which a kernel fills its first file system (cpio, format `newc`).

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;

/// An archive that grows file by file; folders are made as files need them.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inodes: u32,
    paths: BTreeSet<String>,
}

impl Archive {
    /// Adds the folder `path` and those above it.
    pub fn folder(&mut self, path: &str) -> Result<()> {
        for (at, _) in path.match_indices('/').chain([(path.len(), "")]) {
            if !self.paths.contains(&path[..at]) {
                self.entry(&path[..at], S_IFDIR | 0o755, &[])?;
            }
        }
        Ok(())
    }

    /// Adds a file; one that is there already stays as it is.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        self.above(path)?;
        if self.paths.contains(path) {
            return Ok(());
        }
        self.entry(path, S_IFREG | mode, content)
    }

    /// Adds a copy of the host's file `from`, links followed, mode 755.
    pub fn copy(&mut self, path: &str, from: &Path) -> Result<()> {
        let content = std::fs::read(from);
        let content = content.with_context(|| format!("cannot read {}", from.display()))?;
        self.file(path, 0o755, &content)
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> Result<()> {
        self.above(path)?;
        self.entry(path, S_IFLNK | 0o777, target.as_bytes())
    }

    /// Whether `path` was added.
    pub fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Ends the archive.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.entry("TRAILER!!!", 0, &[])?;
        Ok(self.bytes)
    }

    fn above(&mut self, path: &str) -> Result<()> {
        match path.rsplit_once('/') {
            Some((folder, _)) => self.folder(folder),
            None => Ok(()),
        }
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        ensure!(
            !path.is_empty() && !path.starts_with('/'),
            "not a path below the root: '{path}'"
        );
        let size = u32::try_from(content.len()).context("a file of 4 GiB or more")?;
        self.inodes += 1;
        let name_size = u32::try_from(path.len() + 1).context("a path of 4 GiB or more")?;
        // inode, mode, uid, gid, links, mtime, size, device and its number twice, name, checksum
        let fields = [
            self.inodes,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
        self.paths.insert(path.to_owned());
        Ok(())
    }

    /// Headers and contents begin at multiples of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_lists_its_folders_before_their_files() {
        let mut archive = Archive::default();
        archive.file("bin/sh", 0o755, b"abc").unwrap();
        archive.link("bin/ls", "sh").unwrap();
        archive.file("bin/sh", 0o755, b"again").unwrap();
        archive.folder("out").unwrap();
        assert!(archive.has("bin") && archive.has("bin/sh") && !archive.has("b"));
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let names: Vec<String> = names(&bytes);
        assert_eq!(names, ["bin", "bin/sh", "bin/ls", "out", "TRAILER!!!"]);
    }

    /// The entries' names, read by the format's own rules.
    fn names(mut bytes: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        while bytes.len() >= 110 {
            let field = |n: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap();
                usize::from_str_radix(text, 16).unwrap()
            };
            let (size, name_size) = (field(6), field(11));
            names.push(String::from_utf8_lossy(&bytes[110..109 + name_size]).into_owned());
            let content = (110 + name_size).next_multiple_of(4);
            bytes = &bytes[(content + size).next_multiple_of(4)..];
        }
        names
    }

    #[test]
    fn a_path_from_the_root_is_refused() {
        assert!(Archive::default().file("/etc/passwd", 0o644, b"").is_err());
    }
}
