//! What the small tests share, which run until their time is over and fit on one table: the wait,
//! on what their figures rest, and how they end.

use std::time::Instant;

use event::Duration;
use host::capabilities::Capabilities;
use report::Measured;

use super::cyclic::kernel;
use crate::exit::{Outcome, print_answer};
use crate::live::Live;
use crate::signals::{self, Request};

/// How often we look whether it is over.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);

/// A wait that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    /// How long it was.
    pub(super) elapsed: Duration,
    /// Whether that is as long as was asked; never where nobody asked.
    pub(super) reached_limit: bool,
}

/// Waits until `limit` is reached, `is_over` says so, or somebody asks for the end. Shows `line`
/// meanwhile.
pub(super) fn until_over(
    limit: Option<Duration>,
    live: &Live,
    is_over: impl Fn() -> bool,
    line: impl Fn(Duration) -> String,
) -> Waited {
    let begin = Instant::now();
    loop {
        let elapsed = Duration::from_ns(begin.elapsed().as_nanos() as i64);
        let reached_limit = limit.is_some_and(|limit| elapsed >= limit);
        if reached_limit || is_over() || signals::request() != Request::GoOn {
            live.clear();
            return Waited {
                elapsed,
                reached_limit,
            };
        }
        live.line(&line(elapsed));
        let left = limit.map_or(LOOK_INTERVAL, |limit| {
            std::time::Duration::from_nanos((limit - elapsed).as_ns_unsigned())
        });
        std::thread::sleep(left.min(LOOK_INTERVAL));
    }
}

/// On what the figures of such a test rest.
pub(super) fn measured<'a>(
    capabilities: &'a Capabilities,
    warnings: &'a [String],
    (elapsed, complete): (Duration, bool),
    over: Option<Duration>,
) -> Measured<'a> {
    Measured {
        elapsed,
        complete,
        over,
        kernel: kernel(capabilities),
        warnings,
    }
}

/// Prints what was found. Where nothing exceeded, only what is `whole` is fine.
pub(super) fn say(text: &str, exceeded: bool, whole: bool) -> event::Result<Outcome> {
    print_answer(text)?;
    Ok(match exceeded {
        true => Outcome::Exceeded,
        false if whole => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
}
