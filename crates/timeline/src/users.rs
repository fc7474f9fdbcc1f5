//! Events of applications by thread, and the spans between those that begin and end something.

use std::collections::HashMap;

use event::{ClassId, EventClass, FieldId, Scope};
use trace::{EventView, Trace};

use crate::kept::Spill;
use crate::series::Series;
use crate::state::{Kind, Segment, State};
use crate::track::Track;

/// Spans of a thread that are open at once, each in a row of its own; others are not drawn.
const LANES_MAX: usize = 32;
/// Spans that are open at once, in all.
const OPEN_MAX: usize = 1 << 20;

/// A track of what an application did in a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct UserTrack {
    /// The thread's id, as its events say it.
    pub tid: i32,
    /// Its process, where they say it.
    pub pid: Option<i32>,
    /// Its name, where they say it.
    pub comm: String,
    /// What is in it.
    pub what: UserWhat,
}

/// What is in a [`UserTrack`].
#[derive(Clone, Debug, PartialEq)]
pub enum UserWhat {
    /// All events, by the places of their names.
    Events(Series),
    /// Spans by the places of their names, as states of [`Kind::Run`]; between them it is
    /// [`Kind::Idle`]. Of those that are open at once, each is in another row.
    Spans(u32, Box<Track>),
}

/// What an event class says of applications.
#[derive(Clone, Copy, Debug)]
struct Class {
    tid: FieldId,
    pid: Option<FieldId>,
    comm: Option<FieldId>,
    name: u32,
    span: Option<Span>,
}

/// A class that begins or ends spans.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The place of their name.
    name: u32,
    begins: bool,
    /// Which begin and end belong together; without it those of a thread, the innermost first.
    cookie: Option<FieldId>,
}

/// Which spans an end may end: their name, where they are, and their cookie.
type Key = (u32, i64, Option<u64>);

/// A span that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Of the lane's track among all.
    track: usize,
    begin_ns: i64,
    name: u32,
}

/// A row of spans of a thread.
#[derive(Clone, Debug)]
struct Lane {
    track: usize,
    is_open: bool,
    /// Since when no span is in it; none: nobody knows.
    free_since_ns: Option<i64>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    events: usize,
    lanes: Vec<Lane>,
}

/// What applications did so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users {
    by_class: Vec<Option<Class>>,
    /// Of events, and of spans.
    pub names: Vec<String>,
    threads: HashMap<i32, Thread>,
    tracks: Vec<UserTrack>,
    open: HashMap<Key, Vec<Open>>,
    open_count: usize,
}

impl Users {
    pub fn new(trace: &Trace) -> Users {
        let mut names = Vec::new();
        let mut places: HashMap<String, u32> = HashMap::new();
        let mut place = |name: &str| {
            *places.entry(name.to_owned()).or_insert_with(|| {
                names.push(name.to_owned());
                names.len() as u32 - 1
            })
        };
        let all = trace.classes().iter();
        let pairs: Vec<&str> = all.map(|class| &*class.name).collect();
        let bound = trace.classes().iter().map(|class| {
            let is_user = is_of_application(class, trace);
            is_user.then(|| bind(class, &pairs, &mut place)).flatten()
        });
        Users {
            by_class: bound.collect(),
            names,
            ..Users::default()
        }
    }

    /// Whether events of a class say something.
    pub fn reads(&self, class: ClassId) -> bool {
        matches!(self.by_class.get(class.0 as usize), Some(Some(_)))
    }

    /// Takes in an event; most are of no application.
    #[inline]
    pub fn event(&mut self, event: &EventView<'_>, now_ns: i64) {
        if let Some(Some(class)) = self.by_class.get(event.class().0 as usize) {
            self.take_in(*class, event, now_ns);
        }
    }

    fn take_in(&mut self, class: Class, event: &EventView<'_>, now_ns: i64) {
        let tid = event.i64(class.tid) as i32;
        let pid = class.pid.map(|pid| event.i64(pid) as i32);
        if !self.threads.contains_key(&tid) {
            let thread = Thread {
                events: self.tracks.len(),
                lanes: Vec::new(),
            };
            self.threads.insert(tid, thread);
            let comm = class.comm.map(|comm| event::plain_text(event.text(comm)));
            self.tracks.push(UserTrack {
                tid,
                pid,
                comm: comm.unwrap_or_default(),
                what: UserWhat::Events(Series::default()),
            });
        }
        let events = self.threads.get(&tid).map(|thread| thread.events);
        let events = events.and_then(|place| self.tracks.get_mut(place));
        if let Some(UserWhat::Events(events)) = events.map(|track| &mut track.what) {
            events.push(now_ns, class.name.into());
        }
        let Some(span) = class.span else { return };
        let cookie = span.cookie.map(|cookie| event.u64(cookie));
        // A cookie may be an address: it means something in its process alone.
        let place = match cookie {
            Some(_) => i64::from(pid.unwrap_or(tid)),
            None => i64::from(tid),
        };
        let key = (span.name, place, cookie);
        match span.begins {
            true => self.begin(key, tid, now_ns),
            false => self.end(key, now_ns),
        }
    }

    fn begin(&mut self, key: Key, tid: i32, now_ns: i64) {
        if self.open_count >= OPEN_MAX {
            return;
        }
        let Some(track) = self.lane(tid, now_ns) else {
            return;
        };
        self.open_count += 1;
        self.open.entry(key).or_default().push(Open {
            track,
            begin_ns: now_ns,
            name: key.0,
        });
    }

    /// A free lane of a thread, which is taken now.
    fn lane(&mut self, tid: i32, now_ns: i64) -> Option<usize> {
        let thread = self.threads.get_mut(&tid)?;
        let free = thread.lanes.iter_mut().find(|lane| !lane.is_open);
        if let Some(lane) = free {
            lane.is_open = true;
            if let Some(since_ns) = lane.free_since_ns.take() {
                let free = stretch(since_ns, now_ns, State::new(Kind::Idle, None));
                push(&mut self.tracks, lane.track, free);
            }
            return Some(lane.track);
        }
        if thread.lanes.len() >= LANES_MAX {
            return None;
        }
        let track = self.tracks.len();
        let of_events = &self.tracks[thread.events];
        let made = UserTrack {
            what: UserWhat::Spans(thread.lanes.len() as u32, Box::default()),
            comm: of_events.comm.clone(),
            ..*of_events
        };
        thread.lanes.push(Lane {
            track,
            is_open: true,
            free_since_ns: None,
        });
        self.tracks.push(made);
        Some(track)
    }

    fn end(&mut self, key: Key, now_ns: i64) {
        let Some(all) = self.open.get_mut(&key) else {
            return;
        };
        let ended = all.pop();
        if all.is_empty() {
            self.open.remove(&key);
        }
        let Some(open) = ended else { return };
        self.open_count -= 1;
        let name = State::new(Kind::Run, Some(open.name));
        push(
            &mut self.tracks,
            open.track,
            stretch(open.begin_ns, now_ns, name),
        );
        self.free(open.track, Some(now_ns));
    }

    fn free(&mut self, track: usize, since_ns: Option<i64>) {
        let tid = self.tracks[track].tid;
        let lanes = self.threads.get_mut(&tid).map(|thread| &mut thread.lanes);
        let lane = lanes.and_then(|lanes| lanes.iter_mut().find(|lane| lane.track == track));
        if let Some(lane) = lane {
            (lane.is_open, lane.free_since_ns) = (false, since_ns);
        }
    }

    /// Events are missing from an instant on: what was open may have ended, and where nothing was
    /// something may have begun.
    pub fn lose(&mut self, at_ns: i64) {
        self.told_until(at_ns);
        let open = std::mem::take(&mut self.open);
        self.open_count = 0;
        for one in open.into_values().flatten() {
            self.free(one.track, None);
        }
        let threads = self.threads.values_mut();
        for lane in threads.flat_map(|thread| &mut thread.lanes) {
            lane.free_since_ns = None;
        }
    }

    /// Tells of what is still so at an instant.
    fn told_until(&mut self, at_ns: i64) {
        for open in self.open.values().flatten() {
            let name = State::new(Kind::Run, Some(open.name));
            push(
                &mut self.tracks,
                open.track,
                stretch(open.begin_ns, at_ns, name),
            );
        }
        let lanes = self.threads.values().flat_map(|thread| &thread.lanes);
        for lane in lanes {
            if let Some(since_ns) = lane.free_since_ns {
                let free = stretch(since_ns, at_ns, State::new(Kind::Idle, None));
                push(&mut self.tracks, lane.track, free);
            }
        }
    }

    /// The tracks as they are at the end: a thread's events, then its spans.
    pub fn finish(mut self, end_ns: i64) -> (Vec<UserTrack>, Vec<String>) {
        self.told_until(end_ns);
        let mut spill = Spill::default();
        for track in &mut self.tracks {
            match &mut track.what {
                UserWhat::Events(series) => series.finish([]),
                UserWhat::Spans(_, track) => track.finish(&mut spill),
            }
        }
        let lane = |track: &UserTrack| match track.what {
            UserWhat::Events(_) => 0,
            UserWhat::Spans(lane, _) => lane + 1,
        };
        self.tracks
            .sort_by_key(|track| (track.pid, track.tid, lane(track)));
        (self.tracks, self.names)
    }
}

/// Whether the events of a class are an application's.
fn is_of_application(class: &EventClass, trace: &Trace) -> bool {
    let domain = trace.environment_of(class.id).get("domain");
    match domain {
        Some(domain) => domain == "ust",
        None => class.name.contains(':') && !class.is_of_perf(),
    }
}

fn bind(
    class: &EventClass,
    classes: &[&str],
    place: &mut impl FnMut(&str) -> u32,
) -> Option<Class> {
    let context = |names: [&str; 2]| {
        let scopes = [Scope::StreamContext, Scope::EventContext];
        let field = |name: &str| scopes.iter().find_map(|scope| class.field_in(*scope, name));
        names.into_iter().find_map(field)
    };
    let pair = |end: &str, other: &str, begins: bool| {
        let stem = class.name.strip_suffix(end)?;
        let is_pair = classes.contains(&format!("{stem}{other}").as_str());
        is_pair.then_some((stem, begins))
    };
    let pairs = [("_begin", "_end"), ("_entry", "_exit"), ("_start", "_stop")];
    let span = pairs
        .into_iter()
        .find_map(|(begin, end)| pair(begin, end, true).or_else(|| pair(end, begin, false)));
    Some(Class {
        tid: context(["vtid", "tid"])?,
        pid: context(["vpid", "pid"]),
        comm: context(["procname", "comm"]),
        name: place(&class.name),
        span: span.map(|(stem, begins)| Span {
            name: place(stem),
            begins,
            cookie: class.field_in(Scope::Payload, "cookie"),
        }),
    })
}

fn stretch(begin_ns: i64, end_ns: i64, state: State) -> Segment {
    Segment {
        begin_ns,
        end_ns,
        state,
    }
}

fn push(tracks: &mut [UserTrack], track: usize, segment: Segment) {
    if let UserWhat::Spans(_, track) = &mut tracks[track].what {
        // There are few of them: they stay in memory.
        track.push(segment, &mut Spill::default());
    }
}
