//! Writing a trace call by call: declare streams, events and fields, then write events; the trace
//! appears whole when it is closed, or not at all.

mod declared;
mod given;
mod spelling;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ctf::writer::{Dialect, PayloadWriter, StagedDir, StreamWriter, TraceWriter};
use event::{Cpu, Error, ErrorKind, Instant, Result};

use declared::Declared;

pub use given::Given;

/// Writes one trace.
pub struct Writer {
    staged: StagedDir,
    declared: Declared,
    /// Once an event was written.
    open: Option<Open>,
    payload: PayloadWriter,
}

struct Open {
    trace: TraceWriter,
    /// By stream and CPU.
    files: BTreeMap<(u32, u32), StreamWriter>,
}

impl Writer {
    /// Begins a trace that will appear at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when something is there; otherwise what the operating system
    /// says.
    pub fn create(path: &Path) -> Result<Writer> {
        Ok(Writer {
            staged: StagedDir::create(path)?,
            declared: Declared::default(),
            open: None,
            payload: PayloadWriter::new(),
        })
    }

    /// What may still be declared; all of it must be before the first event.
    fn declared(&mut self) -> Result<&mut Declared> {
        if self.open.is_some() {
            let what = "a trace's streams, events and fields are declared before its first event";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .fix("declare everything, then write events"));
        }
        Ok(&mut self.declared)
    }

    /// Adds to what the trace says of its origin: `hostname`, `tracer_name`, …
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] after the first event.
    pub fn environment(&mut self, key: &str, value: &str) -> Result<()> {
        self.declared()?.environment(key, value);
        Ok(())
    }

    /// Sets the wall clock (nanoseconds since 1970, UTC) at the trace's time zero.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] after the first event.
    pub fn wall_offset_ns(&mut self, offset_ns: i64) -> Result<()> {
        self.declared()?.wall_offset_ns = offset_ns;
        Ok(())
    }

    /// Chooses what is written: `ctf1` (CTF 1.8, which every reader knows, and what is written
    /// without this) or `ctf2`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] after the first event, or for another word.
    pub fn format(&mut self, word: &str) -> Result<()> {
        self.declared()?.dialect = match word {
            "ctf1" => Dialect::Ctf18,
            "ctf2" => Dialect::Ctf2,
            _ => {
                let what = "a trace is written as ctf1 or as ctf2";
                return Err(Error::new(ErrorKind::InvalidInput, what)
                    .found(format!("'{word}'"))
                    .fix("leave the format out for CTF 1.8, or say ctf2"));
            }
        };
        Ok(())
    }

    /// Declares a stream; its files are called after it. Returns its number.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] after the first event, or for a name that is no file's.
    pub fn stream(&mut self, name: &str) -> Result<u32> {
        self.declared()?.stream(name)
    }

    /// Declares an event of a stream. Returns its number.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] after the first event, [`ErrorKind::NotFound`] when there is no
    /// such stream.
    pub fn class(&mut self, stream: u32, name: &str) -> Result<u32> {
        self.declared()?.class(stream, name)
    }

    /// Declares the next field of an event. Returns its number among the fields of that event.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] after the first event, for a type that is none or a name that
    /// the event has already; [`ErrorKind::NotFound`] when there is no such event.
    pub fn field(&mut self, class: u32, name: &str, spelling: &str) -> Result<u32> {
        self.declared()?.field(class, name, spelling)
    }

    /// The number of a field that was declared.
    pub fn field_number(&self, class: u32, name: &str) -> Option<u32> {
        self.declared.field_number(class, name)
    }

    /// Sets a field of the next event of `class`. What is not set is zero, or empty.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when the value does not fit the field's type,
    /// [`ErrorKind::NotFound`] when there is no such field.
    pub fn set(&mut self, class: u32, field: u32, value: Given<'_>) -> Result<()> {
        self.declared.slot(class, field)?.set(value)
    }

    /// Writes an event with the fields that were set.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when time goes backwards on its stream and CPU or is negative,
    /// [`ErrorKind::NotFound`] when there is no such event; otherwise what the operating system
    /// says.
    pub fn event(&mut self, class: u32, cpu: Cpu, time: Instant) -> Result<()> {
        self.payload.clear();
        let (stream, place) = self.declared.encode(class, &mut self.payload)?;
        self.begin()?;
        let payload = self.payload.bytes();
        file(&mut self.open, stream, cpu)?.event(place, time, payload)
    }

    /// Says how many events of a stream and CPU were lost so far, all together. They lie between
    /// the event before and the event after.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when the total shrinks, [`ErrorKind::NotFound`] when there is no
    /// such stream; otherwise what the operating system says.
    pub fn discarded(&mut self, stream: u32, cpu: Cpu, total: u64) -> Result<()> {
        self.declared.has_stream(stream)?;
        self.begin()?;
        file(&mut self.open, stream, cpu)?.discarded(total)
    }

    /// Finishes the trace and gives it its name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when somebody took the name meanwhile; otherwise what the
    /// operating system says. Nothing is left behind then.
    pub fn close(mut self) -> Result<PathBuf> {
        self.begin()?;
        let files = self.open.map(|open| open.files).unwrap_or_default();
        for (_, file) in files {
            file.finish()?;
        }
        self.staged.commit()
    }

    /// Writes the metadata before the first event.
    fn begin(&mut self) -> Result<()> {
        if self.open.is_none() {
            self.open = Some(Open {
                trace: TraceWriter::create(self.staged.path(), &self.declared.meta()?)?,
                files: BTreeMap::new(),
            });
        }
        Ok(())
    }
}

/// The file of a stream and CPU.
fn file(open: &mut Option<Open>, stream: u32, cpu: Cpu) -> Result<&mut StreamWriter> {
    use std::collections::btree_map::Entry;
    let Some(Open { trace, files }) = open else {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the trace was not begun",
        ));
    };
    match files.entry((stream, cpu.0)) {
        Entry::Occupied(found) => Ok(found.into_mut()),
        Entry::Vacant(place) => Ok(place.insert(trace.stream(stream as usize, cpu)?)),
    }
}
