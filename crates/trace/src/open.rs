//! Finds out what lies at a path, by content, and opens it.

use std::fs;
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};

use crate::ctf_trace::{CtfTrace, Place};
use crate::{OpenOptions, Root, Source, Symbols, Trace};

/// LTTng's deepest layout is `ust/uid/1000/64-bit`; snapshots add a directory or two.
const DEPTH_MAX: u32 = 8;
/// Where a recording keeps the kernel's symbols.
const KALLSYMS: &str = "rtscope/kallsyms";

impl Trace {
    /// Opens the trace at `path`: a directory with `metadata`, or a root above such directories,
    /// which are then read as one trace.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nothing is there or what is there is no trace;
    /// [`ErrorKind::Corrupt`] when the metadata cannot be understood; otherwise what the operating
    /// system says.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace> {
        Trace::open_with(path, &OpenOptions::default())
    }

    /// Opens the trace at `path` in another way.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Trace> {
        Trace::open_all(&[Root::from(path.as_ref())], options)
    }

    /// Opens several traces as one, on the clock of the first kernel trace among them, placed
    /// beside each other by their wall clocks.
    ///
    /// # Errors
    /// As [`Trace::open`]; [`ErrorKind::InvalidInput`] when there is no root.
    pub fn open_all(roots: &[Root], options: &OpenOptions) -> Result<Trace> {
        let mut places = Vec::new();
        for root in roots {
            let prefix = match roots {
                [_] => String::new(),
                _ => format!("{}/", root.path.display()),
            };
            let dirs = trace_dirs(&root.path, prefix)?;
            places.extend(dirs.into_iter().map(|(dir, prefix)| Place {
                dir,
                prefix,
                clock_offset: root.clock_offset,
            }));
        }
        if places.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "no trace was given")
                .mend("give the directory that 'rtscope record -o' or a snapshot wrote"));
        }
        let ctf = CtfTrace::open(places, options)?;
        let (info, classes) = (ctf.info(), ctf.classes());
        let symbols = roots.iter().map(|root| symbols(&root.path));
        Ok(Trace {
            info,
            classes,
            symbols: symbols
                .into_iter()
                .find(|symbols| !symbols.is_empty())
                .unwrap_or_default(),
            source: Source::Ctf(ctf),
        })
    }
}

/// The directories with `metadata` at a path or below, and how they are called from there.
fn trace_dirs(path: &Path, prefix: String) -> Result<Vec<(PathBuf, String)>> {
    let status = fs::metadata(path).map_err(|cause| {
        Error::io(format!("cannot open the trace {}", path.display()), cause)
            .mend("give the directory that 'rtscope record -o' or a snapshot wrote")
    })?;
    if !status.is_dir() {
        return match path.file_name().is_some_and(|name| name == "metadata") {
            true => trace_dirs(path.parent().unwrap_or(path), prefix),
            false => Err(no_trace(path, "a file".to_owned())),
        };
    }
    let mut dirs = Vec::new();
    let mut entries = 0;
    find_traces(path, prefix, 0, &mut dirs, &mut entries)?;
    if dirs.is_empty() {
        let found = match entries {
            0 => "an empty directory".to_owned(),
            _ => format!("{entries} files and directories, none named 'metadata'"),
        };
        return Err(no_trace(path, found));
    }
    Ok(dirs)
}

fn no_trace(path: &Path, found: String) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("{} is no trace", path.display()),
    )
    .found(found)
    .mend("give the directory that 'rtscope record -o' or a snapshot wrote")
}

/// Directories with a file `metadata`, at `dir` or below, in the order of their names.
fn find_traces(
    dir: &Path,
    prefix: String,
    depth: u32,
    found: &mut Vec<(PathBuf, String)>,
    entries: &mut u64,
) -> Result<()> {
    if dir.join("metadata").is_file() {
        found.push((dir.to_owned(), prefix));
        return Ok(());
    }
    let unreadable = |cause| Error::io(format!("cannot read {}", dir.display()), cause);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        *entries += 1;
        // Links are not followed: they may lead around in a circle.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.push(entry.file_name());
        }
    }
    names.sort();
    if depth < DEPTH_MAX {
        for name in names {
            let prefix = format!("{prefix}{}/", name.to_string_lossy());
            find_traces(&dir.join(name), prefix, depth + 1, found, entries)?;
        }
    }
    Ok(())
}

/// The kernel's symbols, kept below the root or beside the part that was opened; empty when the
/// trace has none.
fn symbols(path: &Path) -> Symbols {
    let beside = path.parent().map(|root| root.join(KALLSYMS));
    let places = [Some(path.join(KALLSYMS)), beside];
    let text = places
        .into_iter()
        .flatten()
        .find_map(|place| fs::read(place).ok());
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Symbols::from_kallsyms(&text.unwrap_or_default())
}
