//! `rtscope measure loop`: npt, a loop that shows what the machine and an event do to it.

use std::sync::atomic::AtomicBool;

use analysis::{Gap, Taker, explain_gaps};
use capture::facts::{self, Facts, Verb};
use event::{Cpu, Error, ErrorKind, Result};
use measure::looping::lttng::{Daemon, Library};
use measure::looping::{self, LoopEvent, LoopFound, LoopPlan, LoopTracer};
use measure::task::{self, Policy};
use report::LoopFacts;
use trace::Trace;

use super::disturbers;
use crate::exit::{Outcome, print, write_file};
use crate::flags::{self, Loop, Tracer};
use crate::signals::{self, Wish};

/// Says which events are wanted; whoever sets it wants to keep them.
const EVENTS: &str = "RTSCOPE_EVENTS";
/// LTTng's sub-buffers, 32 a CPU.
const LTTNG_SUBBUFFER: &str = "1M";

/// Runs the verb.
pub(super) fn run(typed: &Loop) -> Result<Outcome> {
    let stop = signals::take_over()?;
    let facts = facts::gather();
    if typed.prio.is_some() {
        task::lock_memory()?;
    }
    let (found, lost) = traced(typed, |tracer| {
        let plan = plan(typed, &facts, tracer)?;
        looped(typed, &plan, &facts, &stop)
    })?;
    if signals::wish() == Wish::Discard {
        eprintln!("discarded");
        return Ok(Outcome::Fine);
    }
    let (found, net) = found;
    let shown = LoopFacts {
        tracer: typed.tracer.name(),
        found: &found,
        net_of_irqs: net.as_ref(),
        lost,
    };
    if let Some(path) = &typed.output {
        write_file(path, &report::loop_file(&found))?;
    }
    let mut text = match typed.json {
        true => report::loop_json(&shown),
        false => report::loop_text(&shown),
    };
    if typed.plot && !typed.json {
        text.push_str(&report::loop_plot(net.as_ref().unwrap_or(&found)));
    }
    print(&text)?;
    Ok(Outcome::Fine)
}

/// Runs `looped` with the tracer that was asked for; with LTTng, also says how many events it lost.
fn traced<T>(
    typed: &Loop,
    looped: impl FnOnce(LoopTracer<'_>) -> Result<T>,
) -> Result<(T, Option<u64>)> {
    let timer = match typed.tracer {
        Tracer::None => return looped(LoopTracer::None).map(|found| (found, None)),
        Tracer::Clock => return looped(LoopTracer::Clock).map(|found| (found, None)),
        Tracer::Rtscope => {
            let forget = std::env::var_os(EVENTS).is_none();
            return looped(LoopTracer::Rtscope { forget }).map(|found| (found, None));
        }
        Tracer::Lttng => false,
        Tracer::LttngTimer => true,
    };
    let folder = tempfile::tempdir()
        .map_err(|error| Error::io("cannot make a folder for LTTng's files", error))?;
    let daemon = Daemon::start(folder.path())?;
    let (found, lost) = daemon.session(timer, LTTNG_SUBBUFFER, || {
        let path = match &typed.lttng_loop {
            Some(path) => path.clone(),
            None => Library::build(folder.path())?,
        };
        let library = Library::load(&path, &daemon)?;
        looped(LoopTracer::Lttng(&library))
    })?;
    Ok((found, Some(lost)))
}

/// The loop; where it is asked for, beside a recording that tells which iterations were hit.
fn looped(
    typed: &Loop,
    plan: &LoopPlan,
    facts: &Facts,
    stop: &AtomicBool,
) -> Result<(LoopFound, Option<LoopFound>)> {
    if !typed.net_of_irqs {
        return looping::run(plan, stop).map(|found| (found, None));
    }
    facts.require(Verb::Record)?;
    let folder = tempfile::tempdir()
        .map_err(|error| Error::io("cannot make a folder for the recording", error))?;
    let output = folder.path().join("loop");
    let found = disturbers::recorded(&output, facts, || looping::run(plan, stop))?;
    let trace = Trace::open(&output)?;
    let gaps: Vec<Gap> = found
        .longs
        .iter()
        .map(|long| Gap {
            cpu: plan.cpu,
            tid: found.tid,
            range: long.range,
        })
        .collect();
    let explained = explain_gaps(&trace, &gaps)?;
    let took = |taker: &Taker| !matches!(taker, Taker::Below | Taker::Unknown);
    let hit = |place: usize| explained[place].parts.iter().any(|(taker, _)| took(taker));
    let net = found.without(hit);
    Ok((found, Some(net)))
}

fn plan<'a>(typed: &Loop, facts: &Facts, tracer: LoopTracer<'a>) -> Result<LoopPlan<'a>> {
    let cpu = match typed.cpu {
        Some(cpu) => Cpu(cpu),
        None => *facts.machine.cpus_allowed.last().ok_or_else(|| {
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
        tracer,
        event: match typed.event {
            flags::LoopEvent::Numbers => LoopEvent::Numbers,
            flags::LoopEvent::Text => LoopEvent::Text,
        },
        keep_long: typed.net_of_irqs,
    })
}
