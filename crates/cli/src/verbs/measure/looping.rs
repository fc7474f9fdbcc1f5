//! `rtscope measure loop`: npt, a loop that shows what the machine and an event do to it.

use bpf_host::Interruptions;
use capture::capabilities;
use event::{Cpu, Error, ErrorKind, Result};
use host::capabilities::Capabilities;
use host::task::{self, Policy};
use measure::looping::lttng::{Daemon, Library};
use measure::looping::{self, LoopEvent, LoopPlan, LoopTracer};
use report::LoopFacts;

use super::session::lost_cpu;
use crate::exit::{Outcome, print_answer, write_file};
use crate::flags::{self, Loop, Tracer};
use crate::options::known_cpu;
use crate::signals::{self, Request};

/// Says which events are wanted; whoever sets it wants to keep them.
const EVENTS: &str = "RTSCOPE_EVENTS";
/// LTTng's sub-buffers, 32 a CPU.
const LTTNG_SUBBUFFER: &str = "1M";

/// Runs the verb.
pub(super) fn run(typed: &Loop) -> Result<Outcome> {
    let stop = signals::take_over()?;
    let capabilities = capabilities::gather();
    if typed.prio.is_some() {
        task::lock_memory()?;
    }
    let interruptions = typed.net_of_irqs.then(Interruptions::start).transpose()?;
    let cpu = cpu(typed, &capabilities)?;
    let (found, lost) = traced(typed, |tracer| {
        let mut plan = plan(typed, cpu, tracer);
        plan.interruptions = match &interruptions {
            Some(interruptions) => Some(interruptions.of(cpu)?),
            None => None,
        };
        looping::run(&plan, &stop)
    })?;
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    let warnings: Vec<String> = found.lost_cpu.then(|| lost_cpu(cpu)).into_iter().collect();
    let shown = LoopFacts {
        tracer: typed.tracer.name(),
        run: &found,
        lost,
        complete: !found.lost_cpu && signals::request() == Request::GoOn,
        warnings: &warnings,
    };
    if let Some(path) = &typed.output {
        write_file(path, &report::loop_file(&found.all))?;
    }
    let mut text = match typed.json {
        true => report::loop_json(&shown),
        false => report::loop_text(&shown),
    };
    if typed.plot && !typed.json {
        let free = found.apart.as_ref().map(|apart| &apart.free);
        let shown_alone = free.unwrap_or(&found.all);
        text.push_str(&report::loop_plot(shown_alone));
    }
    print_answer(&text)?;
    Ok(match found.lost_cpu {
        true => Outcome::Inconclusive,
        false => Outcome::Fine,
    })
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

fn cpu(typed: &Loop, capabilities: &Capabilities) -> Result<Cpu> {
    let machine = &capabilities.machine;
    match typed.cpu {
        Some(cpu) => known_cpu(Cpu(cpu), &machine.cpus_online),
        None => machine.cpus_allowed.last().copied().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "which CPUs we may use is not known")
                .fix("name one with --cpu")
        }),
    }
}

fn plan<'a>(typed: &Loop, cpu: Cpu, tracer: LoopTracer<'a>) -> LoopPlan<'a> {
    LoopPlan {
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
        interruptions: None,
    }
}
