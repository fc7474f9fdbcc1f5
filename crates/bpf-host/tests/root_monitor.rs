//! Check on the running kernel that the phases of a real-time task are counted, each wake-up once,
//! however often an interval is closed meanwhile, and that they agree with what the task saw.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use abi::monitor::{GROUP_NAMED, GROUP_REAL_TIME, Phase, PhaseSeries, PhaseWorst};
use bpf_host::{MonitorConfig, PhaseInterval, PhaseMonitor};
use event::TaskPattern;

const NAME: &str = "phased";
/// Between the first sleep and the last so many intervals are closed.
const CLOSES: usize = 20;
const SLEEPS_MAX: usize = 20_000;
const PERIOD_NS: i64 = 500_000;
const CLOSE_EVERY: std::time::Duration = std::time::Duration::from_millis(5);
/// The kernel's programs and user space read one clock by two ways.
const SKEW_NS: i64 = 2_000;
/// With more lost activations than this a task is watched again, so often.
const LOST_MAX: u64 = 1;
const AGAIN_MAX: usize = 10;

/// What the task itself saw.
struct Seen {
    slept: i64,
    latencies_ns: Vec<i64>,
}

impl Seen {
    /// The sum of so many of the longest.
    fn longest_ns(&self, many: usize) -> i64 {
        let mut latencies_ns = self.latencies_ns.clone();
        latencies_ns.sort_unstable();
        latencies_ns.iter().rev().take(many).sum()
    }
}

fn now_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn voluntary_switches() -> i64 {
    // SAFETY: the call fills a plain structure of ours.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nvcsw
    }
}

/// Sleeps until moments that lie ahead; a task that the machine held up meanwhile does not sleep,
/// which its own count of switches tells.
fn sleep_and_look(stop: &AtomicBool) -> Seen {
    let param = libc::sched_param { sched_priority: 50 };
    // SAFETY: the calls read initialised structures and texts, and affect this thread only.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"phased".as_ptr());
        assert_eq!(libc::sched_setscheduler(0, libc::SCHED_FIFO, &param), 0);
    }
    let mut latencies_ns = Vec::with_capacity(SLEEPS_MAX);
    let before = voluntary_switches();
    while latencies_ns.len() < SLEEPS_MAX && !stop.load(Ordering::Acquire) {
        let due_ns = now_ns() + PERIOD_NS;
        let due = libc::timespec {
            tv_sec: due_ns / 1_000_000_000,
            tv_nsec: due_ns % 1_000_000_000,
        };
        // SAFETY: `due` lives for the call.
        unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &due,
                std::ptr::null_mut(),
            );
        }
        latencies_ns.push(now_ns() - due_ns);
    }
    Seen {
        slept: voluntary_switches() - before,
        latencies_ns,
    }
}

/// By phase: count, sum in nanoseconds, the longest.
type Sums = BTreeMap<u8, (u64, i64, Option<PhaseWorst>)>;

fn add(sums: &mut Sums, series: &PhaseSeries) {
    let sum = sums.entry(series.phase).or_default();
    sum.0 += series.count();
    sum.1 += series.sum.as_ns();
    let longest = sum.2.as_ref().map(|worst| worst.value);
    if series.worst.as_ref().map(|worst| worst.value) > longest {
        sum.2.clone_from(&series.worst);
    }
}

/// Closes intervals while the task sleeps; the last one is that of a monitor beside it, which was
/// closed once.
fn watch() -> (Seen, Vec<PhaseInterval>, PhaseInterval) {
    let config = MonitorConfig {
        named: vec![TaskPattern::parse(NAME).expect("names tasks")],
        until_return: true,
        linear: true,
        ..MonitorConfig::default()
    };
    let mut monitor = PhaseMonitor::start(&config).expect("it starts");
    let mut beside = PhaseMonitor::start(&config).expect("it starts");
    let stop = AtomicBool::new(false);
    let mut intervals = Vec::new();
    let seen = std::thread::scope(|scope| {
        let task = scope.spawn(|| sleep_and_look(&stop));
        for _ in 0..CLOSES {
            std::thread::sleep(CLOSE_EVERY);
            intervals.push(monitor.close());
        }
        stop.store(true, Ordering::Release);
        task.join().expect("the task ends")
    });
    intervals.push(monitor.close());
    (seen, intervals, beside.close())
}

/// What a task saw that slept for so many intervals, and what a monitor counted of it that is
/// called for no event of `left_out`.
fn watch_deaf(left_out: &'static [&'static str], until_return: bool) -> (Seen, PhaseInterval) {
    let config = MonitorConfig {
        named: vec![TaskPattern::parse(NAME).expect("names tasks")],
        until_return,
        left_out,
        ..MonitorConfig::default()
    };
    let mut monitor = PhaseMonitor::start(&config).expect("it starts");
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let task = scope.spawn(|| sleep_and_look(&stop));
        std::thread::sleep(CLOSE_EVERY * CLOSES as u32);
        stop.store(true, Ordering::Release);
        task.join().expect("the task ends")
    });
    (seen, monitor.close())
}

/// What becomes of activations that no program sees.
#[derive(Debug, PartialEq, Eq)]
enum Unseen {
    /// Nearly all are counted, with their lengths.
    Counted,
    /// Nearly all are counted as lost.
    Lost,
}

#[test]
fn who_was_not_seen_to_be_woken_is_counted_by_the_kernels_accounts_or_as_lost() {
    let _lock = testkit::privileged();
    let check = |left_out: &'static [&'static str], until_return: bool, expect: Unseen| {
        // A few are lost altogether on a kernel that leaves out calls of programs, and said so.
        let mut watched = watch_deaf(left_out, until_return);
        for _ in 0..AGAIN_MAX {
            if expect == Unseen::Lost || watched.1.losses.unseen <= LOST_MAX {
                break;
            }
            watched = watch_deaf(left_out, until_return);
        }
        let (seen, interval) = watched;
        let (sums, losses) = (sums([&interval]), interval.losses);
        let of = |phase: Phase| {
            sums.get(&(phase as u8))
                .map_or((0, 0), |sum| (sum.0, sum.1))
        };
        let counted = of(Phase::TimerWakeupSwitch);
        let told = (losses.hidden.max(counted.0) + losses.unseen) as i64;
        let about = format!("{left_out:?} {counted:?} of {} {losses:?}", seen.slept);
        // Some are of other tasks, and one may be open at either end.
        assert!(told + 2 >= seen.slept, "{about}");
        if expect == Unseen::Lost {
            assert_eq!((counted.0, losses.hidden), (0, 0), "{about}");
            return;
        }
        assert!(
            counted.0 as i64 + 2 >= seen.slept && losses.hidden > 0,
            "{about}"
        );
        let own_ns: i64 = seen.latencies_ns.iter().sum();
        let skew_ns = SKEW_NS * seen.slept;
        assert!(counted.1 <= own_ns + skew_ns, "{own_ns} {about}");
        if until_return {
            let total = of(Phase::Total);
            assert!(total.0 as i64 + 2 >= seen.slept, "{total:?} {about}");
            let least_ns = own_ns - seen.longest_ns(seen.latencies_ns.len() - total.0 as usize);
            let range = least_ns - skew_ns * 3..=own_ns + skew_ns * 3;
            assert!(range.contains(&total.1), "{total:?} {range:?} {about}");
        }
    };
    if std::fs::metadata("/proc/self/schedstat").is_err() {
        let name = "who_was_not_seen_to_be_woken_is_counted_by_the_kernels_accounts_or_as_lost";
        return testkit::skip(name, "this kernel has no CONFIG_SCHED_INFO");
    }
    check(&["sched_waking"], true, Unseen::Counted);
    check(&["sched_waking"], false, Unseen::Counted);
    check(&["sched_wakeup"], true, Unseen::Counted);
    check(&["sched_waking", "sched_switch"], true, Unseen::Lost);
}

/// Of the task, by phase.
fn sums<'i>(intervals: impl IntoIterator<Item = &'i PhaseInterval>) -> Sums {
    let mut sums = Sums::new();
    for series in intervals.into_iter().flat_map(|interval| &interval.series) {
        if series.group == GROUP_REAL_TIME | GROUP_NAMED {
            add(&mut sums, series);
        }
    }
    sums
}

#[test]
fn no_wake_up_is_lost_between_intervals_and_its_phases_are_what_the_task_saw() {
    let _lock = testkit::privileged();
    let (seen, intervals, beside) = watch();
    assert!(seen.slept > 0, "the task never slept");
    // What the kernel left out of the one it need not have left out of the other.
    let all = intervals.iter().chain([&beside]);
    let uneven: u64 = all.map(|one| one.losses.hidden + one.losses.unseen).sum();
    let (sums, beside) = (sums(&intervals), sums([&beside]));
    let of = |phase: Phase| sums.get(&(phase as u8)).cloned().unwrap_or_default();
    for phase in Phase::ALL {
        let counted = of(phase).0;
        let once = beside.get(&(phase as u8)).map_or(0, |sum| sum.0);
        assert!(
            counted.abs_diff(once) <= uneven,
            "{}: {counted} {once} {uneven}",
            phase.name()
        );
        assert!(
            0 < counted && counted as i64 <= seen.slept,
            "{counted} of {}",
            seen.slept
        );
    }
    let whole = of(Phase::TimerWakeupSwitch).1;
    assert_eq!(of(Phase::TimerWakeup).1 + of(Phase::Switch).1, whole);
    let losses = intervals.iter().map(|interval| interval.losses);
    let (hidden, unpaired) = losses.fold((0, 0), |(hidden, unpaired), one| {
        (hidden + one.hidden, unpaired + one.unpaired)
    });
    assert_eq!(unpaired, 0);
    // The kernel's accounts have timer and wake-up of what no program saw as one.
    if hidden == 0 {
        assert_eq!(
            of(Phase::Timer).1 + of(Phase::Wakeup).1,
            of(Phase::TimerWakeup).1
        );
    }
    assert_eq!(whole + of(Phase::Return).1, of(Phase::Total).1);
    let own: i64 = seen.latencies_ns.iter().sum();
    let skew = SKEW_NS * seen.latencies_ns.len() as i64;
    assert!(of(Phase::Total).1 <= own + skew, "{own} beside {sums:?}");
    let worst = of(Phase::Total).2.expect("a longest one");
    let longest = seen.latencies_ns.iter().max().expect("samples");
    assert!(worst.value.as_ns() <= longest + SKEW_NS);
    let switch = of(Phase::TimerWakeupSwitch).2.expect("a longest one");
    assert_eq!(switch.victim.expect("a victim").comm, NAME);
    assert_eq!(
        switch.call,
        bpf_host::trackers::call_number("clock_nanosleep").map(|n| n as u32)
    );
    assert!(switch.culprit.is_some());
    late_timers_have_somebody_who_was_interrupted(&intervals);
    osadl_has_what_the_buckets_have(&intervals);
}

/// Whatever else was longer in the interval: of the longest of a timer, on the CPU that had it.
fn late_timers_have_somebody_who_was_interrupted(intervals: &[PhaseInterval]) {
    for interval in intervals {
        let timer = interval
            .series
            .iter()
            .filter(|series| series.phase == Phase::Timer as u8);
        let Some(worst) = timer
            .filter_map(|series| series.worst.as_ref())
            .max_by_key(|w| w.value)
        else {
            continue;
        };
        assert!(worst.culprit.is_some(), "{worst:?}");
    }
}

/// Both forms count the same real-time tasks, whoever they are.
fn osadl_has_what_the_buckets_have(intervals: &[PhaseInterval]) {
    for phase in Phase::ALL {
        let series = intervals.iter().flat_map(|interval| &interval.series);
        let real_time = series
            .filter(|series| series.phase == phase as u8 && series.group & GROUP_REAL_TIME != 0);
        let linear = intervals.iter().flat_map(|interval| &interval.linear);
        let linear = linear.filter(|linear| linear.phase == phase as u8);
        let counts = linear.flat_map(|linear| &linear.counts);
        let counted: u64 = counts.map(|(_, count)| u64::from(*count)).sum();
        let expect: u64 = real_time.map(PhaseSeries::count).sum();
        assert_eq!(counted, expect, "{}", phase.name());
    }
}
