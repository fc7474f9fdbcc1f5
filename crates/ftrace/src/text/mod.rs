//! ftrace's text: `trace`, `trace_pipe`, systrace's HTML, `trace-cmd report`.
//!
//! A text is read twice: at open, to learn which shapes its lines have and what their values are;
//! then line by line. Lines that are no event (comments, stacks below an event, the page around a
//! systrace) are passed over; of what was an event and cannot be read, the time is said.

mod flags;
mod line;
mod lines;
mod plugin;
mod reader;
mod shape;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;

use event::{ClassId, Cpu, Error, ErrorKind, EventClass, Result, Value};

use crate::recording::Facts;
use lines::Lines;
pub use reader::TextReader;
use shape::Shape;

/// Shapes of one text; events of further ones keep their message only.
const SHAPES_MAX: usize = 4096;
/// Lines of a text's begin that may be something else before the first event.
const HEAD_LINES_MAX: usize = 64;

/// Whether a file that begins with `bytes` is ftrace's text, or a page that may hold some.
pub fn is_ftrace_text(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let start = text.trim_start();
    let is_page = ["<!doctype", "<html"].iter().any(|tag| {
        let head = start.get(..tag.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(tag))
    });
    let mut lines = text.lines().take(HEAD_LINES_MAX);
    let is_trace = |line: &str| line.starts_with("# tracer: ") || line::parse(line).is_some();
    is_page || lines.any(is_trace)
}

/// An open text.
#[derive(Debug)]
pub struct TextRecording {
    file: File,
    name: String,
    facts: Facts,
    classes: Vec<EventClass>,
    shapes: Vec<Shape>,
    /// From what tells shapes apart to their place.
    places: HashMap<String, usize>,
    cpus: Vec<Cpu>,
    range_ns: Option<(i64, i64)>,
    size_bytes: u64,
}

/// One event of a text.
#[derive(Clone, Debug, Default)]
pub struct TextEvent {
    /// Its CPU.
    pub cpu: u32,
    /// A value for each field of its class.
    pub values: Vec<Value<'static>>,
}

impl TextRecording {
    /// Opens the text at `path` and reads it once.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it has no event; otherwise what the operating system says.
    pub fn open(path: &Path) -> Result<TextRecording> {
        let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
        let file = File::open(path).map_err(failed)?;
        let size_bytes = file.metadata().map_err(failed)?.len();
        let mut recording = TextRecording {
            file,
            name: file_name(path),
            facts: Facts {
                format: "ftrace text",
                clock: "unknown".to_owned(),
                environment: vec![
                    ("domain".to_owned(), "kernel".to_owned()),
                    ("tracer_name".to_owned(), "ftrace".to_owned()),
                ],
                ..Facts::default()
            },
            classes: Vec::new(),
            shapes: Vec::new(),
            places: HashMap::new(),
            cpus: Vec::new(),
            range_ns: None,
            size_bytes,
        };
        recording.learn(path)?;
        if recording.range_ns.is_none() {
            let what = format!("{} holds no event of ftrace", path.display());
            return Err(Error::new(ErrorKind::NotFound, what)
                .found("no line 'task-tid [cpu] time: event: …'")
                .fix("give the file that 'cat /sys/kernel/tracing/trace' wrote"));
        }
        Ok(recording)
    }

    /// The first reading: shapes, CPUs, times.
    fn learn(&mut self, path: &Path) -> Result<()> {
        let mut lines = Lines::new(&self.file, path)?;
        let mut cpus = BTreeSet::new();
        let mut left_out = 0u64;
        while lines.next() {
            let Some(line) = line::parse(lines.text()) else {
                continue;
            };
            // Nothing is learned from what was garbled.
            if !lines.is_clean() {
                continue;
            }
            cpus.insert(Cpu(line.cpu));
            let (first, last) = self.range_ns.get_or_insert((line.time_ns, line.time_ns));
            *first = line.time_ns.min(*first);
            *last = line.time_ns.max(*last);
            let pairs = shape::fields(&line);
            let key = shape::key(&line, &pairs);
            let place = match self.places.get(&key) {
                Some(place) => *place,
                None if self.shapes.len() < SHAPES_MAX => {
                    self.shapes.push(Shape::new(&line, &pairs));
                    self.places.insert(key, self.shapes.len() - 1);
                    self.shapes.len() - 1
                }
                None => {
                    left_out += 1;
                    continue;
                }
            };
            self.shapes[place].learn(&pairs);
        }
        if let Some(cause) = lines.take_error() {
            return Err(Error::io(format!("cannot read {}", path.display()), cause));
        }
        if left_out > 0 {
            let note = format!("{left_out} events have shapes beyond the first {SHAPES_MAX}");
            self.facts.notes.push(note);
        }
        let shapes = self.shapes.iter().enumerate();
        self.classes = shapes
            .map(|(place, shape)| shape.class(ClassId(place as u32)))
            .collect();
        self.cpus = cpus.into_iter().collect();
        Ok(())
    }

    /// What is known of it besides its events.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Its event classes, one for each shape of a line: several may share a name.
    pub fn classes(&self) -> &[EventClass] {
        &self.classes
    }

    /// The CPUs that have events.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The times of the earliest and the latest event.
    pub fn range_ns(&self) -> Option<(i64, i64)> {
        self.range_ns
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the file when it was opened.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
