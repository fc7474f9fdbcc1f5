//! What to say beside an answer: what it rests on, and what nobody could see.

use event::{Duration, TimeRange};
use kernel_state::bind::Families;
use kernel_state::places;
use trace::{TRACKED_TASKS, TraceInfo};

use crate::diagnose::is_virtual;
use crate::finding::{Basis, Grade, LateActivation, SleepsInside, Warning};
use crate::model::Model;
use crate::verdict::lacks_evidence;

/// That a part of what a watch saw is missing, where the answer rests on it: what came before its
/// hits is not that.
fn of_evidence(model: &Model, activations: &[LateActivation]) -> Option<Warning> {
    if !model.lacks_evidence(TimeRange::ALL, None) {
        return None;
    }
    let is_hit = |late: &&LateActivation| late.hit.is_some();
    let mut hits = activations.iter().filter(is_hit).peekable();
    let what = if hits.peek().is_none() {
        "a part of what the watch saw is missing: perhaps the hit that it told of, too"
    } else if hits.any(|late| lacks_evidence(model, late)) {
        "a part of what the watch saw is missing, and this answer rests on it"
    } else {
        return None;
    };
    let remedy = "rtscope info SNAPSHOT names the files; copy them again from where it was taken, \
                  or watch with a larger --buffer";
    Some(warning(what.to_owned(), remedy))
}

/// What the answer about `activations` rests on, and what it lacks.
pub(crate) fn warnings(
    model: &Model,
    info: &TraceInfo,
    activations: &[LateActivation],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let basis = &model.basis;
    warnings.extend(of_losses(basis));
    warnings.extend(of_evidence(model, activations));
    let mut warn = |what: String, remedy: &str| warnings.push(warning(what, remedy));
    if let Some(words) = info.environment.get(TRACKED_TASKS) {
        warn(
            format!("recorded with --track {words}: who else had a CPU is not known"),
            "record without --track to see who it was",
        );
    }
    if basis.inferred > 0 {
        let (who, remedy) = if info.is_filtered("sched_switch") {
            (
                "the recording's filter left out",
                "record sched_switch without --filter",
            )
        } else {
            (
                "this kernel did not record",
                "an inferred run begins at its wake-up, a few microseconds early",
            )
        };
        let switches = counted(basis.inferred, "switch; it was", "switches; they were");
        warn(format!("{who} {switches} inferred"), remedy);
    }
    // Where nothing is late, the answer itself says so.
    if !activations.is_empty() {
        warnings.extend(of_others(basis, info));
    }
    let longest = activations.iter().map(LateActivation::latency).max();
    if let Some(longest) = longest {
        warnings.extend(of_sleeps(basis, longest));
        warnings.extend(of_renamed(basis, longest));
    }
    let censored = activations
        .iter()
        .filter(|late| late.ledger.grade == Grade::Censored)
        .count();
    if censored > 0 {
        warnings.push(warning(
            format!(
                "{censored} of {} begin or end outside the window",
                activations.len()
            ),
            "record a longer window, with larger buffers (--buffer)",
        ));
    }
    warnings.extend(hypervisor_warning(info, activations));
    if let Some(missing) = missing_families(&model.families) {
        warnings.push(warning(
            format!("the trace has no {missing} events: such causes cannot be named"),
            record_command(info),
        ));
    }
    warnings
}

/// What happened and is not in the trace, or cannot be read.
fn of_losses(basis: &Basis) -> Vec<Warning> {
    let mut warnings = Vec::new();
    // No buffer would have kept what is written and cannot be read.
    let lost = basis.holes.saturating_sub(basis.damaged);
    if lost > 0 {
        warnings.push(warning(
            format!(
                "events were lost in {} ({} counted)",
                places(lost),
                basis.lost
            ),
            "record with larger buffers (--buffer) or fewer events (--events)",
        ));
    }
    if basis.damaged > 0 {
        let stretches = counted(basis.damaged, "stretch", "stretches");
        warnings.push(warning(
            format!("{stretches} of the trace could not be read"),
            "rtscope info TRACE names the files and offsets",
        ));
    }
    warnings
}

/// What nobody looked at beside the activations of the answer.
fn of_others(basis: &Basis, info: &TraceInfo) -> Vec<Warning> {
    let mut warnings = Vec::new();
    // A watch has judged each, whatever its snapshot holds of it.
    if basis.doubted > 0 && basis.hits == 0 {
        let more = counted(basis.doubted, "more activation", "more activations");
        warnings.push(warning(
            format!("how long {more} lasted is not known: switches are missing"),
            "rtscope watch sees each",
        ));
    }
    if basis.unwoken > 0 && basis.hits == 0 {
        let more = counted(basis.unwoken, "more activation", "more activations");
        warnings.push(warning(
            format!("{more} may be late: their wake-up was not recorded"),
            "rtscope watch sees each",
        ));
    }
    if basis.unknown_wakers > 0 {
        let more = counted(basis.unknown_wakers, "more activation", "more activations");
        warnings.push(warning(
            format!("{more} may be late: nothing shows who woke them, or since when"),
            record_command(info),
        ));
    }
    if basis.stopped_asleep > 0 {
        let more = counted(basis.stopped_asleep, "more activation", "more activations");
        warnings.push(warning(
            format!("{more} may be late: they were stopped, perhaps before they were due"),
            "rtscope watch sees when they were due",
        ));
    }
    // Without a threshold nothing says which of the others are late.
    if basis.left_out > 0 && basis.threshold.is_some() {
        let more = counted(basis.left_out, "more was", "more were");
        warnings.push(warning(
            format!("{more} late: these are the longest"),
            "--worst 100 looks at more of them",
        ));
    }
    warnings
}

/// Sleeps that may be inside the work: where that would make it late, or the longest.
fn of_sleeps(basis: &Basis, longest: Duration) -> Vec<Warning> {
    let matters = |found: &&SleepsInside| match basis.threshold {
        Some(_) => found.over > 0,
        None => found.worst.duration() > longest,
    };
    let those = basis.inside.iter().filter(matters);
    let what =
        those.map(|found| warning(found.to_string(), "rtscope watch sees what it sleeps for"));
    what.collect()
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The command of the tracer that wrote the trace which records all that a diagnosis can use.
pub(crate) fn record_command(info: &TraceInfo) -> &'static str {
    let tracer = info.environment.get("tracer_name").map(String::as_str);
    match tracer {
        Some("lttng-ust") if info.environment.contains_key("rtscope_version") => {
            "rtscope record --user --events default -- COMMAND; its own time alone: rtscope report \
             flamegraph, periodtop"
        }
        Some("perfetto") => {
            "tracebox -t 10s -o NEW sched irq/irq_handler_entry irq/irq_handler_exit \
             irq/softirq_entry irq/softirq_exit irq/softirq_raise; or: rtscope record"
        }
        Some("lttng-modules") => {
            "lttng enable-event --kernel 'sched_*,irq_*,timer_*,x86_irq_vectors_*'; \
             or: rtscope record"
        }
        Some("lttng-ust") => {
            "lttng enable-event --kernel 'sched_*,irq_*,timer_*,x86_irq_vectors_*' in the same \
             session; its own time alone: rtscope report flamegraph, periodtop"
        }
        Some("perf") => {
            // perf may not sample `irq_work_exit`, and refuses all of a group with it.
            "perf record -a -k mono -e 'sched:*,irq:*,timer:*,irq_vectors:[!i]*'; \
             or: rtscope record"
        }
        Some("ftrace") => {
            "trace-cmd record -C mono -e sched -e irq -e timer -e irq_vectors; or: rtscope record"
        }
        _ => "rtscope record --events sched,irq,softirq,timer",
    }
}

/// Tasks that are called otherwise, where that matters as it does for [`of_sleeps`].
fn of_renamed(basis: &Basis, longest: Duration) -> Option<Warning> {
    let renamed = basis.renamed.as_ref()?;
    let matters = basis.threshold.is_some() || renamed.longest > longest;
    let remedy = format!("--tid {} judges it under all its names", renamed.task.tid);
    matters.then(|| warning(renamed.to_string(), &remedy))
}

fn warning(what: String, remedy: &str) -> Warning {
    Warning {
        what,
        remedy: remedy.to_owned(),
    }
}

/// What a hypervisor took, or may have taken unseen.
fn hypervisor_warning(info: &TraceInfo, activations: &[LateActivation]) -> Option<Warning> {
    let remedy = "measure on bare metal, or pin the virtual CPUs on the host";
    if let Some(late) = worst_steal(activations) {
        // The kernel counts it by ticks, which may be longer than that.
        let (latency, cpu) = (late.latency(), late.cpu);
        let stolen = late.stolen_max.min(latency);
        let what = format!(
            "up to {stolen} of the {latency} on {cpu} went to the hypervisor, nothing says when"
        );
        return Some(warning(what, remedy));
    }
    let what = "the machine is virtual: the hypervisor may have run others unseen";
    is_virtual(info).then(|| warning(what.to_owned(), remedy))
}

/// The activation of which the hypervisor may have taken most. Less than what a good ledger may
/// leave unexplained is not worth a warning.
fn worst_steal(activations: &[LateActivation]) -> Option<&LateActivation> {
    let much = activations
        .iter()
        .filter(|late| late.ledger.is_much(late.stolen_max));
    much.max_by_key(|late| late.stolen_max)
}

fn missing_families(families: &Families) -> Option<String> {
    let needed = [
        ("sched_waking", families.waking || families.wakeup),
        ("irq_handler", families.irq),
        ("irq_handler_exit", families.irq_exit || !families.irq),
        ("interrupt vector", families.vector),
        ("softirq", families.softirq),
        ("softirq_exit", families.softirq_exit || !families.softirq),
        ("sched_migrate_task", families.migrate),
    ];
    let missing: Vec<_> = needed
        .iter()
        .filter(|(_, has)| !has)
        .map(|(name, _)| *name)
        .collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

#[cfg(test)]
mod tests {
    use event::{Tid, Value};
    use kernel_state::TaskFilter;
    use testkit::{SyntheticTrace, Task};

    use super::{Basis, Duration, of_losses};
    use crate::diagnose::diagnose;
    use crate::query::{Query, Until};

    const VICTIM: Task = Task::rt(100, "victim", 50);
    const HOG: Task = Task::rt(200, "hog", 60);
    const FAIR: Task = Task::fair(300, "fair");

    #[test]
    fn what_to_record_is_said_in_the_words_of_who_recorded_it() {
        let check = |environment: &[(&str, &str)], expect: &str| {
            let mut trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
            for (key, value) in environment {
                trace = trace.environment(key, value);
            }
            let command = super::record_command(trace.build().info());
            assert!(command.starts_with(expect), "{environment:?}: {command}");
        };
        check(&[], "rtscope record");
        let refused = "perf record -a -k mono -e 'sched:*,irq:*,timer:*,irq_vectors:[!i]*'";
        check(&[("tracer_name", "perf")], refused);
        check(&[("tracer_name", "lttng-ust")], "lttng enable-event");
        let ours = [("tracer_name", "lttng-ust"), ("rtscope_version", "0.1.0")];
        check(&ours, "rtscope record --user --events default");
    }

    #[test]
    fn what_our_own_recording_declares_was_recorded_also_where_nothing_of_it_came() {
        let check = |environment: &[(&str, &str)], expect: bool| {
            let trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
            let trace = trace.at(1_000).wake(VICTIM).after(500);
            let trace = trace.block(FAIR, VICTIM).after(20).block(VICTIM, FAIR);
            let fields = [
                ("irq", Value::Signed(9)),
                ("name", Value::Text("eth0".into())),
            ];
            let trace = trace.declare("irq_handler_entry", &fields);
            let mut trace = trace.declare("irq_handler_exit", &fields[..1]);
            for (key, value) in environment {
                trace = trace.environment(key, value);
            }
            let diagnosis = diagnose(&trace.build(), &Query::default()).expect("diagnosed");
            let mut warnings = diagnosis.warnings.iter();
            let warns = warnings.any(|warning| warning.what.contains("irq_handler"));
            assert_eq!(warns, expect, "{environment:?}");
        };
        check(&[], true);
        check(&[("rtscope_version", "0.1.0")], false);
    }

    #[test]
    fn beside_what_is_late_it_is_said_of_how_many_nobody_knows_how_long_they_lasted() {
        let check = |unseen: usize, expect: Option<&str>| {
            let mut trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
            // One that is late behind the hog.
            trace = trace.at(1_000).preempt(FAIR, HOG).after(10).wake(VICTIM);
            trace = trace.after(9_000).block(HOG, VICTIM);
            trace = trace.after(20).block(VICTIM, FAIR);
            for turn in 0..unseen {
                // It sleeps, and no event says since when: neither when its work ended is known,
                // nor when it was scheduled in behind the wake-up that ends its sleep.
                trace = trace.at(50_000 * (1 + turn as i64)).wake(VICTIM);
                trace = trace.after(20).preempt(FAIR, VICTIM);
                trace = trace.after(10_000).wake(VICTIM);
                trace = trace.after(5_000).preempt(FAIR, VICTIM);
                trace = trace.after(20).block(VICTIM, FAIR);
            }
            let query = Query {
                tasks: TaskFilter::from(Tid(100)),
                until: Until::Block,
                threshold: Some(Duration::from_ms(2)),
                ..Query::default()
            };
            let diagnosis = diagnose(&trace.build(), &query).expect("diagnosed");
            assert_eq!(diagnosis.activations.len(), 1, "{unseen}");
            let mut warnings = diagnosis.warnings.iter();
            let said = warnings.find(|warning| warning.what.contains("switches are missing"));
            assert_eq!(
                said.map(|warning| warning.what.as_str()),
                expect,
                "{unseen}"
            );
        };
        check(0, None);
        check(
            1,
            Some("how long 2 more activations lasted is not known: switches are missing"),
        );
        check(
            2,
            Some("how long 4 more activations lasted is not known: switches are missing"),
        );
    }

    #[test]
    fn what_is_late_and_not_looked_at_is_counted() {
        let check = |worst: usize, expect: Option<&str>| {
            let mut trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
            for turn in 1..=5 {
                trace = trace.at(50_000 * turn).preempt(FAIR, HOG).after(10);
                trace = trace.wake(VICTIM).after(3_000).block(HOG, VICTIM);
                trace = trace.after(20).block(VICTIM, FAIR);
            }
            let query = Query {
                tasks: TaskFilter::from(Tid(100)),
                threshold: Some(Duration::from_ms(2)),
                worst,
                ..Query::default()
            };
            let diagnosis = diagnose(&trace.build(), &query).expect("diagnosed");
            let mut warnings = diagnosis.warnings.iter();
            let said = warnings.find(|warning| warning.what.contains("these are the longest"));
            assert_eq!(said.map(|warning| warning.what.as_str()), expect, "{worst}");
        };
        check(0, None);
        check(5, None);
        check(4, Some("1 more was late: these are the longest"));
        check(2, Some("3 more were late: these are the longest"));
    }

    #[test]
    fn what_cannot_be_read_was_not_lost_for_want_of_room() {
        let check = |holes: u64, damaged: u64, expect: &[&str]| {
            let basis = Basis {
                holes,
                damaged,
                lost: 7,
                ..Basis::default()
            };
            let said: Vec<_> = of_losses(&basis).into_iter().map(|one| one.what).collect();
            assert_eq!(said, expect, "{holes} {damaged}");
        };
        check(0, 0, &[]);
        check(1, 1, &["1 stretch of the trace could not be read"]);
        check(2, 0, &["events were lost in 2 places (7 counted)"]);
        check(
            3,
            2,
            &[
                "events were lost in 1 place (7 counted)",
                "2 stretches of the trace could not be read",
            ],
        );
    }
}
