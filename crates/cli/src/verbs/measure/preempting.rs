//! `rtscope measure preempt`: does the urgent one run at once?

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use capture::capabilities;
use event::{Cpu, Duration, ErrorKind, Result};
use host::capabilities::{Machine, Verb};
use host::task;
use measure::preempt::messages::Mechanism;
use measure::preempt::{Findings, chain, inheritance, messages, own_ipc};
use report::{Preempt, preempt_json, preempt_text};

use super::cyclic::warnings;
use super::session::lost_cpu;
use super::small;
use crate::exit::Outcome;
use crate::flags;
use crate::live::Live;
use crate::options::PreemptOptions;
use crate::signals::{self, Request};

/// Runs the verb.
pub(super) fn run(typed: &flags::Preempt) -> Result<Outcome> {
    let capabilities = capabilities::gather();
    let machine = &capabilities.machine;
    let options = PreemptOptions::new(typed, &machine.cpus_online, &machine.cpus_allowed)?;
    capabilities.require(Verb::Measure)?;
    let stop = signals::take_over()?;
    task::lock_memory()?;
    // Where we may not, `doctor --clean` removes what a killed one leaves.
    own_ipc();
    let begin = Instant::now();
    let findings = experiments(&options, machine, &stop)?;
    if signals::discarded() {
        return Ok(Outcome::Fine);
    }
    let lost_cpus = findings.lost_cpus();
    let mut warnings = warnings(&capabilities);
    warnings.extend(lost_cpus.iter().copied().map(lost_cpu));
    let preempt = Preempt {
        findings: &findings,
        complete: lost_cpus.is_empty() && signals::request() == Request::GoOn,
        over: options.over,
        elapsed: Duration::from_ns(begin.elapsed().as_nanos() as i64),
        kernel: &capabilities.machine.kernel_release,
        preemption: capabilities.scheduler.preemption.name(),
        warnings: &warnings,
    };
    let text = if options.json {
        format!("{}\n", preempt_json(&preempt))
    } else {
        preempt_text(&preempt)
    };
    let exceeded = !findings.defects().is_empty() || preempt.exceeded();
    small::say(&text, exceeded, preempt.complete)
}

/// One after the other, so that none is in another's way, each on the CPUs that are left.
fn experiments(
    options: &PreemptOptions,
    machine: &Machine,
    stop: &Arc<AtomicBool>,
) -> Result<Findings> {
    let live = Live::new(!options.json);
    let mut findings = Findings::default();
    let goes_on = || signals::request() == Request::GoOn;
    for plan in options.chains.iter().take_while(|_| goes_on()) {
        if has_all(&mut findings, machine, &[plan.cpu]) {
            live.line(&format!("a chain of wake-ups on {}", plan.cpu));
            findings.chains.push(chain::run(plan, stop)?);
        }
    }
    let mut lock = options.lock.clone();
    lock.cpus
        .retain(|cpu| has_all(&mut findings, machine, &[*cpu]));
    if goes_on() && !lock.cpus.is_empty() {
        live.line("an urgent thread that waits for a lock, on all CPUs");
        findings.locks = Some((lock.protocol, inheritance::run(&lock, stop)?));
    }
    for plan in &options.messages {
        for mechanism in Mechanism::ALL.into_iter().take_while(|_| goes_on()) {
            let (from, to) = (plan.sender, plan.receiver);
            if !has_all(&mut findings, machine, &[from, to]) {
                break;
            }
            let (mechanism_name, between) = (mechanism.name(), plan.between.name());
            live.line(&format!(
                "{mechanism_name} between {between}, {from} to {to}"
            ));
            match messages::run(mechanism, plan, stop) {
                Ok(found) => findings.messages.push(found),
                // A kernel without it, or a container that forbids it, has the other ways.
                Err(error) if error.kind() != ErrorKind::InvalidInput => {
                    let is_known = |(name, _): &(_, String)| *name == mechanism.name();
                    if !findings.absent.iter().any(is_known) {
                        findings.absent.push((mechanism.name(), error.to_string()));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(findings)
}

/// Whether none of `cpus` was taken from us since we began; those that were are among the findings
/// from now on.
fn has_all(findings: &mut Findings, machine: &Machine, cpus: &[Cpu]) -> bool {
    let left = host::capabilities::gather_cpus().machine.cpus_allowed;
    let is_gone = |cpu: &&Cpu| machine.cpus_allowed.contains(cpu) && !left.contains(cpu);
    findings.gone.extend(cpus.iter().filter(is_gone));
    let lost = findings.lost_cpus();
    !cpus.iter().any(|cpu| lost.contains(cpu))
}
