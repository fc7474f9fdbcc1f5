//! `rtscope measure loop`: npt, a loop that shows what the machine and an event do to it.

use std::io::Write;

use event::{Cpu, Error, ErrorKind, Result};
use measure::looping::{self, LoopPlan};
use measure::task::{self, Policy};

use super::cyclic::write_file;
use crate::exit::{Outcome, stdout_error};
use crate::flags::{Loop, Tracer};
use crate::signals::{self, Wish};

/// Says which events are wanted; whoever sets it wants to keep them.
const EVENTS: &str = "RTSCOPE_EVENTS";

/// Runs the verb.
pub(super) fn run(typed: &Loop) -> Result<Outcome> {
    let stop = signals::take_over()?;
    let plan = plan(typed)?;
    if plan.policy != Policy::Ordinary {
        task::lock_memory()?;
    }
    let found = looping::run(&plan, &stop)?;
    if signals::wish() == Wish::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    if let Some(path) = &typed.output {
        write_file(path, &report::loop_file(&found))?;
    }
    let text = match typed.json {
        true => report::loop_json(&found, tracer_name(typed.tracer)),
        false => report::loop_text(&found),
    };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).map_err(stdout_error)?;
    Ok(Outcome::Fine)
}

fn plan(typed: &Loop) -> Result<LoopPlan> {
    let allowed = capture::facts::gather().machine.cpus_allowed;
    let cpu = match typed.cpu {
        Some(cpu) => Cpu(cpu),
        None => *allowed.last().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "which CPUs we may use is not known")
                .mend("name one with --cpu")
        })?,
    };
    Ok(LoopPlan {
        cpu,
        policy: typed.prio.map_or(Policy::Ordinary, Policy::Fifo),
        iterations: typed.loops,
        dropped: typed.drop,
        per_second: typed.events_per_second,
        events: typed.tracer == Tracer::Rtscope,
        forget: std::env::var_os(EVENTS).is_none(),
    })
}

fn tracer_name(tracer: Tracer) -> &'static str {
    match tracer {
        Tracer::None => "none",
        Tracer::Rtscope => "rtscope",
    }
}
