//! A cyclic measurement under a watch: each late sample is explained.

use std::path::PathBuf;

use bpf_host::Members;
use capture::Keep;
use capture::watch::{HitReport, Status, WatchObserver};
use event::{Duration, Result, TaskPattern};
use host::capabilities::Capabilities;
use host::task::Hurry;
use report::Late;

use super::session::Session;
use crate::flags::Until;
use crate::options::{Actions, BUFFER_DEFAULT_BYTES, Rate, SnapshotOptions, Target, WatchOptions};
use crate::paint::Paint;
use crate::verbs::watch::{self, Observer, Running, hit_value};

/// How the measuring threads are called.
const THREADS: &str = "rtscope-cyc*";

/// What is explained.
#[derive(Clone, Debug)]
pub(super) struct Explain {
    /// Late samples: longer than this.
    pub(super) over: Duration,
    /// The folder of snapshots.
    pub(super) output: PathBuf,
    /// The worst of them, so many.
    pub(super) worst: usize,
    /// What is done at each.
    pub(super) actions: Actions,
}

/// Watches the threads of a session that is held, from its begin until it is over, and says how it
/// went. Each explained sample goes to `hit`.
pub(super) fn watch(
    session: &mut Session,
    explain: &Explain,
    capabilities: &Capabilities,
    hit: &mut dyn FnMut(&HitReport) -> Result<()>,
) -> Result<Late> {
    let mut observer = Explainer {
        session,
        hit,
        exec: explain.actions.exec.as_deref(),
        running: Running::default(),
        hurry: Some(Hurry::begin()),
    };
    let command_line = capture::own_command_line();
    let watched = watch::session(&options(explain))?;
    let status = capture::watch::run(&watched, capabilities, &command_line, &mut observer)?;
    observer.running.finish();
    Ok(Late {
        over: explain.over,
        explained: status.hits,
        suppressed: status.statistics.suppressed,
        lost: status.statistics.lost,
        cost: status.cost.programs,
        samples: vec![],
    })
}

/// Who prints late samples as `rtscope watch` does.
pub(super) fn printer(explain: &Explain, paint: Paint) -> Observer {
    Observer::new(&options(explain), paint, false)
}

fn options(explain: &Explain) -> WatchOptions {
    let Explain {
        over,
        output,
        worst,
        actions,
    } = explain;
    // The worst may come right behind another: the threshold keeps the others away.
    let per = Duration::ZERO;
    WatchOptions {
        target: Target::Tasks(TaskPattern::parse(THREADS).into_iter().collect()),
        groups: Vec::new(),
        members: Members::default(),
        command: Vec::new(),
        prio_min: None,
        cpus: Vec::new(),
        irq: None,
        softirq: None,
        // A sample ends in user space, where the thread may have been put off after it was
        // scheduled in.
        until: Until::Block,
        over: Some(*over),
        new_worst: false,
        timeout: None,
        triggers: Vec::new(),
        worst: Some(*worst),
        rate: Rate { hits_max: 1, per },
        hits_max: None,
        run_for: None,
        // Ours to run, whoever shows the hits.
        exec: None,
        bpf_action: actions.bpf_action.clone(),
        json: false,
        snapshot: Some(SnapshotOptions {
            output: output.clone(),
            buffer_bytes: BUFFER_DEFAULT_BYTES,
            user: None,
            keep: Keep::ALL,
            events: Vec::new(),
        }),
    }
}

/// Hands on what the watch sees, and ends it with the measurement.
struct Explainer<'a> {
    session: &'a mut Session,
    hit: &'a mut dyn FnMut(&HitReport) -> Result<()>,
    exec: Option<&'a str>,
    running: Running,
    /// Until it is armed, which takes a second of a CPU, and ten where loads have most of it; and
    /// once nobody measures any more.
    hurry: Option<Hurry>,
}

impl WatchObserver for Explainer<'_> {
    /// Not before: arming takes a second of a CPU, and whom that makes late nobody could explain.
    fn armed(&mut self) -> Result<()> {
        self.hurry = None;
        self.session.go();
        Ok(())
    }

    fn hit(&mut self, report: &HitReport) -> Result<()> {
        if let Some(command) = self.exec {
            self.running
                .start(command, &hit_value(report).to_string())?;
        }
        (self.hit)(report)
    }

    fn status(&mut self, _status: &Status) -> Result<bool> {
        self.session.look();
        self.running.reap();
        let is_over = self.session.is_over();
        if is_over {
            // What was caught is still to be written, and nobody measures meanwhile.
            self.session.run.stop();
            self.hurry = Some(Hurry::begin());
        }
        Ok(!is_over)
    }
}
