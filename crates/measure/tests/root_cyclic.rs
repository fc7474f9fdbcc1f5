//! Real threads on this machine. Needs real-time priorities.

mod plans;

use event::{Cpu, Duration, Error};
use host::clock::Clock;
use host::task::Policy;
use measure::cyclic::{Begin, Plan, Run, ThreadPlan};

fn thread(cpu: u32, policy: Policy, interval: Duration) -> ThreadPlan {
    ThreadPlan {
        cpu: Some(Cpu(cpu)),
        policy,
        interval,
    }
}

fn plan(threads: Vec<ThreadPlan>) -> Plan {
    plans::plan(threads, 100)
}

fn until_over(run: &Run) {
    while !run.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn each_thread_takes_its_samples_at_its_interval() {
    let _alone = testkit::privileged();
    let ms = Duration::from_ms;
    let threads = vec![
        thread(0, Policy::Fifo(80), ms(1)),
        thread(0, Policy::RoundRobin(70), ms(2)),
        thread(0, Policy::Ordinary, ms(3)),
    ];
    let began_ns = Clock::Monotonic.now_ns();
    let run = Run::start(&plan(threads.clone())).expect("starts");
    until_over(&run);
    let readings = run.finish();
    let elapsed_ns = Clock::Monotonic.now_ns() - began_ns;
    assert_eq!(readings.len(), 3);
    for (reading, asked) in readings.iter().zip(&threads) {
        assert_eq!(&reading.plan, asked);
        assert_eq!(reading.latency.samples, 100);
        let extremes = reading.latency.extremes.expect("samples");
        assert!(extremes.min >= Duration::ZERO, "{extremes:?}");
        assert!(extremes.max.as_ns() < elapsed_ns, "{extremes:?}");
    }
    // A hundred instants of 3 ms each cannot pass sooner.
    assert!(elapsed_ns >= 99 * 3_000_000, "{elapsed_ns}");
}

#[test]
fn a_sample_over_the_limit_ends_all_threads() {
    let _alone = testkit::privileged();
    let thread = thread(0, Policy::Fifo(80), Duration::from_ms(1));
    let run = Run::start(&Plan {
        samples: None,
        // Nobody wakes up in a nanosecond.
        break_over: Some(Duration::from_ns(1)),
        ..plan(vec![thread.clone(), thread])
    });
    let run = run.expect("starts");
    until_over(&run);
    let broken = run.broken().expect("a sample was longer");
    assert!(broken.latency > Duration::from_ns(1));
    let readings = run.finish();
    assert!(readings[broken.thread].latency.samples > broken.sample);
}

#[test]
fn a_clock_that_may_be_set_is_measured_on_too() {
    let _alone = testkit::privileged();
    for clock in [Clock::Realtime, Clock::Tai] {
        let threads = vec![thread(0, Policy::Fifo(80), Duration::from_ms(1))];
        let begin = Begin {
            at_second: true,
            ..Begin::default()
        };
        let run = Run::start(&Plan {
            clock,
            begin,
            samples: Some(20),
            ..plan(threads)
        });
        let run = run.expect("starts");
        until_over(&run);
        assert_eq!(run.finish()[0].latency.samples, 20, "{}", clock.name());
    }
}

#[test]
fn what_cannot_be_measured_is_an_error_in_three_parts() {
    let _alone = testkit::privileged();
    let check = |threads: Vec<ThreadPlan>, expect: &str| {
        let error: Error = Run::start(&plan(threads)).expect_err("refused");
        assert!(error.what().contains(expect), "{error:#}");
        assert!(error.fixed_by().is_some(), "{error:#}");
    };
    check(vec![], "no thread");
    let good = thread(0, Policy::Fifo(80), Duration::from_ms(1));
    let elsewhere = thread(1023, Policy::Fifo(80), Duration::from_ms(1));
    check(vec![good, elsewhere], "cannot run on CPU 1023");
}

#[test]
fn a_measurement_rests_while_its_cpus_are_wanted_and_goes_on_with_its_figures() {
    let _alone = testkit::privileged();
    let ms = Duration::from_ms;
    let threads = vec![
        thread(0, Policy::Fifo(80), ms(1)),
        thread(0, Policy::Fifo(80), ms(2)),
    ];
    let began_ns = Clock::Monotonic.now_ns();
    let elapsed = || Duration::from_ns(Clock::Monotonic.now_ns() - began_ns);
    let run = Run::start(&plan(threads)).expect("starts");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let samples = || -> Vec<u64> {
        let readings = run.read();
        readings.iter().map(|one| one.latency.samples).collect()
    };
    let (before, after) = run.pauser().during(|| {
        let before = samples();
        std::thread::sleep(std::time::Duration::from_millis(200));
        (before, samples())
    });
    assert_eq!(before, after, "nobody measured");
    assert!(
        before.iter().all(|&taken| taken > 0 && taken < 100),
        "{before:?}"
    );
    until_over(&run);
    // A hundred samples each 2 ms, and the rest of 200 ms is no part of it.
    let measured = run.measured();
    assert!(measured >= ms(198), "{measured}");
    assert!(measured < elapsed() - ms(200), "{measured}");
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(run.measured(), measured, "it ended with its last thread");
    for reading in run.finish() {
        assert_eq!(reading.latency.samples, 100);
        // The rest is no latency and none of its instants was missed.
        let missed = reading.missed * reading.plan.interval.as_ns().cast_unsigned();
        assert!(missed < 200_000_000, "{reading:?}");
    }
}

#[test]
fn a_measurement_that_rests_can_be_ended() {
    let _alone = testkit::privileged();
    let mut endless = plan(vec![thread(0, Policy::Fifo(80), Duration::from_ms(1))]);
    endless.samples = None;
    let run = Run::start(&endless).expect("starts");
    let pauser = run.pauser();
    pauser.during(|| pauser.end());
    until_over(&run);
    assert_eq!(run.finish().len(), 1);
}
