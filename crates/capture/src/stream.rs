//! Recordings that another host gets while they are written: `--to`.

use std::path::Path;
use std::time::Duration as StdDuration;

use event::{Cpu, Result};
use relay::{Delivery, To};

use crate::{clock, housekeeping};

/// So long the end waits for a receiver that takes nothing.
pub(crate) const PATIENCE: StdDuration = StdDuration::from_secs(30);

/// Connects; what routes tell of is delivered from a thread on `cpus`.
///
/// # Errors
/// When there is no such receiver, or it refuses, or no spool can be in `folder`.
pub(crate) fn start(to: &To, folder: &Path, cpus: Vec<Cpu>) -> Result<Delivery> {
    Delivery::start(to, folder, move || housekeeping::pin(&cpus))
}

/// How a recording is called over there: names come again, times do not.
pub(crate) fn name_there(name: &str) -> String {
    format!("{name}-{}", clock::stamp(clock::wall_ns()))
}

/// Where an archive of that name is over there, for people.
pub(crate) fn path_there(delivery: &Delivery, name: &str) -> String {
    format!("{}/{}/{name}", delivery.address(), relay::host_name())
}
