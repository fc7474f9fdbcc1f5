//! The kernel's functions beside a trace, in `ROOT/rtscope/kallsyms`. They are five megabytes: the
//! snapshots of one watch share one file, which is written before anybody waits for a snapshot.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use event::{Error, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

/// The functions of the running kernel, as `/proc/kallsyms` lists them; empty where it hides
/// their addresses.
pub fn kernel_functions() -> String {
    let mut functions = String::new();
    let Ok(file) = File::open("/proc/kallsyms") else {
        return functions;
    };
    for line in BufReader::with_capacity(1 << 20, file).lines() {
        let Ok(line) = line else { break };
        let kind = line.split_ascii_whitespace().nth(1);
        if line.starts_with("0000000000000000 ") || !matches!(kind, Some("t" | "T" | "w" | "W")) {
            continue;
        }
        functions.push_str(&line);
        functions.push('\n');
    }
    functions
}

/// A file of functions that has no name yet: nothing is left of it when no trace ever links it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedFunctions(Option<Arc<File>>);

impl SharedFunctions {
    /// Writes `functions` where traces below `output` can link them. A file system that knows no
    /// such files is no error: each trace then has a file of its own.
    pub(crate) fn write(output: &Path, functions: &str) -> Self {
        let mut places = output.ancestors().map(|path| match path.as_os_str() {
            // The last ancestor of a relative name.
            name if name.is_empty() => Path::new("."),
            _ => path,
        });
        let Some(place) = places.find(|path| path.is_dir()) else {
            return SharedFunctions::default();
        };
        // Read-only: what one trace changes, all would see.
        let mode = Mode::from_raw_mode(0o444);
        let opened = open(
            place,
            OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC,
            mode,
        );
        let Ok(fd) = opened else {
            return SharedFunctions::default();
        };
        let mut file = File::from(fd);
        let written = file.write_all(functions.as_bytes());
        SharedFunctions(written.is_ok().then(|| Arc::new(file)))
    }

    fn link(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|file| {
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW).is_ok()
        })
    }
}

/// Puts `functions` into the trace in `root`, by a link where `shared` allows one; nothing when
/// there are none.
///
/// # Errors
/// What the operating system says, with the file's name.
pub(crate) fn write_functions(
    root: &Path,
    functions: &str,
    shared: &SharedFunctions,
) -> Result<()> {
    if functions.is_empty() {
        return Ok(());
    }
    let directory = root.join("rtscope");
    let path = directory.join("kallsyms");
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(&directory)?;
        if shared.link(&path) {
            return Ok(());
        }
        fs::write(&path, functions)
    };
    write().map_err(|error| Error::io(format!("cannot write {}", path.display()), error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn traces_share_one_file_and_have_their_own_where_they_cannot() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("not/yet/there");
        let shared = SharedFunctions::write(&output, "f\n");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        let check = |name: &str, shared: &SharedFunctions| {
            let root = output.join(name);
            write_functions(&root, "f\n", shared).expect("it is written");
            let path = root.join("rtscope/kallsyms");
            assert_eq!(fs::read_to_string(&path).expect("a file"), "f\n");
            fs::metadata(path).expect("a file").ino()
        };
        let (first, second) = (check("1", &shared), check("2", &shared));
        // The folder's file system may know no files without a name.
        assert_eq!(first == second, shared.0.is_some());
        assert_ne!(check("3", &SharedFunctions::default()), first);
        // Removed everywhere, the shared file cannot be linked again.
        fs::remove_dir_all(&output).expect("removed");
        check("4", &shared);
    }

    #[test]
    fn a_trace_without_functions_has_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        write_functions(folder.path(), "", &SharedFunctions::default()).expect("nothing to do");
        assert!(!folder.path().join("rtscope").exists());
    }
}
