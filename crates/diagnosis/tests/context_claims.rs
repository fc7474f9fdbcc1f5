//! Claims about who woke a task: an interrupt that left no event of its own, a task that ends; and
//! about what a trace says of its machine.

mod ledger;

use diagnosis::{Grade, Query, TaskFilter, diagnose};
use event::Value;
use ledger::{FAIR, HOG, VICTIM, check, idle_machine, worst_ledger};
use testkit::{SyntheticTrace, Task};

const HARD: u64 = 0x08;
const SOFT: u64 = 0x10;

fn text(text: &'static str) -> Value<'static> {
    Value::Text(text.into())
}

/// A wake-up with ftrace's flags.
fn woken(trace: SyntheticTrace, task: Task, flags: u64) -> SyntheticTrace {
    trace.event(
        "sched_waking",
        &[
            ("comm", text(task.comm)),
            ("tid", Value::Signed(task.tid.into())),
            ("prio", Value::Signed(i64::from(task.prio) - 100)),
            ("target_cpu", Value::Signed(0)),
            ("common_flags", Value::Unsigned(flags)),
        ],
    )
}

/// The hog runs since it was woken at 1000 µs; the victim is woken at 9000 µs, and has to wait for
/// it until 10 000 µs.
fn woken_while_the_hog_runs(flags: u64) -> SyntheticTrace {
    let trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR).at(20);
    let trace = woken(trace.block(HOG, FAIR).at(1_000), HOG, flags);
    let trace = trace.at(1_010).preempt(FAIR, HOG).at(9_000);
    woken(trace, VICTIM, flags).at(10_000).block(HOG, VICTIM)
}

#[test]
fn what_a_hard_interrupt_wakes_is_late_since_then_and_not_since_the_interrupted_task() {
    let behind = "run-queue wait behind burner (tid 200, rt 60)";
    check(
        woken_while_the_hog_runs(HARD),
        &[(behind, 1_000_000)],
        Grade::Complete,
    );
    let in_both = woken_while_the_hog_runs(HARD | SOFT);
    check(in_both, &[(behind, 1_000_000)], Grade::Complete);
    // Without the mark the hog itself woke it, and works for it since its own wake-up.
    assert_eq!(
        worst_ledger(woken_while_the_hog_runs(0)).total.as_ns(),
        9_000_000
    );
}

/// An interrupt's pair of events around the wake-up, for 10 ms in a fair task.
fn interrupted_by(name: &str, flags: u64) -> SyntheticTrace {
    let fields = [
        ("vector", Value::Signed(240)),
        ("common_flags", Value::Unsigned(flags)),
    ];
    let trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR);
    let trace = trace.at(1_000).event(&format!("{name}_entry"), &fields);
    let trace = woken(trace.at(1_010), VICTIM, flags).at(11_000);
    let trace = trace.event(&format!("{name}_exit"), &fields);
    trace
        .at(11_002)
        .preempt(FAIR, VICTIM)
        .at(11_100)
        .block(VICTIM, FAIR)
}

#[test]
fn every_pair_of_events_in_a_hard_interrupt_is_an_interrupt() {
    let largest = |name: &str, flags: u64| {
        let ledger = worst_ledger(interrupted_by(name, flags));
        ledger.terms.first().map(|term| term.kind.to_string())
    };
    let check = |name: &str, flags: u64, expect: &str| {
        assert_eq!(
            largest(name, flags).as_deref(),
            Some(expect),
            "{name} {flags:#x}"
        );
    };
    check("call_function", HARD, "interrupt: function call");
    check("thermal_apic", HARD, "interrupt: thermal event");
    check("x86_irq_vectors_error_apic", HARD, "interrupt: APIC error");
    check("ipi", HARD, "interrupt: inter-processor");
    // The table decides where the flags do not.
    check("thermal_apic", 0, "interrupt: thermal event");
    check("perf_overflow", HARD, "interrupt: perf_overflow");
    check(
        "x86_irq_vectors_hyperv_stimer",
        0,
        "interrupt: hyperv_stimer",
    );
    // No interrupts, whatever their names end in.
    let innocent = "preemption off or no preemption point in compile (tid 300, nice 0)";
    for name in ["my_driver", "kvm", "funcgraph"] {
        check(name, 0, innocent);
    }
}

#[test]
fn a_pair_inside_an_interrupt_is_a_part_of_it() {
    let fields = [("common_flags", Value::Unsigned(HARD))];
    let trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR).at(1_000);
    let trace = trace
        .irq(7, "card")
        .at(1_100)
        .event("card_dma_entry", &fields);
    let trace = woken(trace.at(1_200), VICTIM, HARD).at(1_900);
    let trace = trace.event("card_dma_exit", &fields).at(2_000).irq_end(7);
    let ledger = worst_ledger(trace.at(2_002).preempt(FAIR, VICTIM));
    assert_eq!(ledger.terms[0].kind.to_string(), "interrupt 7 card");
    assert_eq!(ledger.terms[0].duration.as_ns(), 1_000_000);
}

#[test]
fn an_inter_processor_interrupt_is_what_its_reason_says() {
    let check = |reason: &'static str, expect: &str| {
        let fields = [("reason", text(reason))];
        let trace = SyntheticTrace::new().at(10).block(VICTIM, FAIR).at(1_000);
        let trace = trace
            .event("ipi_entry", &fields)
            .at(1_010)
            .wake(VICTIM)
            .at(5_000);
        let trace = trace
            .event("ipi_exit", &fields)
            .at(5_002)
            .preempt(FAIR, VICTIM);
        assert_eq!(worst_ledger(trace).terms[0].kind.to_string(), expect);
    };
    check("Function call interrupts", "interrupt: function call");
    check("Rescheduling interrupts", "interrupt: reschedule");
    check("CPU stop interrupts", "interrupt: inter-processor");
}

#[test]
fn a_machine_is_virtual_when_its_trace_names_one_that_is() {
    let check = |facts: &[(&str, &str)], expect: bool| {
        let mut trace = ledger::timer_wakes_victim(idle_machine(), 1_000)
            .after(10)
            .run(VICTIM);
        for (key, value) in facts {
            trace = trace.environment(key, value);
        }
        let query = Query {
            tasks: TaskFilter::parse(&["victim"]).expect("names tasks"),
            ..Query::default()
        };
        let diagnosis = diagnose(&trace.build(), &query).expect("a diagnosis");
        let mut warnings = diagnosis.warnings.iter();
        let found = warnings.any(|warning| warning.what.contains("the machine is virtual"));
        assert_eq!(found, expect, "{facts:?}");
    };
    check(&[], false);
    check(&[("rtscope_virtualised", "1")], true);
    check(&[("cpu_model", "QEMU Virtual CPU version 2.5+")], true);
    check(&[("cpudesc", "Common KVM processor")], true);
    check(
        &[("product_name", "Standard PC (Q35 + ICH9, 2009), QEMU")],
        true,
    );
    check(&[("cpu_model", "AMD EPYC 7763 64-Core Processor")], false);
    // Somebody's name for a machine is no fact of it, and what we found out ourselves goes first.
    check(&[("hostname", "qemu-builder")], false);
    check(
        &[("cpu_model", "QEMU"), ("rtscope_virtualised", "0")],
        false,
    );
}
