//! A cyclic measurement under a watch: each late sample is explained.

use std::path::PathBuf;

use capture::facts::Facts;
use capture::watch::{HitReport, Status, WatchObserver};
use event::{Duration, Result};

use super::cyclic::Session;
use crate::flags::Until;
use crate::options::{BUFFER_DEFAULT_BYTES, Rate, SnapshotOptions, Target, WatchOptions};
use crate::paint::Paint;
use crate::verbs::watch::{self, Observer};

/// How the measuring threads are called.
const THREADS: &str = "rtscope-cyc*";

/// A late sample's threshold, and the folder of snapshots.
type Late = (Duration, PathBuf);

/// Watches the threads of a session until it is over; how many samples were explained. Each goes to
/// `hit`.
pub(super) fn watch(
    session: &mut Session,
    late: &Late,
    facts: &Facts,
    hit: &mut dyn FnMut(&HitReport) -> Result<()>,
) -> Result<u64> {
    let mut observer = Explainer { session, hit };
    let command_line = capture::own_command_line();
    let watched = watch::session(&options(late, false))?;
    let status = capture::watch::run(&watched, facts, &command_line, &mut observer)?;
    Ok(status.hits)
}

/// Who prints late samples as `rtscope watch` does.
pub(super) fn printer(late: &Late, paint: Paint, json: bool) -> Observer {
    Observer::new(&options(late, json), paint, false)
}

fn options((over, output): &Late, json: bool) -> WatchOptions {
    WatchOptions {
        target: Target::Tasks(vec![THREADS.to_owned()]),
        prio_min: None,
        cpus: Vec::new(),
        irq: None,
        softirq: None,
        until: Until::SwitchIn,
        over: Some(*over),
        new_worst: false,
        timeout: None,
        rate: Rate {
            hits_max: 1,
            per: Duration::from_ms(1000),
        },
        hits_max: None,
        run_for: None,
        exec: None,
        json,
        snapshot: Some(SnapshotOptions {
            output: output.clone(),
            buffer_bytes: BUFFER_DEFAULT_BYTES,
            user: None,
            events: Vec::new(),
        }),
    }
}

/// Hands on what the watch sees, and ends it with the measurement.
struct Explainer<'a> {
    session: &'a mut Session,
    hit: &'a mut dyn FnMut(&HitReport) -> Result<()>,
}

impl WatchObserver for Explainer<'_> {
    fn armed(&mut self) -> Result<()> {
        Ok(())
    }

    fn hit(&mut self, report: &HitReport) -> Result<()> {
        (self.hit)(report)
    }

    fn status(&mut self, _status: &Status) -> Result<bool> {
        self.session.look();
        Ok(!self.session.is_over())
    }
}
