//! A cyclic measurement under a watch: each late sample is explained.

use bpf_host::{Members, Watch};
use capture::Keep;
use capture::watch::{HitReport, Status, WatchObserver};
use event::{Duration, Instant, Result, TaskPattern, TimeRange};
use host::capabilities::Capabilities;
use host::task::Hurry;
use report::Late;

use super::session::Session;
use crate::flags::Until;
use crate::options::{
    BUFFER_DEFAULT_BYTES, ExplainOptions, Rate, SnapshotOptions, Target, WatchOptions,
};
use crate::paint::Paint;
use crate::verbs::watch::{self, Observer, Running, hit_value};

/// How the measuring threads are called.
const THREADS: &str = "rtscope-cyc*";

/// Refuses a function for late samples that cannot be read, or that the kernel refuses: nobody
/// measures for minutes to learn that.
pub(super) fn check(explain: &ExplainOptions) -> Result<()> {
    if explain.actions.bpf_action.is_none() {
        return Ok(());
    }
    // It says so of one that was linked into the programs that would find the samples.
    Watch::start(&watch::session(&options(explain))?.watch).map(drop)
}

/// Watches the threads of a session that is held, from its begin until it is over, and says how it
/// went. Each explained sample goes to `hit`.
pub(super) fn watch(
    session: &mut Session,
    explain: &ExplainOptions,
    capabilities: &Capabilities,
    hit: &mut dyn FnMut(&HitReport) -> Result<()>,
) -> Result<Late> {
    let mut observer = Explainer {
        session,
        hit,
        exec: explain.actions.exec.as_deref(),
        running: Running::default(),
        hurry: Some(Hurry::begin()),
        over: explain.over,
        no_samples: 0,
    };
    let command_line = capture::own_command_line();
    let watched = watch::session(&options(explain))?;
    let status = capture::watch::run(&watched, capabilities, &command_line, &mut observer)?;
    observer.running.finish();
    Ok(Late {
        over: explain.over,
        explained: status.hits.saturating_sub(observer.no_samples),
        suppressed: status.statistics.suppressed,
        lost: status.statistics.lost,
        cost: status.cost.programs,
        samples: vec![],
    })
}

/// Who prints late samples as `rtscope watch` does.
pub(super) fn printer(explain: &ExplainOptions, paint: Paint) -> Observer {
    Observer::new(&options(explain), paint, false)
}

fn options(explain: &ExplainOptions) -> WatchOptions {
    let ExplainOptions {
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
            keep_earlier: false,
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
    over: Duration,
    /// Hits that were none: what a thread did as it ended.
    no_samples: u64,
}

/// Whether a sample of a thread that had its last one at `ended` was late: what that thread did
/// behind it, it did to end.
fn is_sample(hit: TimeRange, ended: Option<Instant>, over: Duration) -> bool {
    hit.end.min(ended.unwrap_or(hit.end)) - hit.begin >= over
}

impl WatchObserver for Explainer<'_> {
    /// Not before: arming takes a second of a CPU, and whom that makes late nobody could explain.
    fn armed(&mut self) -> Result<()> {
        self.hurry = None;
        self.session.go();
        Ok(())
    }

    fn hit(&mut self, report: &HitReport) -> Result<()> {
        let range = TimeRange {
            begin: report.hit.origin,
            end: report.hit.end,
        };
        let ended = self.session.run.ended_of(report.hit.task.tid);
        if !is_sample(range, ended, self.over) {
            self.no_samples += 1;
            return Ok(());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_measuring_thread_does_behind_its_last_sample_is_none() {
        let check = |(begin, end): (i64, i64), ended: Option<i64>, expect: bool| {
            let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
            let range = TimeRange {
                begin: at(begin),
                end: at(end),
            };
            let found = is_sample(range, ended.map(at), Duration::from_ms(3));
            assert_eq!(found, expect, "{begin} to {end}, {ended:?}");
        };
        // It goes on, and was late.
        check((10, 14), None, true);
        check((10, 14), Some(20), true);
        // Its last sample was late, and it took a while to end.
        check((10, 30), Some(14), true);
        // It was not, and it waited for somebody as it ended.
        check((10, 30), Some(11), false);
        check((12, 30), Some(11), false);
    }
}
