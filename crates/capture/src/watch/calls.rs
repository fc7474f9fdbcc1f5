//! Calls from outside of the kernel: an application, or somebody for it, says that it was late.
//!
//! The kernel sends each task's worst activations by and by, and nobody is told of them until a
//! call comes: those of the moment before it are what it is about.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use event::evidence::{Hit, Kin, LateOne, StepKind, TaskRef};
use event::{Duration, Error, Instant, Result, Tid, TimeRange};
use rustix::event::{EventfdFlags, eventfd};

use super::SleepsInside;
use super::ordinary::is_ordinary;
use super::usual::{Quiet, Usual};
use crate::clock;

/// Of so much time before a call the worst activation is what it is about.
pub const LOOK_BACK: Duration = Duration::from_ms(1_000);
/// It wakes nobody for them: so often they are taken, before their ring is full.
const TAKE_INTERVAL: Duration = Duration::from_ms(50);
/// An application calls inside of the activation that was late: so long that may go on.
const SETTLE: Duration = Duration::from_ms(50);
/// Where nothing that ended is late, what is open is waited for until then.
const PATIENCE: Duration = Duration::from_ms(1_000);
/// Others that were late with it are told in short; at most so many.
const BESIDE_MAX: usize = 3;
/// More hits than so many come in no second.
const HITS_MAX: usize = 4_000;
/// Most applications speak soon: what ended so shortly before may be what they mean, if it is so
/// many times as long as is usual for its task.
const SOON: Duration = Duration::from_ms(200);
const TIMES_USUAL: i64 = 2;
/// What ended before that has to stand out more.
const TIMES_USUAL_BEFORE: i64 = 4;
/// Who says how late it was means nothing that is shorter than such a part of that.
const PART_OF_SAID: i64 = 4;

/// Somebody says that a target was late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it was heard.
    pub at: Instant,
    /// In which words.
    pub words: String,
}

/// A call, and others that came with it.
#[derive(Debug)]
struct Pending {
    call: Call,
    more: u64,
    /// When the last of them came.
    last: Instant,
}

impl Pending {
    fn new(call: Call) -> Pending {
        let last = call.at;
        Pending {
            call,
            more: 0,
            last,
        }
    }

    /// Others came with it as well.
    fn joined(mut self, later: Pending) -> Pending {
        self.more += later.more + 1;
        self.last = later.last;
        self
    }
}

/// Calls on their way to a watch.
#[derive(Debug)]
pub struct Calls {
    queue: Mutex<Option<Pending>>,
    /// A call is to be answered soon, with all that come until then: nobody need be woken for them.
    expected: AtomicBool,
    /// When a signal came that nobody has heard yet; zero: none did.
    signalled_ns: AtomicI64,
    bell: OwnedFd,
}

impl Calls {
    /// None yet.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn new() -> Result<Calls> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let cannot = |errno: rustix::io::Errno| Error::io("cannot listen for calls", errno.into());
        Ok(Calls {
            queue: Mutex::default(),
            expected: AtomicBool::new(false),
            signalled_ns: AtomicI64::new(0),
            bell: bell.map_err(cannot)?,
        })
    }

    /// One that is heard now.
    pub fn call(&self, words: String) {
        let at = clock::monotonic();
        self.add(Call { at, words });
        // Whoever prints a thousand of them would have its CPU taken a thousand times.
        if !self.expected.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    fn add(&self, call: Call) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let call = Pending::new(call);
        *queue = Some(match queue.take() {
            Some(first) => first.joined(call),
            None => call,
        });
    }

    /// The same from a signal's handler: it takes no lock and no memory.
    pub fn signal(&self) {
        let at_ns = clock::monotonic().as_ns().max(1);
        let order = Ordering::Relaxed;
        let first = self.signalled_ns.compare_exchange(0, at_ns, order, order);
        if first.is_ok() {
            self.ring();
        }
    }

    fn ring(&self) {
        // A counter that cannot take the 1 is above zero already, which wakes as well.
        rustix::io::write(&self.bell, &1u64.to_ne_bytes()).ok();
    }

    /// How many wait to be heard.
    pub fn waiting(&self) -> u64 {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = queue.as_ref().map_or(0, |first| first.more + 1);
        heard + u64::from(self.signalled_ns.load(Ordering::Relaxed) > 0)
    }

    fn take(&self) -> Option<Pending> {
        rustix::io::read(&self.bell, &mut [0; 8]).ok();
        let signalled_ns = self.signalled_ns.swap(0, Ordering::Relaxed);
        if signalled_ns > 0 {
            self.add(Call {
                at: Instant::from_ns(signalled_ns),
                words: "SIGUSR1".to_owned(),
            });
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.take()
    }
}

impl AsFd for Calls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// A call, and who else was late then.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// The call.
    pub call: Call,
    /// Others that came with it.
    pub more: u64,
    /// Other tasks' worst activations of that moment, the longest first.
    pub beside: Vec<(TaskRef, Duration)>,
    /// Where nothing was longer than is usual for its task: the longest of those, and what is usual
    /// for each as far as that is known.
    pub looked_at: Vec<Looked>,
    /// The one before had the place of its snapshot.
    pub in_short: bool,
    /// Tasks that slept between two releases by their own timer, or between two waits for work, in
    /// cycles of that moment which are longer than what is told.
    pub inside: Vec<SleepsInside>,
}

/// An activation that explains no call.
#[derive(Clone, Debug, PartialEq)]
pub struct Looked {
    /// Whose it was.
    pub task: TaskRef,
    /// How long it was.
    pub latency: Duration,
    /// How long they are otherwise, at most.
    pub usual: Option<Duration>,
}

impl Called {
    /// Whether a cycle may be what it is about, and not the activation that is told: of `latency`.
    pub(super) fn keeps(&self, inside: &SleepsInside, latency: Duration) -> bool {
        let worst = inside.worst;
        let is_of_then = worst.end > self.call.at - LOOK_BACK && worst.begin <= self.call.at;
        is_of_then && worst.duration() > latency
    }
}

/// What is told of a hit in short.
pub fn in_short(hit: &Hit) -> LateOne {
    let mut steps = hit.steps.iter().rev();
    let began = steps.find(|step| step.kind == StepKind::SwitchIn);
    LateOne {
        end_kind: hit.end_kind,
        origin: hit.origin,
        began: began.map(|step| step.time),
        end: hit.end,
        task: hit.task.clone(),
        culprit: hit.culprit.clone(),
        preemptions: hit.preemptions,
    }
}

/// What may be called for, and what is.
#[derive(Debug)]
pub(super) struct Listener {
    calls: Arc<Calls>,
    /// Those that ended, the oldest first.
    hits: VecDeque<Hit>,
    pending: Option<Pending>,
    /// Until here everything was told.
    told: Instant,
    /// How many calls were answered.
    answered: u64,
    /// From one snapshot to the next.
    interval: Duration,
    /// When the next may be taken; one of a worse activation than all before may be at any time.
    next_snapshot: Instant,
    /// The worst of those that have one, but tasks' starts.
    worst: Duration,
    /// How long activations are while nobody calls.
    usual: Usual,
    /// When a task was made, as far as that is known.
    born: fn(Tid) -> Option<Instant>,
    /// Whether it is one that nobody waits for, beside real-time threads of its process.
    ordinary: fn(&TaskRef) -> bool,
}

/// Which of those that are long are meant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Tasks that were asked for, and those that work with them.
    Itself,
    /// Of these, ordinary threads of a process that has real-time ones.
    Ordinary,
    /// Other real-time tasks.
    Stranger,
    /// No application calls its own start late.
    Start,
}

/// What a call may be about.
struct About {
    /// What is meant, and behind it the worst of each other task.
    long: Vec<Hit>,
    /// The worst of each of those that are no longer than usual.
    usual: Vec<Looked>,
}

impl Listener {
    /// Takes a snapshot for one call in each `interval`.
    pub(super) fn new(calls: Arc<Calls>, interval: Duration) -> Listener {
        Listener {
            calls,
            hits: VecDeque::new(),
            pending: None,
            told: Instant::MIN,
            answered: 0,
            interval,
            next_snapshot: Instant::MIN,
            worst: Duration::ZERO,
            usual: Usual::default(),
            born,
            ordinary: is_ordinary,
        }
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// These ended.
    pub(super) fn ended(&mut self, hits: Vec<Hit>) {
        hits.iter().for_each(|hit| self.usual.note(hit));
        self.hits.extend(hits);
        while self.hits.len() > HITS_MAX {
            self.hits.pop_front();
        }
    }

    /// Takes the calls that came.
    pub(super) fn listen(&mut self) {
        let Some(came) = self.calls.take() else {
            return;
        };
        self.usual.called(TimeRange {
            begin: came.call.at - SOON,
            end: came.last + SETTLE,
        });
        self.pending = Some(match self.pending.take() {
            Some(first) => first.joined(came),
            None => came,
        });
        self.calls.expected.store(true, Ordering::Relaxed);
    }

    /// After how long to look again.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let at = self.pending.as_ref().map(|pending| pending.call.at);
        let settled = at.map(|at| at + SETTLE).filter(|settled| *settled > now);
        settled.map_or(TAKE_INTERVAL, |settled| (settled - now).min(TAKE_INTERVAL))
    }

    /// The call that is to be answered now, with the worst activation that it is about: none where
    /// nothing was late.
    pub(super) fn answer(&mut self, now: Instant) -> Option<(Called, Option<Hit>)> {
        let pending = self.pending.as_ref()?;
        let at = pending.call.at;
        if now < at + SETTLE {
            return None;
        }
        let About { mut long, usual } = self.about(pending);
        if long.is_empty() && now < at + PATIENCE {
            return None;
        }
        let ends = long.iter().map(|hit| hit.end);
        self.told = ends.chain([pending.last]).max()?;
        let beside = long.iter().skip(1).take(BESIDE_MAX);
        let beside = beside.map(|hit| (hit.task.clone(), hit.latency()));
        let beside = beside.collect();
        let looked_at = match long.is_empty() {
            true => usual,
            false => Vec::new(),
        };
        self.answered += 1;
        let hit = (!long.is_empty()).then(|| Hit {
            // The kernel numbers all that it sends.
            id: self.answered,
            ..long.swap_remove(0)
        });
        let told = self.told;
        self.hits.retain(|hit| hit.end > told);
        let worked = hit.as_ref().filter(|hit| !self.is_start(hit));
        let latency = worked.map_or(Duration::ZERO, Hit::latency);
        let in_short = at < self.next_snapshot && latency <= self.worst;
        if !in_short {
            self.next_snapshot = at + self.interval;
            self.worst = self.worst.max(latency);
        }
        let Pending { call, more, .. } = self.pending.take()?;
        self.calls.expected.store(false, Ordering::Relaxed);
        let called = Called {
            call,
            more,
            beside,
            looked_at,
            in_short,
            inside: Vec::new(),
        };
        Some((called, hit))
    }

    /// Whether an activation is its task's first.
    fn is_start(&self, hit: &Hit) -> bool {
        began_with((self.born)(hit.task.tid), hit)
    }

    /// What a call is about: the longest of those that are longer than is usual for their tasks, of
    /// the first rank that has any. Most speak at once: of those that are not much shorter, one
    /// that was asked for, a real-time one, the last one is meant.
    fn about(&self, pending: &Pending) -> About {
        let from = (pending.call.at - LOOK_BACK).max(self.told);
        let is_about = |hit: &&Hit| hit.end > from && hit.origin <= pending.last;
        let said = said(&pending.call.words);
        let mut known: HashMap<Tid, Known> = HashMap::new();
        let (mut long, mut usual) = (Vec::new(), Vec::new());
        for hit in self.hits.iter().filter(is_about) {
            let of_task = known
                .entry(hit.task.tid)
                .or_insert_with(|| self.known(hit.task.tid));
            of_task.real_time |= hit.task.prio.is_real_time();
            match is_long(of_task, hit, pending.call.at, said) {
                true => long.push(hit),
                false => usual.push(hit),
            }
        }
        let ranked = long.into_iter();
        let ranked = ranked.map(|hit| (self.rank(known.get_mut(&hit.task.tid), hit), hit));
        let mut long: Vec<(Rank, &Hit)> = ranked.collect();
        long.sort_by_key(|(rank, hit)| (*rank, Reverse(hit.latency())));
        let first = long.first().copied();
        let meant = first.and_then(|(rank, longest)| {
            let half = Duration::from_ns(longest.latency().as_ns() / 2);
            let alike = long.iter().filter(|(of, _)| *of == rank);
            let alike = alike
                .map(|(_, hit)| *hit)
                .filter(|hit| hit.latency() >= half);
            alike.max_by_key(|hit| {
                let is_asked = hit.kin == Kin::Asked;
                (is_asked, hit.task.prio.is_real_time(), hit.end)
            })
        });
        let others = long.iter().map(|(_, hit)| *hit);
        let mut worst: Vec<Hit> = Vec::new();
        for hit in meant.into_iter().chain(others) {
            if worst.iter().all(|one| one.task.tid != hit.task.tid) {
                worst.push(hit.clone());
            }
        }
        About {
            long: worst,
            usual: looked(usual, &known),
        }
    }

    /// What is asked of a task but once.
    fn known(&self, tid: Tid) -> Known {
        Known {
            quiet: self.usual.of(tid),
            real_time: false,
            rank: None,
        }
    }

    fn rank(&self, known: Option<&mut Known>, hit: &Hit) -> Rank {
        let is_real_time = known.as_ref().is_some_and(|known| known.real_time);
        let asks = || ((self.born)(hit.task.tid), (self.ordinary)(&hit.task));
        let (born, ordinary) = match known {
            Some(known) => *known.rank.get_or_insert_with(asks),
            None => asks(),
        };
        let is_fair = !hit.task.prio.is_real_time();
        match hit.kin {
            _ if began_with(born, hit) => Rank::Start,
            Kin::Stranger => Rank::Stranger,
            // Before it set its priority.
            _ if is_fair && (ordinary || is_real_time) => Rank::Ordinary,
            _ => Rank::Itself,
        }
    }
}

/// What is known of a task that may be meant.
struct Known {
    quiet: Quiet,
    /// One of its activations was a real-time task's.
    real_time: bool,
    /// When it was made, and whether it is an ordinary one, once that was asked.
    rank: Option<(Option<Instant>, bool)>,
}

/// Whether one may be what was called late: where nothing is known of its task, it may.
fn is_long(known: &Known, hit: &Hit, at: Instant, said: Option<Duration>) -> bool {
    let latency_ns = hit.latency().as_ns();
    let times = match hit.end > at - SOON {
        true => TIMES_USUAL,
        false => TIMES_USUAL_BEFORE,
    };
    let least_ns = said.map_or(0, |said| said.as_ns() / PART_OF_SAID);
    let usual = known.quiet.most(hit);
    latency_ns >= least_ns && usual.is_none_or(|usual| latency_ns >= usual.as_ns() * times)
}

/// The worst of each task, those first that were asked for.
fn looked(mut hits: Vec<&Hit>, known: &HashMap<Tid, Known>) -> Vec<Looked> {
    hits.sort_by_key(|hit| (hit.kin != Kin::Asked, Reverse(hit.latency())));
    let mut worst: Vec<&Hit> = Vec::new();
    for hit in hits {
        if worst.iter().all(|one| one.task.tid != hit.task.tid) {
            worst.push(hit);
        }
    }
    let looked = worst.into_iter().take(BESIDE_MAX).map(|hit| Looked {
        task: hit.task.clone(),
        latency: hit.latency(),
        usual: known
            .get(&hit.task.tid)
            .and_then(|known| known.quiet.most(hit)),
    });
    looked.collect()
}

/// How late a line says that something was, where it says so plainly: the least of its numbers of
/// milliseconds or microseconds.
fn said(words: &str) -> Option<Duration> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let units = [("ms", 1e6), ("msec", 1e6), ("us", 1e3), ("usec", 1e3)];
    let unit = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let word = word
            .strip_suffix("secs")
            .map_or(word.to_owned(), |unit| format!("{unit}sec"));
        units
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, ns)| *ns)
    };
    let of_pair = |pair: &[&str]| {
        let number: f64 = pair[0].trim_start_matches(['(', '=']).parse().ok()?;
        Some(number * unit(pair[1])?)
    };
    let joined = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let end = word.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = word[..end].parse().ok()?;
        Some(number * unit(&word[end..])?)
    };
    let all = words.windows(2).filter_map(of_pair);
    let all = all.chain(words.iter().filter_map(joined));
    let least = all
        .filter(|ns| *ns > 0.0 && *ns < 1e15)
        .min_by(f64::total_cmp)?;
    Some(Duration::from_ns(least as i64))
}

/// The kernel says when a task was made in hundredths of a second; its first wake-up comes at once.
const BORN_WITHIN: Duration = Duration::from_ms(11);

/// Whether an activation is the first of a task that was made then.
fn began_with(born: Option<Instant>, hit: &Hit) -> bool {
    born.is_some_and(|born| hit.origin < born + BORN_WITHIN)
}

/// When a task was made; none where it has ended.
fn born(tid: Tid) -> Option<Instant> {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    // Its name may hold anything; the 22nd word is the 20th behind that.
    let (_, behind) = stat.rsplit_once(')')?;
    let ticks: i64 = behind.split_whitespace().nth(19)?.parse().ok()?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1) as i64;
    let since_boot = Duration::from_ns(ticks.saturating_mul(1_000_000_000 / ticks_per_second));
    Some(clock::boot() + since_boot)
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
