//! `rtscope measure queuelat`: how long a packet waits for its reader.

use capture::capabilities;
use event::{Cpu, Duration, Error, ErrorKind, Result};
use host::capabilities::Verb;
use host::task::{self, Policy};
use measure::queue::{Plan, Run};
use report::{Queue, queue_json, queue_text};

use super::cyclic::warnings;
use super::small;
use crate::exit::Outcome;
use crate::flags;
use crate::live::Live;
use crate::options::positive_duration;
use crate::signals;

/// The histograms: a microsecond each, up to ten milliseconds.
const BUCKET: Duration = Duration::from_us(1);
const BUCKETS: usize = 10_000;

/// Runs the verb.
pub(super) fn run(typed: &flags::Queuelat) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let plan = plan(typed, &capabilities.machine.cpus_allowed)?;
    let run_for = positive_duration("--for", &typed.length.run_for)?;
    let over = typed.over.as_deref();
    let over = over
        .map(|text| positive_duration("--over", text))
        .transpose()?;
    if typed.prio > 0 {
        capabilities.require(Verb::Measure)?;
        task::lock_memory()?;
    }
    signals::take_over()?;
    let run = Run::start(&plan)?;
    let live = Live::new(!typed.json);
    let is_over = || run.is_over();
    let waited = small::until_over(Some(run_for), &live, is_over, |_| {
        let (read, longest) = run.so_far();
        let longest = longest.unwrap_or_default();
        format!("{read} packets, the longest wait {longest}")
    });
    let reading = run.finish();
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    let (warnings, complete) = (warnings(&capabilities), waited.reached_limit);
    let rests_on = (waited.elapsed, complete);
    let found = Queue {
        reading: &reading,
        cpus: (plan.sender, plan.reader),
        measured: small::measured(&capabilities, &warnings, rests_on, over),
    };
    let text = match typed.json {
        true => format!("{}\n", queue_json(&found)),
        false => queue_text(&found),
    };
    let whole = complete && reading.queued.samples > 0;
    small::say(&text, found.exceeded(), whole)
}

fn plan(typed: &flags::Queuelat, allowed: &[Cpu]) -> Result<Plan> {
    let of = |typed: Option<u32>, default: Option<&Cpu>| match typed.map(Cpu) {
        Some(cpu) if allowed.contains(&cpu) => Ok(cpu),
        None => Ok(default.copied().unwrap_or(Cpu(0))),
        Some(cpu) => {
            let list = host::shield::list(allowed);
            Err(
                Error::new(ErrorKind::NotFound, format!("{cpu} is not ours to use"))
                    .found(format!("we may use {list}"))
                    .fix("name one of these"),
            )
        }
    };
    Ok(Plan {
        sender: of(typed.sender_cpu, allowed.first())?,
        reader: of(typed.cpu, allowed.last())?,
        policy: match typed.prio {
            0 => Policy::Ordinary,
            prio => Policy::Fifo(prio),
        },
        interval: positive_duration("--interval", &typed.interval)?,
        burst: typed.burst,
        bucket: BUCKET,
        buckets: BUCKETS,
    })
}
