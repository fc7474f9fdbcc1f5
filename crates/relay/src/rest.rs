//! What a spool still has of a trace that did not get through: made a trace of its own.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ctf::writer::write_error;
use event::{Error, Result};

use crate::book::Archive;

/// Below the root of a trace in a spool.
const MARK: &str = ".spool";
/// Traces lie no deeper below the root of a recording: `ust/pid/NAME`.
const DEPTH_MAX: u32 = 4;

/// What the other side did not get of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Where it is; none when it could not be kept.
    pub path: Option<PathBuf>,
    /// The events that were not acknowledged; the other side may have some of them.
    pub events: u64,
}

/// Marks a folder as a spool.
pub(crate) fn mark_spool(root: &Path) -> Result<()> {
    let path = root.join(MARK);
    fs::write(&path, "").map_err(|cause| write_error(&path, cause))
}

/// Whether a trace is in a spool: the packets that were delivered are gone from it.
pub fn is_spool(root: &Path) -> bool {
    root.join(MARK).is_file()
}

/// Makes traces of what was not delivered; folders without any go.
pub(crate) fn keep(archives: Vec<Archive>) -> Vec<Rest> {
    let mut kept = Vec::new();
    for archive in archives {
        let events = archive.streams.iter().map(|stream| stream.waiting_events());
        let events: u64 = events.sum();
        let Some(folder) = archive.folder.filter(|_| events > 0) else {
            continue;
        };
        let path = cut_delivered(folder.path()).and_then(|()| folder.commit());
        let path = path.ok();
        kept.push(Rest { path, events });
    }
    kept
}

/// Cuts what was delivered off the files of a trace that was in a spool: it is a trace then of what
/// was not.
///
/// # Errors
/// What the operating system says of its files.
pub fn cut_delivered(root: &Path) -> Result<()> {
    cut_below(root, 0)?;
    // Without it the trace is one as any other.
    let mark = root.join(MARK);
    match fs::remove_file(&mark) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(write_error(&mark, cause))
        }
        _ => Ok(()),
    }
}

fn cut_below(folder: &Path, depth: u32) -> Result<()> {
    let unread = |cause| Error::io(format!("cannot read {}", folder.display()), cause);
    let is_trace = folder.join("metadata").is_file();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let kind = entry.file_type().map_err(unread)?;
        let path = entry.path();
        if kind.is_dir() && is_trace && entry.file_name() == "index" {
            // It tells of packets where they were.
            fs::remove_dir_all(&path).map_err(|cause| write_error(&path, cause))?;
        } else if kind.is_dir() && depth < DEPTH_MAX {
            cut_below(&path, depth + 1)?;
        } else if kind.is_file() && is_trace && entry.file_name() != "metadata" {
            cut(&path).map_err(|cause| write_error(&path, cause))?;
        }
    }
    Ok(())
}

/// Removes the zeros at the begin of a file, all of it when there is nothing else: no packet begins
/// with one.
fn cut(path: &Path) -> std::io::Result<()> {
    let mut file = File::open(path)?;
    let data = match rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0)) {
        Ok(data) => data,
        Err(rustix::io::Errno::NXIO) => return fs::remove_file(path),
        // Where holes cannot be found, zeros are read.
        Err(_) => 0,
    };
    file.seek(SeekFrom::Start(data))?;
    let zeros = BufReader::with_capacity(64 << 10, &file).bytes();
    let zeros = zeros.take_while(|byte| byte.as_ref().is_ok_and(|byte| *byte == 0));
    let begin = data + zeros.count() as u64;
    let size = file.metadata()?.len();
    if begin == 0 {
        return Ok(());
    }
    if begin >= size {
        return fs::remove_file(path);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    file.seek(SeekFrom::Start(begin))?;
    std::io::copy(&mut file, &mut File::create(&new)?)?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn what_was_delivered_is_cut_off_and_the_rest_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("kernel");
        fs::create_dir_all(trace.join("index")).expect("a folder");
        fs::write(trace.join("metadata"), "\0\0not a stream").expect("written");
        mark_spool(folder.path()).expect("marked");
        let write = |name: &str, zeros: u64, rest: &[u8]| {
            let file = File::create(trace.join(name)).expect("a file");
            file.set_len(zeros + rest.len() as u64).expect("a hole");
            file.write_all_at(rest, zeros).expect("written");
        };
        write("all", 0, b"packet\0\0");
        write("some", 100_000, b"packet\0\0");
        write("few", 17, b"packet");
        write("none", 50_000, b"");
        assert!(is_spool(folder.path()));
        cut_delivered(folder.path()).expect("cut");
        let check = |name: &str, expect: Option<&[u8]>| {
            let found = fs::read(trace.join(name)).ok();
            assert_eq!(found.as_deref(), expect, "{name}");
        };
        check("all", Some(b"packet\0\0"));
        check("some", Some(b"packet\0\0"));
        check("few", Some(b"packet"));
        check("none", None);
        check("metadata", Some(b"\0\0not a stream"));
        assert!(!is_spool(folder.path()) && !trace.join("index").exists());
    }
}
