//! Counts until it is asked to stop: every few seconds for the metrics, every interval for the
//! store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration as Time, Instant};

use bpf_host::{MonitorConfig, PhaseMonitor};
use capture::capabilities;
use event::{Duration, Error, Result};
use host::capabilities::Verb;
use monitor::{Appended, Head, Interval, Late, Metrics, Run, Store};
use rustix::time::ClockId;
use server::{Listening, Pages, serve, serve_known};
use signal_hook::consts::SIGHUP;

use super::clock::{now_ns, wall_ns};
use super::fleet::Pushing;
use super::names::KernelNames;
use super::notify::Notifier;
use super::otlp::Sending;
use super::pages::MonitorPages;
use super::tracked::Tracking;
use super::watching::Watching;
use crate::exit::{Outcome, print};
use crate::flags::Monitor;
use crate::options::{Door, MonitorOptions, Target};
use crate::signals::{self, Request};
use crate::verbs::store::of_all_scopes;
use crate::verbs::watch::targets::{Matched, Whom};

/// The metrics are never older than this.
const TICK: Time = Time::from_secs(10);
/// Between two looks at whether to end.
const LOOK_EVERY: Time = Time::from_millis(200);

/// Runs until Ctrl-C, or for as long as asked; goes on with other settings when they are to be read
/// again.
pub(super) fn run(typed: &Monitor) -> Result<Outcome> {
    let options = MonitorOptions::new(typed)?;
    capabilities::gather().require(Verb::Monitor)?;
    signals::take_over()?;
    let reload = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGHUP, Arc::clone(&reload))
        .map_err(|cause| Error::io("cannot handle signals", cause))?;
    let notifier = Notifier::from_environment();
    let mut daemon = Daemon::start(&options, &notifier)?;
    // Loading programs takes seconds, in which nothing is counted.
    let begun = Instant::now();
    loop {
        daemon.count(&reload, begun);
        if !reload.swap(false, Ordering::Relaxed) {
            daemon.end_watch();
            daemon.close();
            return daemon.say_end();
        }
        notifier.say("RELOADING=1");
        match MonitorOptions::new(typed).and_then(|new| daemon.reload(new)) {
            Ok(()) => note!("settings read again: {}", daemon.plan()),
            // What runs, runs on: a mistake in a file ends no recording of months.
            Err(error) => note!("the settings stay as they were\n{error:#}"),
        }
        notifier.say("READY=1");
    }
}

/// What has a price, so far.
#[derive(Clone, Copy, Default)]
struct Cost {
    programs_ns: u64,
    process_ns: i64,
    /// Of the watch's process, which may be another one meanwhile.
    watch_ns: i64,
}

struct Daemon<'n> {
    options: MonitorOptions,
    counting: PhaseMonitor,
    /// What that counts.
    counted: MonitorConfig,
    tracking: Tracking,
    watching: Option<Watching>,
    names: KernelNames,
    store: Store,
    metrics: Arc<Metrics>,
    pages: Arc<MonitorPages>,
    listening: Option<Listening>,
    notifier: &'n Notifier,
    pushing: Option<Pushing>,
    sending: Option<Sending>,
    /// What was counted since the last interval was closed.
    open: Interval,
    /// When that began, as far as the next end goes.
    opened: Instant,
    /// When what was counted was last taken.
    ticked: Instant,
    /// Where the open part of that began, on the wall clock and on the one that nobody sets.
    began_ns: (i64, i64),
    /// Where the first interval began, on the wall clock; earlier where that was set back since.
    first_ns: i64,
    cost: Cost,
    closed: u64,
    lost: u64,
}

impl<'n> Daemon<'n> {
    fn start(options: &MonitorOptions, notifier: &'n Notifier) -> Result<Daemon<'n>> {
        let run = this_run(options);
        let store = Store::create(&options.store, &run, wall_ns(), options.limits)?;
        let metrics = Arc::new(Metrics::new(&run));
        let pages = Arc::new(MonitorPages::new(Arc::clone(&metrics), options));
        let listening = listen(&pages, options)?;
        let counted = counted(options)?;
        let counting = PhaseMonitor::start(&counted)?;
        let tracking = Tracking::start(options, &counted)?;
        let mut daemon = Daemon {
            options: options.clone(),
            counting,
            counted,
            tracking,
            // By then nothing stands in the way of counting, which is what it is for.
            watching: Watching::start(options)?,
            names: KernelNames::read(),
            store,
            metrics,
            pages,
            listening,
            notifier,
            pushing: options
                .fleet
                .as_ref()
                .map(|fleet| Pushing::new(fleet, &options.store)),
            sending: options.otlp.as_ref().map(Sending::new),
            open: Interval::default(),
            opened: Instant::now(),
            ticked: Instant::now(),
            began_ns: (0, 0),
            first_ns: 0,
            cost: Cost::default(),
            closed: 0,
            lost: 0,
        };
        daemon.begin();
        give_memory_back();
        note!("{}", daemon.plan());
        notifier.say("READY=1\nWATCHDOG=1");
        Ok(daemon)
    }

    /// What was counted, and what it cost to begin, are no part of the first interval.
    fn begin(&mut self) {
        self.counting.close();
        let symbols = self.names.symbols();
        self.tracking.add_to(&mut Interval::default(), 0, symbols);
        self.began_ns = (wall_ns(), now_ns(ClockId::Monotonic));
        self.first_ns = self.began_ns.0;
        self.opened = Instant::now();
        self.cost = self.cost_now();
    }

    fn plan(&self) -> String {
        let (every, store) = (self.options.every, self.options.store.display());
        format!("an interval every {every:#} into {store}")
    }

    /// Goes on with other settings. The interval that is open stays open where the same is counted
    /// into the same store; else it is closed. What can fail comes first: then all stays as it was.
    fn reload(&mut self, new: MonitorOptions) -> Result<()> {
        let run = this_run(&new);
        let (counts, store) = (counted(&new)?, &new.store);
        let tracks = |options: &MonitorOptions| (options.trackers.clone(), options.pair.clone());
        let is_counted = counts == self.counted && tracks(&new) == tracks(&self.options);
        let counting = (!is_counted)
            .then(|| {
                Ok((
                    PhaseMonitor::start(&counts)?,
                    Tracking::start(&new, &counts)?,
                ))
            })
            .transpose()?;
        let store = (*store != self.options.store)
            .then(|| Store::create(store, &run, wall_ns(), new.limits))
            .transpose()?;
        if new.door != self.options.door {
            self.listening = listen(&self.pages, &new)?;
        }
        let is_watched = self
            .watching
            .as_ref()
            .is_some_and(|watch| watch.is_of(&new));
        if !is_watched {
            self.end_watch();
        }
        if counting.is_some() || store.is_some() {
            self.close();
            self.opened = Instant::now();
        }
        match store {
            Some(store) => {
                self.lost += self.store.waiting() as u64;
                self.store = store;
            }
            None if counting.is_some() => self.store.begin_run(&run, wall_ns())?,
            None => {}
        }
        self.store.limit(new.limits);
        if new.fleet != self.options.fleet || new.store != self.options.store {
            let fleet = new.fleet.as_ref();
            self.pushing = fleet.map(|fleet| Pushing::new(fleet, &new.store));
        }
        if new.otlp != self.options.otlp {
            self.sending = new.otlp.as_ref().map(Sending::new);
        }
        self.pages.show(&new);
        self.options = new;
        if let Some((counting, tracking)) = counting {
            (self.counting, self.counted) = (counting, counts);
            self.tracking = tracking;
            self.begin();
        }
        if !is_watched {
            self.watch();
        }
        Ok(())
    }

    /// Starts the watch that is asked for; counting goes on without it.
    fn watch(&mut self) {
        match Watching::start(&self.options) {
            Ok(watching) => self.watching = watching,
            Err(error) => note!("{error:#}"),
        }
    }

    /// Ends the watch: what it found is in the interval that is open.
    fn end_watch(&mut self) {
        let ended = self.watching.take().map(Watching::finish);
        self.add_late(ended.unwrap_or_default());
    }

    /// Puts what was late into the interval in which it ended: explaining it took a while.
    fn add_late(&mut self, all: Vec<Late>) {
        let since_ns = match self.open.head == Head::default() {
            true => self.began_ns.0,
            false => self.open.head.begin_ns,
        };
        for late in all {
            self.metrics.late(&late);
            if late.at_ns >= since_ns || !self.store.add_late(&late) {
                self.open.add_late(late);
            }
        }
    }

    /// Counts until somebody asks to stop or to read the settings again.
    fn count(&mut self, reload: &AtomicBool, begun: Instant) {
        let time = |duration: Duration| Time::from_nanos(duration.as_ns_unsigned());
        let every = time(self.options.every);
        let end = self.options.run_for.map(|run_for| begun + time(run_for));
        loop {
            let now = Instant::now();
            // Not from now on: whoever has the settings read again puts off nothing.
            let next_close = self.opened + every;
            self.counting.measure_cost();
            self.tracking.cost_ns();
            let is_over = end.is_some_and(|end| now >= end);
            if is_over || reload.load(Ordering::Relaxed) || signals::request() != Request::GoOn {
                return;
            }
            if now >= next_close {
                self.close();
                // Late, it does not hurry afterwards.
                let is_late = now >= next_close + every;
                self.opened = if is_late { now } else { next_close };
            } else if now >= self.ticked + TICK {
                self.tick();
            }
            let wait = [Some(self.ticked + TICK), Some(self.opened + every), end]
                .into_iter()
                .flatten();
            let wait = wait.map(|at| at.saturating_duration_since(Instant::now()));
            std::thread::sleep(wait.min().unwrap_or(LOOK_EVERY).min(LOOK_EVERY));
        }
    }

    /// Takes what was counted since the last call.
    fn tick(&mut self) {
        let counted = self.counting.close();
        let (wall_ns, mono_ns) = (wall_ns(), now_ns(ClockId::Monotonic));
        let cost = self.cost_now();
        let losses = &counted.losses;
        let head = Head {
            begin_ns: self.began_ns.0,
            end_ns: wall_ns,
            elapsed: Duration::from_ns(mono_ns - self.began_ns.1),
            lost: losses.storage_failures + losses.unpaired + losses.unseen + losses.recursion,
            hidden: losses.hidden,
            lost_tracked: 0,
            worst_missed: losses.worst_missed,
            unsaved: 0,
            cost: cost.since(self.cost),
        };
        let ahead_ns = wall_ns - mono_ns;
        let scopes = self.options.scopes();
        let mut part = Interval::of(head, &counted.series, &scopes, ahead_ns, &self.names);
        part.linear = linear(&counted);
        let symbols = self.names.symbols();
        self.tracking.add_to(&mut part, ahead_ns, symbols);
        (self.began_ns, self.cost) = ((wall_ns, mono_ns), cost);
        self.metrics.add(&part);
        if let Some(sending) = &mut self.sending {
            sending.counted(&self.metrics);
        }
        if self.open.head == Head::default() {
            let late = std::mem::take(&mut self.open.late);
            self.open = Interval { late, ..part };
        } else {
            self.open.append(part);
        }
        let found = self.watching.as_mut().map(Watching::take);
        self.add_late(found.unwrap_or_default());
        self.ticked = Instant::now();
        self.notifier.say("WATCHDOG=1");
    }

    /// Ends the interval and stores it.
    fn close(&mut self) {
        self.tick();
        let interval = std::mem::take(&mut self.open);
        self.first_ns = self.first_ns.min(interval.head.begin_ns);
        self.closed += 1;
        match self.store.append(interval.clone()) {
            Appended::Stored => {}
            Appended::StoredAnew => {
                let path = self.store.path().display();
                note!("{path} was removed or moved: begun anew, with this interval");
            }
            Appended::Waits(error, waiting) => {
                note!("{waiting} closed intervals wait for the store\n{error:#}");
            }
            Appended::Lost(error) => {
                self.lost += 1;
                note!("a closed interval is lost, the oldest that waited\n{error:#}");
            }
        }
        let bytes = self.store.bytes().unwrap_or(0);
        self.metrics.closed(&interval, self.lost, bytes);
        if let Some(pushing) = &mut self.pushing {
            pushing.closed();
        }
        if self.watching.as_mut().is_some_and(Watching::has_ended) {
            self.end_watch();
            self.watch();
        }
    }

    fn say_end(&self) -> Result<Outcome> {
        let range = monitor::Range {
            begin_ns: self.first_ns,
            ..monitor::Range::ALL
        };
        print(&of_all_scopes(&self.store, range, 1)?)?;
        let what = if self.closed == 1 {
            "interval"
        } else {
            "intervals"
        };
        let closed = format!("{} {what}", self.closed);
        let missing = self.lost + self.store.waiting() as u64;
        if missing > 0 {
            note!("{closed} closed; {missing} are lost: the store took none");
            return Ok(Outcome::Inconclusive);
        }
        note!("{closed} closed; rtscope monitor report has them all");
        Ok(Outcome::Fine)
    }

    fn cost_now(&self) -> Cost {
        Cost {
            programs_ns: self.counting.cost_ns() + self.tracking.cost_ns(),
            process_ns: now_ns(ClockId::ProcessCPUTime),
            watch_ns: self
                .watching
                .as_ref()
                .map_or(0, |watch| watch.cpu().as_ns()),
        }
    }
}

impl Cost {
    fn since(self, before: Cost) -> Duration {
        let programs_ns = self.programs_ns.saturating_sub(before.programs_ns);
        let watch_ns = match self.watch_ns >= before.watch_ns {
            true => self.watch_ns - before.watch_ns,
            false => self.watch_ns,
        };
        Duration::from_ns(programs_ns as i64 + self.process_ns - before.process_ns + watch_ns)
    }
}

/// What only the start needed: the types of the kernel, its functions as text, the programs.
fn give_memory_back() {
    // SAFETY: it touches what is free alone.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What is counted in the kernel: whoever is named, and who is there by a program's name or in a
/// group, as they are now.
fn counted(options: &MonitorOptions) -> Result<MonitorConfig> {
    let matched = Matched::find(&Whom {
        target: Target::Tasks(options.named.clone()),
        asked: options.groups.clone(),
        family: None,
    })?;
    let named = options.named.iter().cloned();
    Ok(MonitorConfig {
        named: named.chain(matched.by_program()).collect(),
        members: matched.members(),
        every_task: options.all,
        until_return: options.until_return,
        linear: options.linear,
        ..MonitorConfig::default()
    })
}

fn listen(pages: &Arc<MonitorPages>, options: &MonitorOptions) -> Result<Option<Listening>> {
    let pages: Arc<dyn Pages> = pages.clone();
    let listening = match &options.door {
        None => return Ok(None),
        Some(Door::Here(port)) => serve(pages, *port)?,
        Some(Door::Known(address, token)) => serve_known(pages, *address, token.clone())?,
    };
    print(&format!("{}metrics\n", listening.url))?;
    note!("{} is the page of it", listening.url);
    Ok(Some(listening))
}

fn linear(
    counted: &bpf_host::PhaseInterval,
) -> Vec<(abi::monitor::Phase, event::Cpu, monitor::Linear)> {
    let of = |series: &bpf_host::LinearSeries| {
        let phase = *abi::monitor::Phase::ALL.get(usize::from(series.phase))?;
        let counts = series.counts.iter();
        let counts = counts.map(|(us, count)| (*us, u64::from(*count)));
        Some((phase, series.cpu, monitor::Linear(counts.collect())))
    };
    counted.linear.iter().filter_map(of).collect()
}

/// This process on this boot of this machine.
fn this_run(options: &MonitorOptions) -> Run {
    let fact = |file: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}"));
        text.unwrap_or_default().trim().to_owned()
    };
    let named = options.named.iter().map(ToString::to_string);
    let groups = options.groups.iter().map(ToString::to_string);
    let named: Vec<String> = named.chain(groups).collect();
    Run {
        host: fact("hostname"),
        kernel: fact("osrelease"),
        boot_id: fact("random/boot_id"),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        settings: serde_json::json!({
            "task": named,
            "all": options.all,
            "return": options.until_return,
            "linear": options.linear,
            "tracker": options.trackers,
            "pair": options.pair.as_ref().map(|pair| [&pair.from, &pair.to, &pair.key]),
        })
        .to_string(),
    }
}
