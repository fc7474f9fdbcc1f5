//! Measuring threads whose CPUs something else has meanwhile: ordinary ones, for which nobody needs
//! a privilege.

mod plans;

use event::Duration;
use host::task::Policy;
use measure::cyclic::{Plan, Run, ThreadPlan};

const SAMPLES: u64 = 5;

fn plan() -> Plan {
    let thread = ThreadPlan {
        cpu: None,
        policy: Policy::Ordinary,
        interval: Duration::from_ms(1),
    };
    plans::plan(vec![thread; 2], SAMPLES)
}

fn samples(run: &Run) -> Vec<u64> {
    run.read().iter().map(|one| one.latency.samples).collect()
}

/// In which order a measurement is told to begin and its CPUs are lent is nobody's to say: whoever
/// explains late samples tells it, whoever looks for gaps lends them.
#[test]
fn a_begin_that_comes_while_the_cpus_are_lent_waits_until_they_are_given_back() {
    let run = Run::hold(&plan()).expect("held");
    let work = || {
        run.go();
        // Three times as long as all samples need, from the common first instant on.
        std::thread::sleep(std::time::Duration::from_millis(75));
        samples(&run)
    };
    assert_eq!(run.pauser().during(work), [0, 0]);
    while !run.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(samples(&run), [SAMPLES, SAMPLES]);
}

#[test]
fn who_was_never_told_to_begin_does_not_begin_when_its_cpu_comes_back() {
    let run = Run::hold(&plan()).expect("held");
    run.pauser().during(|| ());
    // As above.
    std::thread::sleep(std::time::Duration::from_millis(75));
    assert_eq!(samples(&run), [0, 0]);
    run.go();
    while !run.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(samples(&run), [SAMPLES, SAMPLES]);
}
