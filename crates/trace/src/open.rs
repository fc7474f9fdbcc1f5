//! Finds out what lies at a path, by content, and opens it.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use event::{Error, ErrorKind, EventClass, Result};

use crate::ctf_trace::{CtfTrace, Place, Writer};
use crate::ftrace_trace::{Base, FtracePart, FtraceTrace};
use crate::recorded::Recorded;
use crate::{OpenOptions, Root, Source, Symbols, Trace, TraceInfo};

/// LTTng's deepest layout is `ust/uid/1000/64-bit`; snapshots add a directory or two.
const DEPTH_MAX: u32 = 8;
/// Below the root of a trace while it is written (`docs/format/live.md`); a trace that is whole has
/// none.
const WRITTEN_UNTIL: &str = ".written-until";
/// In a recording whose pages were kept as they are (`record --raw`).
const RAW: &str = "raw/recording.json";
/// Where a recording keeps the kernel's symbols.
const KALLSYMS: &str = "rtscope/kallsyms";

impl Trace {
    /// Opens the trace at `path`: a directory with `metadata` (CTF), one with raw pages of ftrace,
    /// or a root above such directories, which are then read as one trace; a trace.dat; or
    /// ftrace's text.
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
        let (mut places, mut recordings) = (Vec::new(), Vec::new());
        for (number, root) in roots.iter().enumerate() {
            let shown_root = match roots {
                [_] => String::new(),
                _ => format!("{}/", root.path.display()),
            };
            refuse_raw(&root.path)?;
            let writer = match root.path.join(WRITTEN_UNTIL).is_file() {
                _ if options.live => Writer::Active,
                true => Writer::Killed,
                false => Writer::Finished,
            };
            for found in traces(&root.path, String::new())? {
                match found {
                    Found::Ctf(dir, prefix) => places.push(Place {
                        dir,
                        root: number,
                        prefix: format!("{shown_root}{prefix}"),
                        below_root: prefix.trim_end_matches('/').to_owned(),
                        clock_offset: root.clock_offset,
                        writer,
                    }),
                    Found::Ftrace(recording, prefix) => recordings.push(FtracePart::new(
                        recording,
                        format!("{shown_root}{prefix}"),
                        root.clock_offset,
                        options,
                    )),
                }
            }
        }
        let source = source(places, recordings, options)?;
        let (info, classes) = source.facts();
        // What is written still has no end yet.
        let silences = match options.live {
            true => OnceLock::from(Vec::new()),
            false => OnceLock::new(),
        };
        Ok(Trace {
            info,
            classes,
            symbols: OnceLock::new(),
            met: OnceLock::new(),
            silences,
            roots: roots.iter().map(|root| root.path.clone()).collect(),
            source,
        })
    }
}

impl Source {
    /// What is known of all traces together, and their classes, numbered through.
    fn facts(&self) -> (TraceInfo, Arc<[EventClass]>) {
        match (self.ctf(), self.ftrace()) {
            (Some(ctf), None) => (ctf.info(), ctf.classes()),
            (None, Some(ftrace)) => (ftrace.info(), ftrace.classes().into()),
            (Some(ctf), Some(ftrace)) => {
                let (mut info, mut classes) = (ctf.info(), ctf.classes().to_vec());
                info.cpus.extend(ftrace.cpus());
                info.cpus.sort_unstable();
                info.cpus.dedup();
                classes.extend(ftrace.classes());
                (info, classes.into())
            }
            (None, None) => (TraceInfo::default(), Arc::default()),
        }
    }
}

fn source(
    places: Vec<Place>,
    recordings: Vec<FtracePart>,
    options: &OpenOptions,
) -> Result<Source> {
    if places.is_empty() && recordings.is_empty() {
        return Err(Error::new(ErrorKind::InvalidInput, "no trace was given")
            .fix("give the directory that 'rtscope record -o' or a snapshot wrote"));
    }
    if places.is_empty() {
        return Ok(Source::Ftrace(FtraceTrace::new(recordings, None)));
    }
    let ctf = CtfTrace::open(places, options)?;
    if recordings.is_empty() {
        return Ok(Source::Ctf(ctf));
    }
    let base = Base {
        wall_offset_ns: ctf.wall_offset_ns(),
        first_class: ctf.classes().len() as u32,
    };
    let ftrace = FtraceTrace::new(recordings, Some(base));
    Ok(Source::Both(ctf, ftrace))
}

/// What was found, and how it is called from where the search began.
enum Found {
    /// A directory with `metadata`.
    Ctf(PathBuf, String),
    Ftrace(Recorded, String),
}

/// The traces at a path or below it.
fn traces(path: &Path, prefix: String) -> Result<Vec<Found>> {
    let status = fs::metadata(path).map_err(|cause| {
        Error::io(format!("cannot open the trace {}", path.display()), cause)
            .fix("give the directory that 'rtscope record -o' or a snapshot wrote")
    })?;
    if !status.is_dir() {
        if let Some(opened) = Recorded::open_file(path)? {
            return Ok(vec![Found::Ftrace(opened, prefix)]);
        }
        return match path.file_name().is_some_and(|name| name == "metadata") {
            true => traces(path.parent().unwrap_or(path), prefix),
            false => Err(packed(path)
                .unwrap_or_else(|| no_trace(path, "a file of no format that is known".to_owned()))),
        };
    }
    let mut found = Vec::new();
    let mut search = Search::default();
    search.find(path, prefix, 0, &mut found)?;
    let entries = search.entries;
    if found.is_empty() {
        let found = match entries {
            0 => "an empty directory".to_owned(),
            _ => format!("{entries} files and directories, none named 'metadata' or 'per_cpu'"),
        };
        return Err(no_trace(path, found));
    }
    Ok(found)
}

/// How programs that pack a file begin it, and who unpacks it.
const PACKED: [(&[u8], &str, &str); 5] = [
    (&[0x1f, 0x8b], "gzip", "gunzip -k"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "unxz -k"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
    (b"BZh", "bzip2", "bunzip2 -k"),
    (b"PK\x03\x04", "zip", "unzip"),
];

/// Somebody sent a trace in a file that is packed.
fn packed(path: &Path) -> Option<Error> {
    let mut begin = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(8).read_to_end(&mut begin).ok()?;
    let (_, by, command) = PACKED
        .into_iter()
        .find(|(magic, ..)| begin.starts_with(magic))?;
    let fix = format!("{command} {}, then open what comes out", path.display());
    Some(no_trace(path, format!("a file that {by} packed")).fix(fix))
}

fn no_trace(path: &Path, found: String) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("{} is no trace", path.display()),
    )
    .found(found)
    .fix(
        "give the directory that 'rtscope record -o' or a snapshot wrote, another one in CTF, or a \
         file: trace.dat, the text of ftrace or of 'perf script', or Perfetto's",
    )
}

/// A search for traces. Links are followed, each directory is entered once: they may lead around in
/// a circle.
#[derive(Default)]
struct Search {
    /// Files and directories that were met.
    entries: u64,
    /// Device and number of the directories that were entered.
    entered: HashSet<(u64, u64)>,
}

impl Search {
    /// CTF traces and recordings of ftrace, at `dir` or below, in the order of their names.
    fn find(
        &mut self,
        dir: &Path,
        prefix: String,
        depth: u32,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let status = fs::metadata(dir);
        if let Ok(status) = status
            && !self.entered.insert((status.dev(), status.ino()))
        {
            return Ok(());
        }
        if dir.join("metadata").is_file() {
            found.push(Found::Ctf(dir.to_owned(), prefix));
            return Ok(());
        }
        if ftrace::is_page_directory(dir) {
            found.push(Found::Ftrace(Recorded::open_directory(dir)?, prefix));
            return Ok(());
        }
        let unreadable = |cause| Error::io(format!("cannot read {}", dir.display()), cause);
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            self.entries += 1;
            if entry.path().is_dir() {
                names.push(entry.file_name());
            }
        }
        names.sort();
        if depth < DEPTH_MAX {
            for name in names {
                let prefix = format!("{prefix}{}/", name.to_string_lossy());
                self.find(&dir.join(name), prefix, depth + 1, found)?;
            }
        }
        Ok(())
    }
}

/// What is a trace only once its pages are converted is none yet.
fn refuse_raw(path: &Path) -> Result<()> {
    if !path.join(RAW).is_file() {
        return Ok(());
    }
    let what = format!("{} is a raw recording, no trace yet", path.display());
    Err(Error::new(ErrorKind::Unsupported, what)
        .found(RAW)
        .fix(format!(
            "rtscope convert {} --to ctf -o NEW",
            path.display()
        )))
}

/// The kernel's symbols, kept below the root or beside the part that was opened; empty when the
/// trace has none.
pub(crate) fn symbols(path: &Path) -> Symbols {
    let beside = path.parent().map(|root| root.join(KALLSYMS));
    let places = [Some(path.join(KALLSYMS)), beside];
    let text = places
        .into_iter()
        .flatten()
        .find_map(|place| fs::read(place).ok());
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Symbols::from_kallsyms(&text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_file_is_refused_with_the_command_that_unpacks_it() {
        let check = |begin: &[u8], expect: Option<&str>| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("t");
            fs::write(&path, begin).expect("written");
            let error = Trace::open(&path).err().expect("no trace");
            let fix = error.fixed_by().expect("a fix").to_owned();
            let command = fix.split_once(' ').map(|(command, _)| command);
            assert_eq!(command.filter(|one| *one != "give"), expect, "{fix}");
        };
        check(b"\x1f\x8b\x08\0\0\0\0\0\0\x03", Some("gunzip"));
        check(b"\xfd7zXZ\0\0\x04", Some("unxz"));
        check(b"\x28\xb5\x2f\xfd\x04", Some("unzstd"));
        check(b"PK\x03\x04", Some("unzip"));
        check(b"\x1f", None);
        check(b"", None);
    }
}
