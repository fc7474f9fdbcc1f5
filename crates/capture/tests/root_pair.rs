//! Check on the running kernel that the tracker of any pair measures what an independent pairing
//! finds: of the events that it saw itself, to the nanosecond; of a recording of the same time; and
//! of a program that writes down when its work began and ended.

#[path = "pair_scene/mod.rs"]
mod pair_scene;

use bpf_host::trackers::{PairPart, PairSeen, TrackerConfig, TrackerWatch};
use bpf_host::{Targets, WatchConfig};
use capture::watch::{PairQuestion, pair, pair_is_of};
use event::evidence::tracked::Tracked;
use event::{Duration, Error, TaskPattern};
use pair_scene::{Interval, Work, paired, recorded};

const MEGABYTE: u32 = 1 << 20;

fn question(from: &str, to: &str, key: &str) -> PairQuestion {
    PairQuestion {
        from: from.into(),
        to: to.into(),
        key: key.into(),
    }
}

/// Everything is a hit.
fn config() -> WatchConfig {
    WatchConfig {
        targets: Targets::All,
        threshold: Duration::from_ns(1),
        rate_limit_interval: Duration::ZERO,
        ..WatchConfig::default()
    }
}

/// A running pair, and what was taken of it.
struct Running {
    watch: TrackerWatch,
    hits: Vec<Tracked>,
    seen: Vec<PairSeen>,
}

impl Running {
    fn start(question: &PairQuestion, watch: WatchConfig) -> Running {
        let (tracker, mut pair) = pair(question).unwrap_or_else(|error| panic!("{error:#}"));
        pair.oracle_bytes = Some(4 * MEGABYTE);
        let config = TrackerConfig {
            watch,
            pair: Some(pair),
            ..TrackerConfig::default()
        };
        let watch =
            TrackerWatch::start(tracker, &config).unwrap_or_else(|error| panic!("{error:#}"));
        Running {
            watch,
            hits: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn take(&mut self) {
        let hits = self.watch.take().expect("hits");
        self.hits.extend(hits.into_iter().map(|hit| hit.tracked));
        self.seen.extend(self.watch.take_seen().expect("events"));
    }

    /// Takes what comes while a child runs.
    fn during(&mut self, mut child: std::process::Child) {
        while child.try_wait().expect("a child").is_none() {
            self.take();
            std::thread::yield_now();
        }
        self.take();
    }

    /// No loss, and the counts are those of the hits.
    fn counted(&self) -> u64 {
        let statistics = self.watch.statistics().expect("counters");
        assert!(
            !statistics.losses.forbid_a_statement(),
            "{:?}",
            statistics.losses
        );
        statistics.series[0].count
    }
}

/// Programs that start programs: wake-ups, switches and calls on every CPU, for a moment.
fn load() -> std::process::Child {
    let script = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); /bin/true & wait; done";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).spawn().expect("a shell")
}

fn as_interval(tracked: &Tracked) -> Interval {
    Interval {
        key: tracked.key,
        begin_ns: tracked.begin.as_ns(),
        end_ns: tracked.end.as_ns(),
    }
}

#[test]
fn its_intervals_are_those_of_the_events_that_it_saw_to_the_nanosecond() {
    let _privileged = testkit::privileged();
    let check = |from: &str, to: &str, key: &str| {
        let mut running = Running::start(&question(from, to, key), config());
        running.during(load());
        let statistics = running.watch.statistics().expect("counters");
        // Events go on until the programs are detached: the last look is at both.
        running.take();
        let seen = running.seen.iter();
        let seen = seen.map(|seen| (seen.at.as_ns(), seen.is_end, seen.numbers[0]));
        let expect = paired(seen.collect());
        let found: Vec<_> = running.hits.iter().map(as_interval).collect();
        let false_ones: Vec<_> = found.iter().filter(|one| !expect.contains(one)).collect();
        assert!(false_ones.is_empty(), "{from}: {false_ones:?}");
        // All were hits. Those that a slow reader lost are counted; what came between the two looks
        // is among the expected alone.
        let (counted, losses) = (statistics.series[0].count, statistics.losses);
        let told = found.len() as u64 + losses.lost;
        assert!(counted >= 20 && expect.len() as u64 >= counted && told >= counted);
        let longest = expect.iter().map(|one| one.end_ns - one.begin_ns).max();
        let worst = statistics.series[0].worst.as_ref().expect("the longest");
        assert!(
            longest >= Some(worst.duration().as_ns()),
            "{from}: {longest:?}"
        );
        assert!(expect.contains(&as_interval(worst)), "{from}: {worst:?}");
        assert_eq!((losses.full, losses.storage_failures), (0, 0), "{from}");
    };
    let woken = "sched_waking/comm in (\"sh\", \"true\")";
    check(woken, "sched_switch", "tid=next_tid");
    let gone = "sched_switch/prev_comm == \"sh\" || prev_comm =* \"t?ue*\"";
    check(gone, "sched_switch", "prev_tid=next_tid");
    let opens = "syscall_entry_openat/$procname == \"t*e\"";
    check(opens, "syscall_exit_openat", "$tid");
}

/// How often a recording is compared before a difference is believed to be the tracker's.
///
/// Linux 6.18 leaves switches out of idle out of recordings (docs/one-truth.md). While a process is
/// preempted in an operation on a BPF map, whoever's that is, it runs no programs at that CPU's
/// tracepoints, and counts what it leaves out.
const COMPARISONS: u32 = 5;

#[test]
fn a_recording_of_the_same_time_has_the_same_intervals() {
    let _privileged = testkit::privileged();
    let mut differences = Vec::new();
    for _ in 0..COMPARISONS {
        match compared_with_a_recording() {
            Ok(()) => return,
            Err(difference) => differences.push(difference),
        }
    }
    panic!("never the same: {differences:#?}");
}

/// This thread, and those that it starts, stay on the first CPU.
fn on_one_cpu() {
    let mut set = rustix::thread::CpuSet::new();
    set.set(0);
    rustix::thread::sched_setaffinity(None, &set).expect("the first CPU");
}

#[test]
fn what_the_kernel_leaves_out_while_a_map_is_read_on_the_cpu_is_counted() {
    let _privileged = testkit::privileged();
    const CALLS: u64 = 50_000;
    let name = "syscall_entry_getpriority";
    let question = question(name, "syscall_exit_getpriority", "$tid");
    let running = Running::start(&question, config());
    let calling = std::thread::spawn(|| {
        on_one_cpu();
        for _ in 0..CALLS {
            let _ = rustix::process::getpriority_process(None);
        }
    });
    let reading = std::thread::spawn(move || {
        on_one_cpu();
        // Each look reads maps; the other thread runs in the middle of them, too.
        while !calling.is_finished() {
            running.watch.keys().expect("keys");
        }
        calling.join().expect("it calls");
        running.watch.statistics().expect("counters")
    });
    let statistics = reading.join().expect("it reads");
    let counts = statistics.pair.expect("counts");
    let (seen, left_out) = (counts.seen[0] + counts.seen[1], statistics.losses.recursion);
    if left_out == 0 && seen < 2 * CALLS {
        let why = "this kernel does not count what it leaves out (Linux before 6.7)";
        return testkit::skip("what_the_kernel_leaves_out_while_a_map_is_read", why);
    }
    assert!(seen + left_out >= 2 * CALLS, "{statistics:?}");
}

/// Runs the load under a tracker and a recording; what only one of them has is the error.
fn compared_with_a_recording() -> Result<(), String> {
    let question = question("sched_waking/prio <= 20", "sched_switch", "tid=next_tid");
    let (running, text) = recorded(&["sched/sched_waking", "sched/sched_switch"], || {
        let mut running = Running::start(&question, config());
        running.during(load());
        running
    });
    let losses = running.watch.statistics().expect("counters").losses;
    if losses.recursion > 0 {
        return Err("the kernel left out events, and counted them".into());
    }
    let recorded = paired(pair_scene::wakeups_and_switches(&text));
    let tracked: Vec<_> = running.hits.iter().map(as_interval).collect();
    assert!(tracked.len() >= 60, "{}", tracked.len());
    let unrecorded = missing_in(&recorded, tracked.iter());
    let first = tracked.iter().map(|one| one.begin_ns).min();
    let last = tracked.iter().map(|one| one.end_ns).max();
    let own = std::process::id() as u64;
    let inside = recorded.iter().filter(|one| {
        let is_inside = Some(one.begin_ns) > first && Some(one.end_ns) < last;
        is_inside && !one.by_process(own, &text)
    });
    let untracked = missing_in(&tracked, inside);
    match unrecorded.is_empty() && untracked.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "not recorded: {unrecorded:?}, not tracked: {untracked:?}"
        )),
    }
}

/// Those of `wanted` that no interval of `of` is.
///
/// A task's intervals do not overlap, so that at most one is the same, however far apart both sides
/// read the clock.
fn missing_in<'a>(
    of: &[Interval],
    wanted: impl Iterator<Item = &'a Interval>,
) -> Vec<&'a Interval> {
    let is_missing = |one: &&Interval| {
        let same = of.iter().filter(|of| of.key == one.key && of.overlaps(one));
        let count = same.count();
        assert!(count <= 1, "{one:?}");
        count == 0
    };
    wanted.filter(is_missing).collect()
}

#[test]
fn a_programs_work_is_measured_by_its_own_ids() {
    let _privileged = testkit::privileged();
    let work = Work::build();
    let file = work.program.display();
    let check = |from: String, to: String, key: &str, shift: u64| {
        let mut running = Running::start(&question(&from, &to, key), config());
        let told = work.run(20);
        running.take();
        running.counted();
        let hits: Vec<_> = running.hits.iter().map(as_interval).collect();
        assert_eq!(hits.len(), told.len(), "{from}: {hits:?}");
        for told in &told {
            let mut found = hits.iter().filter(|one| one.key == told.key + shift);
            let one = found.next().expect("an interval of this id");
            assert!(
                told.begin_ns <= one.begin_ns && one.end_ns <= told.end_ns,
                "{from}: {told:?} {one:?}"
            );
        }
    };
    let function = |kind: &str, name: &str| format!("{kind}:{file}:{name}");
    check(
        function("uprobe", "work_begin"),
        function("uprobe", "work_end"),
        "arg0",
        0,
    );
    // A function's result, with a filter on it.
    let returned = function("uretprobe", "work_begin") + "/ret >= 1000";
    check(
        returned,
        function("uretprobe", "work_end"),
        "ret=ret - 1000",
        1000,
    );
    check(
        function("usdt", "work:begin"),
        function("usdt", "work:end"),
        "arg0",
        0,
    );
    // An argument that is found by an index, beside one that nobody can read.
    check(
        function("usdt", "work:slot_begin") + "/arg2 == -7",
        function("usdt", "work:slot_end") + "/arg2 == -8",
        "arg0",
        0,
    );
}

#[test]
fn a_process_whose_file_was_replaced_is_probed_in_the_file_that_it_runs() {
    let _privileged = testkit::privileged();
    let work = Work::build();
    let mut process = std::process::Command::new(&work.program)
        .arg("100000")
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it runs");
    std::fs::remove_file(&work.program).expect("removed");
    std::fs::copy("/bin/true", &work.program).expect("replaced");
    let (pid, typed) = (process.id(), work.program.display());
    let new = question(
        &format!("uprobe:{typed}:work_begin"),
        "sched_switch",
        "$tid",
    );
    let refused = pair_is_of(&new, &[pid]).expect_err("it runs another file");
    assert!(
        refused
            .fixed_by()
            .is_some_and(|fix| fix.contains(&format!("pid:{pid}")))
    );
    let begin = format!("uprobe:pid:{pid}:work_begin");
    let own = question(&begin, &format!("usdt:pid:{pid}:work:end"), "arg0");
    assert!(pair_is_of(&own, &[pid]).is_ok());
    let mut running = Running::start(&own, config());
    // Its work goes on until it is ended.
    while running.hits.len() < 3 && process.try_wait().expect("a child").is_none() {
        running.take();
        std::thread::yield_now();
    }
    process.kill().and_then(|()| process.wait()).expect("ended");
    assert!(running.hits.len() >= 3, "{:?}", running.watch.statistics());
}

#[test]
fn what_is_open_for_long_is_reported_once_while_it_is_open() {
    let _privileged = testkit::privileged();
    let name = "syscall_entry_clock_nanosleep";
    let question = question(name, "syscall_exit_clock_nanosleep", "$procname,$tid");
    let mut watch = config();
    watch.waiting_after = Some(Duration::from_ms(20));
    watch.threshold = Duration::MAX;
    watch.targets = Targets::Tasks(vec![TaskPattern::parse("sleep").expect("a task")]);
    let mut running = Running::start(&question, watch);
    let mut sleep = std::process::Command::new("sleep")
        .arg("0.2")
        .spawn()
        .expect("sleep");
    let mut open = Vec::new();
    while sleep.try_wait().expect("a child").is_none() {
        let now = pair_scene::now();
        open.extend(running.watch.check_open(now).expect("looked"));
        std::thread::yield_now();
    }
    assert_eq!(open.len(), 1, "{open:?}");
    let tracked = &open[0].tracked;
    assert!(tracked.is_open && tracked.duration() >= Duration::from_ms(20));
    assert_eq!(
        (tracked.key, tracked.label.as_str()),
        (u64::from(sleep.id()), "sleep")
    );
    assert_eq!(running.counted(), 1);
    let PairPart::Text = pair_parts(&running)[0] else {
        panic!("a text first");
    };
}

fn pair_parts(running: &Running) -> &'static [PairPart] {
    match running.watch.tracker().key {
        bpf_host::trackers::KeyKind::Pair(parts) => parts,
        other => panic!("no pair: {other:?}"),
    }
}

#[test]
fn a_table_without_room_loses_begins_that_are_counted_and_makes_nothing_up() {
    let _privileged = testkit::privileged();
    // Each begin has a key of its own, which no end has.
    let question = question("sys_enter", "sys_exit", "$time=0");
    let mut running = Running::start(&question, config());
    let mut writer = std::process::Command::new("dd");
    writer.args([
        "if=/dev/zero",
        "of=/dev/null",
        "bs=1",
        "count=20000",
        "status=none",
    ]);
    running.during(writer.spawn().expect("dd"));
    let statistics = running.watch.statistics().expect("counters");
    let counts = statistics.pair.expect("counts");
    assert!(
        statistics.losses.full > 0 && counts.matched[0] >= 20_000,
        "{statistics:?}"
    );
    assert_eq!((statistics.series[0].count, running.hits.len()), (0, 0));
    assert!(counts.alone >= 20_000);
}

fn refused(from: &str, to: &str, key: &str, what: &str, found: &str) {
    let error: Error = pair(&question(from, to, key)).map(|_| ()).expect_err(from);
    let said = format!(
        "{} {}",
        error.what(),
        error.value_found().unwrap_or_default()
    );
    assert!(said.contains(what) && said.contains(found), "{error:#}");
    assert!(error.fixed_by().is_some(), "{error:#}");
}

#[test]
fn an_argument_of_a_mark_that_cannot_be_read_or_is_not_there_is_refused_where_it_is_asked_for() {
    let _privileged = testkit::privileged();
    let work = Work::build();
    let mark = |filter: &str| format!("usdt:{}:work:slot_begin{filter}", work.program.display());
    let switch = "sched_switch";
    let says = "no number in a register or in memory";
    refused(&mark("/arg1 == 1"), switch, "$tid", says, "at column");
    refused(&mark(""), switch, "arg1=next_tid", says, "arg1=next_tid");
    refused(
        &mark("/arg3 == 1"),
        switch,
        "$tid",
        "no field 'arg3'",
        "at column",
    );
    let none = mark("").replace("slot_begin", "slot_begim");
    refused(
        &none,
        switch,
        "$tid",
        "no marker work:slot_begim",
        "4 markers",
    );
}

#[test]
fn what_cannot_be_asked_is_refused_with_its_place_and_a_remedy() {
    let _privileged = testkit::privileged();
    let switch = "sched_switch";
    refused(
        "sched_swich",
        switch,
        "tid",
        "no such tracepoint",
        "sched_swich",
    );
    refused(
        "sched_waking/oops == 1",
        switch,
        "tid",
        "no field 'oops'",
        "column 14",
    );
    refused(
        "sched_waking/tid = = 1",
        switch,
        "tid",
        "a value is missing",
        "column 20",
    );
    refused(
        "sched_waking/comm =~ \"x\"",
        switch,
        "tid",
        "regular",
        "column 14",
    );
    refused(
        "sched_waking",
        switch,
        "comm=next_tid",
        "a text where",
        "column 1",
    );
    refused(
        "sched_waking",
        switch,
        "target_cpu",
        "sched_switch has no field",
        "column 1",
    );
    refused(
        "uprobe:/bin/sh:no_such_function",
        switch,
        "$tid",
        "/bin/sh",
        "no_such_function",
    );
}
