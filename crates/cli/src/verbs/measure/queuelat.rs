//! `rtscope measure queuelat`: how long a packet waits for its reader.

use std::time::Instant;

use capture::capabilities;
use event::{Cpu, Duration, Error, ErrorKind, Result};
use host::capabilities::Verb;
use host::task::{self, Policy};
use measure::queue::{Plan, Run};
use report::{Measured, Queue, queue_json, queue_text};

use super::cyclic::{kernel, warnings};
use crate::exit::{Outcome, print};
use crate::flags;
use crate::live::Live;
use crate::options::positive_duration;
use crate::signals::{self, Request};

/// The histograms: a microsecond each, up to ten milliseconds.
const BUCKET: Duration = Duration::from_us(1);
const BUCKETS: usize = 10_000;
/// How often we look whether it is over.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// Runs the verb.
pub(super) fn run(typed: &flags::Queuelat) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let plan = plan(typed, &capabilities.machine.cpus_allowed)?;
    let run_for = positive_duration("--for", &typed.run_for)?;
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
    let (begin, live) = (Instant::now(), Live::new(!typed.json));
    let elapsed = || Duration::from_ns(begin.elapsed().as_nanos() as i64);
    while signals::request() == Request::GoOn && elapsed() < run_for && !run.is_over() {
        let (read, longest) = run.so_far();
        let longest = longest.unwrap_or_default();
        live.line(&format!("{read} packets, the longest wait {longest}"));
        let left_ns = (run_for.as_ns() - elapsed().as_ns()).max(0);
        let left = std::time::Duration::from_nanos(left_ns.cast_unsigned());
        std::thread::sleep(left.min(LOOK_INTERVAL));
    }
    live.clear();
    let complete = elapsed() >= run_for;
    let elapsed = elapsed();
    let reading = run.finish();
    if signals::request() == Request::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    let warnings = warnings(&capabilities);
    let found = Queue {
        reading: &reading,
        cpus: (plan.sender, plan.reader),
        measured: Measured {
            elapsed,
            complete,
            over,
            kernel: kernel(&capabilities),
            warnings: &warnings,
        },
    };
    print(&match typed.json {
        true => format!("{}\n", queue_json(&found)),
        false => queue_text(&found),
    })?;
    Ok(match found.exceeded() {
        true => Outcome::Exceeded,
        false if complete && reading.queued.samples > 0 => Outcome::Fine,
        false => Outcome::Inconclusive,
    })
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
