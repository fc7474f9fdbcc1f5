//! Runs a claim on generated recordings.

use std::fmt::Display;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::fault::Fault;
use crate::recording::Recording;

/// What a claim says when it does not hold.
pub type Claim = Result<(), String>;

/// So many recordings for each claim and fault, unless the variable says otherwise.
const RECORDINGS: u32 = 40;
/// The same where each has to be written to disk.
const RECORDINGS_ON_DISK: u32 = 10;
/// `make test-all` has so many times more.
const TIMES_IN_ALL: u32 = 5;
/// With it, the recordings are others each time.
const RECORDINGS_VARIABLE: &str = "RTSCOPE_RECORDINGS";

/// Claims of which the recordings of `make test-all` hold a counter-example that is known; the
/// fewer ones of `make test` hold none. Each is a defect that is open (docs/one-truth.md); a claim
/// that comes to hold fails until it is taken out of here.
const NOT_YET: &[&str] = &[];

/// Claims something of recordings with this fault; `name` is the test's.
///
/// # Panics
/// When it does not hold, with the shortest recording that shows it; when it holds and is known not
/// to.
pub fn holds(name: &str, fault: Fault, claim: fn(&Recording) -> Claim) {
    let asked_for_more = std::env::var_os(RECORDINGS_VARIABLE).is_some();
    let is_open = NOT_YET.contains(&name) && testkit::is_all() && !asked_for_more;
    let asked = std::env::var(RECORDINGS_VARIABLE).ok();
    let asked: Option<u32> = asked.and_then(|text| text.parse().ok());
    let (cases, max_shrink_iters) = match fault {
        Fault::Damaged => (RECORDINGS_ON_DISK, 200),
        _ => (RECORDINGS, 2_000),
    };
    let config = ProptestConfig {
        cases: asked.unwrap_or(match testkit::is_all() {
            true => cases * TIMES_IN_ALL,
            false => cases,
        }),
        failure_persistence: None,
        max_shrink_iters: if is_open { 0 } else { max_shrink_iters },
        ..ProptestConfig::default()
    };
    let mut runner = match asked {
        Some(_) => TestRunner::new(config),
        None => {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(config, rng)
        }
    };
    let held = runner.run(&fault.recordings(), |recording| {
        claim(&recording).map_err(TestCaseError::fail)
    });
    match held {
        Ok(()) if is_open => panic!("'{name}' holds now: take it out of NOT_YET"),
        Ok(()) => (),
        Err(TestError::Fail(..)) if is_open => (),
        Err(TestError::Fail(why, recording)) => panic!("{why}\n{recording:?}"),
        Err(TestError::Abort(why)) => panic!("no recordings: {why}"),
    }
}

/// The number that a view gives is the other one's.
pub fn same<T: PartialEq + Display>(what: &str, one: T, other: T) -> Claim {
    match one == other {
        true => Ok(()),
        false => Err(format!("{what}: {one} and {other}")),
    }
}

/// A view says no more than is true.
pub fn at_most(what: &str, said: i64, truth: i64) -> Claim {
    match said <= truth {
        true => Ok(()),
        false => Err(format!("{what}: said {said} ns, in truth {truth} ns")),
    }
}

/// A view says all that is proven.
pub fn at_least(what: &str, said: i64, proven: i64) -> Claim {
    match said >= proven {
        true => Ok(()),
        false => Err(format!("{what}: said {said} ns, proven are {proven} ns")),
    }
}
