//! Real traces of other tracers, which are no part of the project: RTSCOPE_CORPUS names their
//! directory. Archives among them are unpacked into a folder of the test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A directory of traces.
pub struct Corpus {
    root: PathBuf,
    scratch: TempDir,
}

impl Corpus {
    /// The corpus of this machine; where it has none, `test` is listed as skipped.
    ///
    /// # Panics
    /// When there is no room for a temporary folder.
    pub fn find(test: &str) -> Option<Corpus> {
        let Some(root) = std::env::var_os("RTSCOPE_CORPUS") else {
            crate::skip(test, "RTSCOPE_CORPUS is not set");
            return None;
        };
        Some(Corpus {
            root: root.into(),
            scratch: tempfile::tempdir().expect("a temporary folder"),
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Unpacks an archive (`DIRECTORY/NAME.tar.xz`, from the corpus on) and returns where its
    /// content lies: it holds one directory, `NAME`.
    ///
    /// # Panics
    /// When it cannot be unpacked.
    pub fn unpack(&self, archive: &str) -> PathBuf {
        let path = self.root.join(archive);
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&path).arg("-C").arg(self.scratch.path());
        let done = tar.status().is_ok_and(|status| status.success());
        assert!(done, "cannot unpack {}", path.display());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.scratch.path().join(name.trim_end_matches(".tar.xz"))
    }

    /// Every CTF trace, those in archives too, with its name: the path from the corpus on.
    ///
    /// # Panics
    /// When an archive cannot be unpacked.
    pub fn ctf_traces(&self) -> Vec<(String, PathBuf)> {
        let mut archives = Vec::new();
        let mut dirs = Vec::new();
        search(&self.root, &mut dirs, &mut archives);
        for archive in &archives {
            self.unpack(&name_below(&self.root, archive));
        }
        let named = |root: &Path, dirs: Vec<PathBuf>| -> Vec<(String, PathBuf)> {
            let named = dirs.into_iter().map(|dir| (name_below(root, &dir), dir));
            named.collect()
        };
        let mut traces = named(&self.root, dirs);
        let mut unpacked = Vec::new();
        search(self.scratch.path(), &mut unpacked, &mut Vec::new());
        traces.extend(named(self.scratch.path(), unpacked));
        traces
    }
}

fn name_below(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.display().to_string()
}

/// Directories with `metadata` and archives, at `dir` or below, in the order of their names.
fn search(dir: &Path, traces: &mut Vec<PathBuf>, archives: &mut Vec<PathBuf>) {
    if dir.join("metadata").is_file() {
        return traces.push(dir.to_owned());
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            search(&path, traces, archives);
        } else if path.to_string_lossy().ends_with(".tar.xz") {
            archives.push(path);
        }
    }
}
