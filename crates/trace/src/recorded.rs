//! A recording of ftrace, in pages, as text or in a trace of Perfetto, behind one face.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use event::{Cpu, Error, ErrorKind, EventClass, Result};
use ftrace::{
    Facts, Halt, PageReader, PageStream, PerfettoReader, PerfettoRecording, RecordRef, Recording,
    TextEvent, TextReader, TextRecording,
};

/// How much of a file is looked at to know what it is.
const HEAD_BYTES: u64 = 64 << 10;

/// What perf writes begins so, in either byte order.
const PERF_MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// The recording.
pub(crate) enum Recorded {
    Pages(Box<Recording>),
    Text(Box<TextRecording>),
    Perfetto(Box<PerfettoRecording>),
}

/// One of its streams.
pub(crate) struct StreamFacts {
    pub name: String,
    pub size_bytes: u64,
    pub cpu: Option<Cpu>,
    pub pages: u64,
    /// The times of its first page, or event, and of its last event.
    pub range_ns: Option<(i64, i64)>,
}

impl Recorded {
    /// Opens the file at `path`, when it is one.
    pub fn open_file(path: &Path) -> Result<Option<Recorded>> {
        let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
        let mut head = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(HEAD_BYTES)
            .read_to_end(&mut head)
            .map_err(failed)?;
        if ftrace::is_trace_dat(&head) {
            let recording = Recording::open_dat(path)?;
            return Ok(Some(Recorded::Pages(recording.into())));
        }
        if PERF_MAGICS.iter().any(|magic| head.starts_with(magic)) {
            return Err(perf_data(path));
        }
        if ftrace::is_ftrace_text(&head) {
            return Ok(Some(Recorded::Text(TextRecording::open(path)?.into())));
        }
        if ftrace::is_perfetto(&head) {
            let recording = PerfettoRecording::open(path)?;
            return Ok(Some(Recorded::Perfetto(recording.into())));
        }
        Ok(None)
    }

    /// Opens a directory of raw pages.
    pub fn open_directory(path: &Path) -> Result<Recorded> {
        Recording::open_directory(path).map(|recording| Recorded::Pages(recording.into()))
    }

    pub fn facts(&self) -> &Facts {
        match self {
            Recorded::Pages(pages) => pages.facts(),
            Recorded::Text(text) => text.facts(),
            Recorded::Perfetto(perfetto) => perfetto.facts(),
        }
    }

    pub fn classes(&self) -> &[EventClass] {
        match self {
            Recorded::Pages(pages) => pages.classes(),
            Recorded::Text(text) => text.classes(),
            Recorded::Perfetto(perfetto) => perfetto.classes(),
        }
    }

    /// The CPUs that have a stream.
    pub fn cpus(&self) -> Vec<Cpu> {
        match self {
            Recorded::Pages(pages) => pages.streams().iter().map(PageStream::cpu).collect(),
            Recorded::Text(text) => text.cpus().to_vec(),
            Recorded::Perfetto(perfetto) => perfetto.streams().map(|(cpu, ..)| cpu).collect(),
        }
    }

    pub fn streams(&self) -> Vec<StreamFacts> {
        match self {
            Recorded::Text(text) => vec![StreamFacts {
                name: text.name().to_owned(),
                size_bytes: text.size_bytes(),
                cpu: None,
                pages: 1,
                range_ns: text.range_ns(),
            }],
            Recorded::Perfetto(perfetto) => {
                let streams = perfetto.streams();
                let facts = |(cpu, size_bytes, pages, range_ns)| StreamFacts {
                    name: perfetto.name().to_owned(),
                    size_bytes,
                    cpu: Some(cpu),
                    pages,
                    range_ns,
                };
                streams.map(facts).collect()
            }
            Recorded::Pages(pages) => {
                let streams = pages.streams().iter().enumerate();
                let facts = |(place, stream): (usize, &PageStream)| StreamFacts {
                    name: stream.name().to_owned(),
                    size_bytes: stream.size_bytes(),
                    cpu: Some(stream.cpu()),
                    pages: stream.pages(),
                    range_ns: PageReader::new(pages, place).and_then(|mut r| r.range_ns()),
                };
                streams.map(facts).collect()
            }
        }
    }

    /// The text of the kernel's symbols; empty when it has none.
    pub fn kallsyms(&self) -> Result<String> {
        match self {
            Recorded::Pages(pages) => pages.kallsyms(),
            Recorded::Text(_) | Recorded::Perfetto(_) => Ok(String::new()),
        }
    }

    /// A reader of each stream.
    pub fn readers(&self) -> Vec<Reader<'_>> {
        match self {
            Recorded::Text(text) => vec![Reader::Text(TextReader::new(text))],
            Recorded::Perfetto(perfetto) => PerfettoReader::all(perfetto)
                .map(Reader::Perfetto)
                .collect(),
            Recorded::Pages(pages) => (0..pages.streams().len())
                .filter_map(|place| PageReader::new(pages, place))
                .map(Reader::Pages)
                .collect(),
        }
    }
}

/// Not read here, but perf itself makes CTF of it.
fn perf_data(path: &Path) -> Error {
    let path = path.display();
    Error::new(ErrorKind::Unsupported, format!("{path} is not read"))
        .found("a recording of perf")
        .fix(format!(
            "perf script --ns --show-lost-events -i {path} > NEW, then open NEW; or perf data \
             convert --to-ctf NEW -i {path}"
        ))
}

/// A reader of one stream.
pub(crate) enum Reader<'a> {
    Pages(PageReader<'a>),
    Text(TextReader<'a>),
    Perfetto(PerfettoReader<'a>),
}

/// The event that a reader stands on; one of Perfetto's has its values as that of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record<'r> {
    Pages(RecordRef<'r>),
    Text(&'r TextEvent),
}

impl Reader<'_> {
    #[inline]
    pub fn advance(&mut self) -> Result<(), Box<Halt>> {
        match self {
            Reader::Pages(pages) => pages.advance(),
            Reader::Text(text) => text.advance(),
            Reader::Perfetto(perfetto) => perfetto.advance(),
        }
    }

    /// Before what may hold an event at `time_ns` or later; a text has no index.
    pub fn seek(&mut self, time_ns: i64) {
        if let Reader::Pages(pages) = self {
            pages.seek(time_ns);
        }
    }

    #[inline]
    pub fn time_ns(&self) -> i64 {
        match self {
            Reader::Pages(pages) => pages.time_ns(),
            Reader::Text(text) => text.time_ns(),
            Reader::Perfetto(perfetto) => perfetto.time_ns(),
        }
    }

    #[inline]
    pub fn class(&self) -> event::ClassId {
        match self {
            Reader::Pages(pages) => pages.class(),
            Reader::Text(text) => text.class(),
            Reader::Perfetto(perfetto) => perfetto.class(),
        }
    }

    #[inline]
    pub fn event(&self) -> Record<'_> {
        match self {
            Reader::Pages(pages) => Record::Pages(pages.event()),
            Reader::Text(text) => Record::Text(text.event()),
            Reader::Perfetto(perfetto) => Record::Text(perfetto.event()),
        }
    }

    /// Hands out these before the first event.
    pub fn after(&mut self, halts: Vec<Halt>) {
        match self {
            Reader::Pages(pages) => pages.after(halts),
            Reader::Text(text) => text.after(halts),
            Reader::Perfetto(perfetto) => perfetto.after(halts),
        }
    }

    /// The CPU of its stream, or of its last line.
    pub fn cpu(&self) -> Cpu {
        match self {
            Reader::Pages(pages) => pages.stream().cpu(),
            Reader::Text(text) => Cpu(text.event().cpu),
            Reader::Perfetto(perfetto) => perfetto.cpu(),
        }
    }

    /// The file's name inside of the recording; a text's own is that of the recording.
    pub fn name(&self) -> &str {
        match self {
            Reader::Pages(pages) => pages.stream().name(),
            Reader::Text(text) => text.name(),
            Reader::Perfetto(perfetto) => perfetto.name(),
        }
    }

    /// Whether what comes later in the stream comes later in time, as a rule without exception:
    /// then a walk may end at the first event behind its range.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Reader::Pages(_))
    }
}

impl<'r> Record<'r> {
    #[inline]
    pub fn cpu(&self) -> Cpu {
        match self {
            Record::Pages(record) => record.cpu(),
            Record::Text(event) => Cpu(event.cpu),
        }
    }

    #[inline]
    pub fn i64(&self, field: event::FieldId) -> i64 {
        match self {
            Record::Pages(record) => record.i64(field),
            Record::Text(event) => {
                let value = event.values.get(usize::from(field.0));
                value.and_then(event::Value::as_i64).unwrap_or(0)
            }
        }
    }

    #[inline]
    pub fn text(&self, field: event::FieldId) -> &'r [u8] {
        match self {
            Record::Pages(record) => record.text(field),
            Record::Text(event) => {
                let value = event.values.get(usize::from(field.0));
                let text = value.and_then(event::Value::as_text);
                text.unwrap_or_default().as_bytes()
            }
        }
    }

    pub fn value(&self, class: &EventClass, field: event::FieldId) -> event::Value<'r> {
        match self {
            Record::Pages(record) => record.value(class, field),
            Record::Text(event) => {
                let value = event.values.get(usize::from(field.0));
                value.cloned().unwrap_or(event::Value::Unsigned(0))
            }
        }
    }
}
