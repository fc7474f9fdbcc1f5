//! Recordings that another host gets while they are written: `--to`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration as StdDuration;

use ctf::writer::{Outlet, StagedDir};
use event::{Cpu, Result};
use relay::{Delivered, Delivery, End, Route, To};

use crate::{clock, housekeeping};

/// Of a recording's name; its time comes behind that.
const NAME_CHARS_MAX: usize = 150;
/// So long the end waits for a receiver that takes nothing.
pub(crate) const PATIENCE: StdDuration = StdDuration::from_secs(30);

/// Connects; what routes tell of is delivered from a thread on `cpus`.
///
/// # Errors
/// When there is no such receiver, or it refuses, or no spool can be in `folder`.
pub(crate) fn start(to: &To, folder: &Path, cpus: Vec<Cpu>) -> Result<Delivery> {
    Delivery::start(to, folder, move || housekeeping::pin(&cpus))
}

/// Where a trace of that name is over there, for people.
pub(crate) fn path_there(delivery: &Delivery, name: &str) -> String {
    format!("{}/{}/{name}", delivery.address(), relay::host_name())
}

/// What a recording is called over there: in the alphabet of names, and by its time, because names
/// come again.
fn name_there(name: &str, stamp: &str) -> String {
    let name: String = relay::plain_name(name)
        .chars()
        .take(NAME_CHARS_MAX)
        .collect();
    format!("{name}-{stamp}")
}

/// One recording on its way.
pub(crate) struct Streamed {
    delivery: Delivery,
    route: Route,
    name: String,
}

impl Streamed {
    /// The recording below `root`.
    ///
    /// # Errors
    /// As [`start`].
    pub fn start(to: &To, root: &Path, name: &str, cpus: Vec<Cpu>) -> Result<Streamed> {
        let delivery = start(to, root, cpus)?;
        let name = name_there(name, &clock::stamp(clock::wall_ns()));
        Ok(Streamed {
            route: delivery.route(root, &name)?,
            delivery,
            name,
        })
    }

    /// Who is told of what is written.
    pub fn outlet(&self) -> Arc<dyn Outlet> {
        self.route.outlet()
    }

    /// All of it is written: waits until it is delivered. Gives where it is then.
    pub fn end(
        self,
        staged: StagedDir,
        (events, lost): (u64, u64),
        is_enough: fn() -> bool,
    ) -> (PathBuf, Delivered) {
        let path = path_there(&self.delivery, &self.name);
        self.route.end(End::Whole { events, lost }, staged);
        (path.into(), self.delivery.finish(PATIENCE, is_enough))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_over_there_is_one_on_the_wire_and_ends_with_its_time() {
        let check = |name: &str, expect: &str| {
            let there = name_there(name, "20261124T032140Z");
            assert_eq!(there, format!("{expect}-20261124T032140Z"));
            assert_eq!(relay::plain_name(&there), there, "as the receiver has it");
        };
        check("night", "night");
        check("name with blank \u{fc}", "name_with_blank__");
        check("..", "unnamed");
        check(&"x".repeat(250), &"x".repeat(150));
    }
}
