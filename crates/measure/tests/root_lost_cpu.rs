//! A measuring thread whose CPU is taken from it ends with what it had, and says so: nobody
//! measures one CPU under the name of another. Taken by affinity here, as a cpuset does; the
//! laboratory's case `measure-faults` takes it by hotplug. Needs two CPUs and real-time priorities.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration as StdDuration, Instant};

use event::{Cpu, Duration};
use host::clock::Clock;
use host::task::Policy;
use measure::counter::Counter;
use measure::histogram::OVERFLOWS_NAMED;
use measure::looping::{self, LoopEvent, LoopPlan, LoopTracer};
use measure::preempt::chain::{self, ChainPlan};
use measure::preempt::inheritance::{self, InheritancePlan, Protocol};
use measure::preempt::messages::{self, Between, Mechanism, MessagePlan};
use measure::{cyclic, gaps};
use rustix::process::Pid;
use rustix::thread::CpuSet;

/// Long enough for every test here, on a busy machine.
const PATIENCE: StdDuration = StdDuration::from_secs(20);

/// Takes CPU 1 from the thread of this process that is called `name`, once it has run for so long.
fn take_cpu_1_from(name: &str, ran_for_ms: u64) {
    let has_run = || tid_of(name).is_some_and(|tid| ran_for_ns(tid) >= ran_for_ms * 1_000_000);
    until(has_run, name);
    let mut others = CpuSet::new();
    others.set(0);
    rustix::thread::sched_setaffinity(tid_of(name), &others).expect("moved");
}

/// By the first field of `/proc/PID/schedstat`.
fn ran_for_ns(tid: Pid) -> u64 {
    let path = format!("/proc/self/task/{}/schedstat", tid.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let first = text.split(' ').next().and_then(|field| field.parse().ok());
    first.unwrap_or(0)
}

fn tid_of(name: &str) -> Option<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("our threads");
    tasks.filter_map(|task| task.ok()).find_map(|task| {
        let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let tid: i32 = task.file_name().to_str()?.parse().ok()?;
        (comm.trim() == name).then(|| Pid::from_raw(tid))?
    })
}

fn until(is_so: impl Fn() -> bool, what: &str) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "not yet: {what}");
        std::thread::sleep(StdDuration::from_millis(5));
    }
}

/// On the CPUs from 0 on, a thread at SCHED_FIFO 80 for each interval.
fn cyclic_run(clock: Clock, intervals_ms: &[i64]) -> cyclic::Run {
    let threads = intervals_ms
        .iter()
        .zip(0..)
        .map(|(ms, cpu)| cyclic::ThreadPlan {
            cpu: Some(Cpu(cpu)),
            policy: Policy::Fifo(80),
            interval: Duration::from_ms(*ms),
        });
    let run = cyclic::Run::start(&cyclic::Plan {
        threads: threads.collect(),
        clock,
        samples: None,
        break_over: None,
        bucket: Duration::from_us(1),
        buckets: 1000,
        begin: cyclic::Begin::default(),
        sampled_for: None,
        sleep: measure::cyclic::Sleep::Until,
        kept: 0,
        overflows_named: OVERFLOWS_NAMED,
        kept_over: None,
        called: None,
        mark: None,
        phases: None,
    });
    run.expect("starts")
}

#[test]
fn a_cyclic_thread_without_its_cpu_ends_and_the_other_goes_on() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_cyclic_thread_without_its_cpu_ends_and_the_other_goes_on") {
        return;
    }
    let run = cyclic_run(Clock::Monotonic, &[1, 1]);
    take_cpu_1_from("rtscope-cyc1", 1);
    until(|| run.read()[1].lost_cpu, "the loss is seen");
    let [stays_then, lost_then] = [0, 1].map(|one| run.read()[one].latency.samples);
    assert!(lost_then > 0);
    until(
        || run.read()[0].latency.samples > stays_then + 20,
        "the other goes on",
    );
    assert!(!run.is_over());
    let readings = run.finish();
    assert_eq!(readings[1].latency.samples, lost_then);
    assert!(!readings[0].lost_cpu);
}

#[test]
fn who_looks_for_gaps_without_its_cpu_ends_and_the_way_to_another_is_no_gap() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus(
        "who_looks_for_gaps_without_its_cpu_ends_and_the_way_to_another_is_no_gap",
    ) {
        return;
    }
    let run = gaps::Run::start(&gaps::Plan {
        cpus: vec![Cpu(1)],
        policy: Policy::Ordinary,
        counter: Counter::choose(None),
        threshold: Duration::from_ms(60_000),
        window: Duration::from_ms(60_000),
        width: Duration::from_ms(60_000),
        gaps_max: 10,
    });
    let run = run.expect("starts");
    take_cpu_1_from("rtscope-gap1", 50);
    until(|| run.is_over(), "it ends");
    let readings = run.finish().expect("a reading");
    let reading = &readings[0];
    assert!(reading.lost_cpu && reading.iterations > 0);
    assert_eq!((reading.gaps.len(), reading.gaps_unkept), (0, 0));
    assert!(reading.looped >= Duration::from_ms(1), "{reading:?}");
}

#[test]
fn a_loop_without_its_cpu_ends_with_the_iterations_before() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_loop_without_its_cpu_ends_with_the_iterations_before") {
        return;
    }
    for per_second in [None, Some(10_000)] {
        let plan = LoopPlan {
            cpu: Cpu(1),
            policy: Policy::Ordinary,
            iterations: u64::MAX >> 1,
            dropped: 0,
            per_second,
            tracer: LoopTracer::None,
            event: LoopEvent::Numbers,
            interruptions: None,
        };
        let found = std::thread::scope(|scope| {
            let looping = scope.spawn(|| looping::run(&plan, &AtomicBool::new(false)));
            // Longer than what it does before its first iteration.
            take_cpu_1_from("rtscope-loop", 200);
            looping.join().expect("no panic").expect("it runs")
        });
        assert!(found.lost_cpu, "{per_second:?}");
        assert!(found.all.counted > 0, "{per_second:?}");
    }
}

/// So many that an experiment does not end by itself.
const ROUNDS: u64 = u64::MAX >> 1;

/// Takes CPU 1 from the thread `name` of an experiment while that runs; gives what it found.
fn experiment_without_cpu_1<T: Send>(
    name: &str,
    run: impl FnOnce(&Arc<AtomicBool>) -> event::Result<T> + Send,
) -> T {
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let experiment = scope.spawn(|| run(&stop));
        take_cpu_1_from(name, 2);
        experiment.join().expect("no panic").expect("it runs")
    })
}

#[test]
fn a_chain_without_its_cpu_ends_and_a_thread_elsewhere_preempts_nobody() {
    let _alone = testkit::privileged();
    let test = "a_chain_without_its_cpu_ends_and_a_thread_elsewhere_preempts_nobody";
    if !testkit::two_cpus(test) {
        return;
    }
    let plan = ChainPlan {
        cpu: Cpu(1),
        prios: vec![50, 51, 52],
        rounds: ROUNDS,
        interval: Duration::from_us(200),
        bucket: Duration::from_us(1),
        buckets: 1000,
    };
    for name in ["rtscope-pre0", "rtscope-pre1", "rtscope-pre2"] {
        let found = experiment_without_cpu_1(name, |stop| chain::run(&plan, stop));
        assert!(found.lost_cpu, "{name}");
        for step in &found.steps {
            assert!(step.latency.samples > 0, "{name}");
            assert_eq!(step.not_at_once, 0, "{name}");
        }
    }
}

#[test]
fn who_waits_for_a_lock_without_its_cpu_ends_and_nothing_was_inverted() {
    let _alone = testkit::privileged();
    let test = "who_waits_for_a_lock_without_its_cpu_ends_and_nothing_was_inverted";
    if !testkit::two_cpus(test) {
        return;
    }
    let plan = InheritancePlan {
        cpus: vec![Cpu(1)],
        prio: 60,
        protocol: Protocol::Inherit,
        rounds: ROUNDS,
        interval: Duration::from_us(500),
        bucket: Duration::from_us(1),
        buckets: 1000,
    };
    for name in ["rtscope-low", "rtscope-middle", "rtscope-high"] {
        let found = experiment_without_cpu_1(name, |stop| inheritance::run(&plan, stop));
        assert!(found[0].lost_cpu && found[0].wait.samples > 0, "{name}");
        assert_eq!(found[0].inversions, 0, "{name}");
    }
}

#[test]
fn messages_without_a_cpu_end_and_none_is_lost() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("messages_without_a_cpu_end_and_none_is_lost") {
        return;
    }
    let plan = MessagePlan {
        between: Between::Threads,
        sender: Cpu(1),
        receiver: Cpu(1),
        prio: 60,
        rounds: ROUNDS,
        interval: Duration::from_us(200),
        bucket: Duration::from_us(1),
        buckets: 1000,
    };
    for mechanism in Mechanism::ALL {
        for name in ["rtscope-send", "rtscope-recv"] {
            let run = |stop: &_| messages::run(mechanism, &plan, stop);
            let found = experiment_without_cpu_1(name, run);
            let place = format!("{}, {name}", mechanism.name());
            assert_eq!(found.lost_cpu, Some(Cpu(1)), "{place}");
            assert!(found.latency.samples > 0 && !found.lost, "{place}");
        }
    }
}

#[test]
fn a_measurement_ends_in_the_middle_of_a_sleep_of_an_hour() {
    let _alone = testkit::privileged();
    let run = cyclic_run(Clock::Realtime, &[3_600_000]);
    until(|| run.read()[0].latency.samples == 1, "it sleeps");
    run.begin_anew();
    let began = Instant::now();
    let readings = run.finish();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    let reading = &readings[0];
    assert_eq!((reading.latency.samples, reading.unmeasured), (1, 0));
}
