//! The walk over a text's lines.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;

use event::ClassId;

use super::line::{self, Line, Rest};
use super::lines::Lines;
use super::{TextEvent, TextRecording, shape};
use crate::reader::Hole;
use crate::{Halt, Loss};

/// A walk over the events of a text, in the order of its lines.
pub struct TextReader<'a> {
    recording: &'a TextRecording,
    lines: Option<Lines>,
    class: ClassId,
    event: TextEvent,
    time_ns: i64,
    /// The time of the last event of each CPU.
    latest_ns: Vec<i64>,
    /// What is to be handed out before reading goes on.
    waiting: VecDeque<Halt>,
    /// The event that comes behind it.
    held: Option<Found>,
    /// Whether the event before was a message: its lines may look like anything.
    is_message: bool,
}

/// Lines of several CPUs are put in order as they are written, but for what differs by less.
const BACK_NS_MIN: i64 = 1_000_000;

/// An event that was read.
struct Found {
    class: ClassId,
    event: TextEvent,
    time_ns: i64,
    is_message: bool,
}

/// What a line is.
enum Judged {
    Event(Box<Found>),
    Lost(u32, Option<u64>),
    /// Something else than an event.
    Other,
    /// An event that cannot be read.
    Garbled,
}

/// What stands between two events.
#[derive(Default)]
struct Between {
    /// The CPUs that lost events, and how many.
    lost: Vec<(u32, Option<u64>)>,
    /// Where a line is garbled, and whether it is the file's last, without an end.
    garbled: Option<(u64, bool)>,
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
            latest_ns: Vec::new(),
            waiting: VecDeque::new(),
            held: None,
            is_message: false,
        }
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.recording.name
    }

    /// The same that hands out these first.
    pub fn after(&mut self, halts: impl IntoIterator<Item = Halt>) {
        self.waiting.extend(halts);
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
        if let Some(halt) = self.waiting.pop_front() {
            return Err(Box::new(halt));
        }
        if let Some(found) = self.held.take() {
            self.stand_on(found);
            return Ok(());
        }
        let mut between = Between::default();
        while let Some(lines) = &mut self.lines {
            if !lines.next() {
                break;
            }
            let is_cut = !lines.is_ended();
            match judge(self.recording, lines, self.is_message) {
                Judged::Event(found) => {
                    if is_cut {
                        // What the last value would have been nobody knows.
                        self.unread(found.time_ns, i64::MAX, true);
                    }
                    return self.meet(*found, between);
                }
                Judged::Lost(cpu, count) => between.lost.push((cpu, count)),
                Judged::Garbled => {
                    let at = lines.at();
                    between.garbled.get_or_insert((at, is_cut));
                }
                Judged::Other => {}
            }
        }
        Err(Box::new(self.end(between)))
    }

    /// Hands out the event, after what stands before it.
    fn meet(&mut self, found: Found, between: Between) -> std::result::Result<(), Box<Halt>> {
        // What waits here already is behind the event.
        let behind = std::mem::take(&mut self.waiting);
        self.garbled(&between, found.time_ns);
        self.steps_back(found.time_ns);
        for (cpu, count) in between.lost {
            self.lost(cpu, count, found.time_ns);
        }
        let Some(first) = self.waiting.pop_front() else {
            self.waiting = behind;
            self.stand_on(found);
            return Ok(());
        };
        self.held = Some(found);
        self.waiting.extend(behind);
        Err(Box::new(first))
    }

    fn stand_on(&mut self, found: Found) {
        let Found {
            class,
            event,
            time_ns,
            is_message,
        } = found;
        let cpu = event.cpu as usize;
        if self.latest_ns.len() <= cpu {
            self.latest_ns.resize(cpu + 1, i64::MIN);
        }
        self.latest_ns[cpu] = self.latest_ns[cpu].max(time_ns);
        (self.class, self.event) = (class, event);
        (self.time_ns, self.is_message) = (time_ns, is_message);
    }

    /// The end of the file, or what stands before it.
    fn end(&mut self, between: Between) -> Halt {
        let error = self.lines.take().and_then(|mut lines| {
            let error = lines.take_error()?;
            Some((lines.at(), error))
        });
        self.garbled(&between, i64::MAX);
        for (cpu, count) in between.lost {
            self.lost(cpu, count, i64::MAX);
        }
        if let Some((offset_bytes, error)) = error {
            self.waiting.push_back(Halt::Damage {
                offset_bytes,
                reason: format!("expected a line, found {error}"),
            });
            self.unread(self.time_ns, i64::MAX, false);
        }
        self.waiting.pop_front().unwrap_or(Halt::End)
    }

    /// Lines between two events that were some once.
    fn garbled(&mut self, between: &Between, end_ns: i64) {
        let Some((offset_bytes, is_cut)) = between.garbled else {
            return;
        };
        self.waiting.push_back(Halt::Damage {
            offset_bytes,
            reason: "expected an event, found a line that is none".to_owned(),
        });
        self.unread(self.time_ns, end_ns, is_cut);
    }

    /// An event is much earlier than the one before it: the clock was set, or texts of several CPUs
    /// stand behind each other. What lasts from one to the other, or is in between, nobody knows.
    fn steps_back(&mut self, time_ns: i64) {
        if self.time_ns.saturating_sub(time_ns) < BACK_NS_MIN {
            return;
        }
        let offset_bytes = self.lines.as_ref().map_or(0, Lines::at);
        self.waiting.push_back(Halt::Damage {
            offset_bytes,
            reason: "expected an event behind the one before it, found an earlier one".to_owned(),
        });
        self.unread(time_ns, self.time_ns, false);
    }

    fn unread(&mut self, begin_ns: i64, end_ns: i64, is_cut: bool) {
        self.waiting.push_back(Halt::Unread(Hole {
            begin_ns,
            end_ns: end_ns.max(begin_ns),
            is_cut,
            is_of_any_cpu: true,
        }));
    }

    /// Events of a CPU are missing between its last one and its next, which stands behind the line
    /// that says so.
    fn lost(&mut self, cpu: u32, count: Option<u64>, next_ns: i64) {
        let latest_ns = self.latest_ns.get(cpu as usize).copied();
        let begin_ns = latest_ns.unwrap_or(i64::MIN);
        self.waiting.push_back(Halt::LostOn(
            cpu,
            Loss {
                count,
                begin_ns,
                end_ns: next_ns.max(begin_ns),
            },
        ));
    }
}

/// What the line is on which `lines` stands, after a message or not.
fn judge(recording: &TextRecording, lines: &Lines, is_message: bool) -> Judged {
    let (text, is_clean) = (lines.text(), lines.is_clean());
    let Some(line) = line::parse(text) else {
        if let Some((cpu, count)) = line::lost(text) {
            return Judged::Lost(cpu, count);
        }
        let is_cut = !lines.is_ended() && !text.is_empty();
        let is_like = line::is_like_an_event(text) && !is_message;
        let was_event = !is_clean || is_cut || is_like;
        return match was_event {
            true => Judged::Garbled,
            false => Judged::Other,
        };
    };
    let pairs = shape::fields(&line);
    match recording.places.get(&shape::key(&line, &pairs)) {
        Some(place) => event(recording, *place, &line, &pairs, (is_clean, lines)),
        None => Judged::Garbled,
    }
}

/// The event of a line, if its values are what those of the others are.
fn event(
    recording: &TextRecording,
    place: usize,
    line: &Line<'_>,
    pairs: &[(Cow<'_, str>, &str)],
    (is_clean, lines): (bool, &Lines),
) -> Judged {
    let shape = &recording.shapes[place];
    if !is_clean && (lines.is_overwritten() || !shape.fits(pairs)) {
        return Judged::Garbled;
    }
    Judged::Event(Box::new(Found {
        class: ClassId(place as u32),
        event: TextEvent {
            cpu: line.cpu,
            values: shape.values(line, pairs),
        },
        time_ns: line.time_ns,
        is_message: matches!((line.rest, pairs), (Rest::Fields(_), [(key, _)]) if key == "msg"),
    }))
}
