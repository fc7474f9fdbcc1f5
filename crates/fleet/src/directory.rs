//! A folder as the target: a disk, a mount, or what a synchroniser takes to an object store.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};

use crate::push::Target;
use crate::tables::{MARK, mark as mark_text};

/// A folder. It has to be there: a mount that is away is an empty folder, and what would be written
/// below it is not in the fleet.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The folder at this path.
    pub fn new(root: &Path) -> Directory {
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        Directory { root }
    }

    fn failed(&self, path: &Path, cause: std::io::Error) -> Error {
        Error::io(format!("cannot write {}", path.display()), cause)
            .fix("make room or give rights there; what is in the store waits for it")
    }
}

impl Target for Directory {
    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn meet(&mut self, known: bool) -> Result<()> {
        let mark = self.root.join(MARK);
        let away = |what: &str, fix: &str| {
            let found = self.root.display().to_string();
            Err(Error::new(ErrorKind::NotFound, what).found(found).fix(fix))
        };
        if !self.root.is_dir() {
            return away("the fleet's folder is not there", "make it, or mount it");
        }
        if mark.exists() {
            return Ok(());
        }
        if known {
            return away(
                "the fleet's folder is another one than before: it has no rtscope-fleet.json",
                "mount it; if it was emptied on purpose: rtscope monitor push --to DIR --again",
            );
        }
        self.put(MARK, mark_text().as_bytes())
    }

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        // Readers leave names with a point out; one that was cut short is written over.
        let partial = path.with_file_name(format!(".{file_name}.partial"));
        let write = || {
            fs::create_dir_all(folder)?;
            let mut file = File::create(&partial)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&partial, &path)
        };
        write().map_err(|cause| {
            let _ = fs::remove_file(&partial);
            self.failed(&path, cause)
        })
    }

    fn list(&mut self, folder: &str) -> Result<Vec<String>> {
        let path = self.root.join(folder);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => {
                let what = format!("cannot read {}", path.display());
                return Err(Error::io(what, cause).fix("give the monitor rights to read it"));
            }
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        Ok(names
            .map(|name| name.to_string_lossy().into_owned())
            .collect())
    }
}
