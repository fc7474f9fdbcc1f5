//! ftrace's text: `trace`, `trace_pipe`, systrace's HTML, `trace-cmd report`.
//!
//! A text is read twice: at open, to learn which shapes its lines have and what their values are;
//! then line by line. Lines that are no event (comments, stacks below an event, the page around a
//! systrace) are passed over.

mod line;
mod shape;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use event::{ClassId, Cpu, Error, ErrorKind, EventClass, Result, Value};

use crate::recording::Facts;
use crate::{Halt, Loss};
use shape::Shape;

/// Longer lines are no events of ftrace, which prints them in a page.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Shapes of one text; events of further ones keep their message only.
const SHAPES_MAX: usize = 4096;
/// Bytes that are read at once.
const PIECE_BYTES: usize = 128 << 10;
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
                .mend("give the file that 'cat /sys/kernel/tracing/trace' wrote"));
        }
        Ok(recording)
    }

    /// The first reading: shapes, CPUs, times.
    fn learn(&mut self, path: &Path) -> Result<()> {
        let mut lines = Lines::new(&self.file, path)?;
        let mut cpus = BTreeSet::new();
        let mut left_out = 0u64;
        while let Some(text) = lines.next() {
            let Some(line) = line::parse(text) else {
                continue;
            };
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
        if let Some(cause) = lines.error {
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

/// The lines of a file, none longer than an event may be.
struct Lines {
    file: BufReader<File>,
    line: String,
    bytes: Vec<u8>,
    /// Offset of the line that was handed out.
    at: u64,
    next: u64,
    error: Option<std::io::Error>,
}

impl Lines {
    /// From the begin of a file; through a descriptor of its own, so that walks do not meet.
    fn new(file: &File, path: &Path) -> Result<Lines> {
        let failed = |cause| Error::io(format!("cannot read {}", path.display()), cause);
        // The same file, should its name have gone or been given to another.
        let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
        let mut file = File::open(own)
            .or_else(|_| File::open(path))
            .map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Lines {
            file: BufReader::with_capacity(PIECE_BYTES, file),
            line: String::new(),
            bytes: Vec::new(),
            at: 0,
            next: 0,
            error: None,
        })
    }

    /// The next line without its end; none at the file's end.
    fn next(&mut self) -> Option<&str> {
        self.at = self.next;
        self.bytes.clear();
        loop {
            let piece = match self.file.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(piece.len());
            let room = LINE_BYTES_MAX - self.bytes.len();
            self.bytes.extend_from_slice(&piece[..taken.min(room)]);
            let is_last = piece.is_empty();
            let taken = taken + usize::from(end.is_some());
            self.file.consume(taken);
            self.next += taken as u64;
            if end.is_some() || is_last && self.next > self.at {
                break;
            }
            if is_last {
                return None;
            }
        }
        self.line.clear();
        self.line.push_str(&String::from_utf8_lossy(&self.bytes));
        let line = self.line.trim_end_matches('\r');
        // An older systrace keeps its lines in a script's string.
        Some(line.strip_suffix("\\n\\").unwrap_or(line))
    }
}

/// A walk over the events of a text, in the order of its lines.
pub struct TextReader<'a> {
    recording: &'a TextRecording,
    lines: Option<Lines>,
    class: ClassId,
    event: TextEvent,
    time_ns: i64,
}

impl<'a> TextReader<'a> {
    /// Before the first event.
    pub fn new(recording: &'a TextRecording) -> Self {
        TextReader {
            recording,
            lines: Lines::new(&recording.file, Path::new(&recording.name)).ok(),
            class: ClassId(0),
            event: TextEvent::default(),
            time_ns: i64::MIN,
        }
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.recording.name
    }

    /// The time of what it stands on.
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// The class of the event that it stands on.
    pub fn class(&self) -> ClassId {
        self.class
    }

    /// The event that it stands on.
    pub fn event(&self) -> &TextEvent {
        &self.event
    }

    /// Goes to the next event.
    ///
    /// # Errors
    /// What stands there instead. After [`Halt::End`] it stays at the end.
    pub fn advance(&mut self) -> std::result::Result<(), Box<Halt>> {
        let Some(lines) = &mut self.lines else {
            return Err(Box::new(Halt::End));
        };
        while let Some(text) = lines.next() {
            let Some(line) = line::parse(text) else {
                if let Some((cpu, count)) = line::lost(text) {
                    self.event.cpu = cpu;
                    return Err(Box::new(lost(self.time_ns, count)));
                }
                continue;
            };
            let pairs = shape::fields(&line);
            let Some(place) = self.recording.places.get(&shape::key(&line, &pairs)) else {
                continue;
            };
            self.time_ns = line.time_ns;
            self.class = ClassId(*place as u32);
            self.event = TextEvent {
                cpu: line.cpu,
                values: self.recording.shapes[*place].values(&line, &pairs),
            };
            return Ok(());
        }
        let error = lines.error.take();
        let at = lines.at;
        self.lines = None;
        Err(Box::new(match error {
            Some(error) => Halt::Damage {
                offset_bytes: at,
                reason: format!("expected a line, found {error}"),
            },
            None => Halt::End,
        }))
    }
}

/// Events are missing after the last one; until when, the text does not say.
fn lost(time_ns: i64, count: Option<u64>) -> Halt {
    Halt::Lost(Loss {
        count,
        begin_ns: time_ns.max(0),
        end_ns: time_ns.max(0),
    })
}
