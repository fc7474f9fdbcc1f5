//! What a trace holds: counts, losses and time of a window, in both forms.

use event::{ClassId, Cpu, Duration, EventClass, Instant, TimeRange};
use report::{TraceFacts, trace_facts_json, trace_facts_text};
use trace::{LossCause, Lost, LostFrom, MemoryEvent, MemoryTrace, Trace, TraceInfo};

/// Classes `a` (twice on CPU 0, once on CPU 1), `b` (once on CPU 1) and the unused `c`; a counted
/// loss on CPU 0 and an uncounted one on CPU 1.
fn trace() -> Trace {
    let class = |(id, name): (u32, &str)| EventClass {
        id: ClassId(id),
        name: name.to_owned(),
        stream: 0,
        fields: [].into(),
    };
    let event = |(ns, cpu, class): (i64, u32, u32)| MemoryEvent {
        time: Instant::from_ns(ns),
        cpu: Some(Cpu(cpu)),
        class: ClassId(class),
        values: Vec::new(),
    };
    let loss = |cpu, count, cause| Lost {
        cpu: Some(Cpu(cpu)),
        range: TimeRange {
            begin: Instant::from_ns(10),
            end: Instant::from_ns(20),
        },
        count,
        cause,
        from: LostFrom::Recording,
    };
    MemoryTrace {
        info: TraceInfo {
            wall_offset: Duration::from_ns(1_795_175_233_000_000_000),
            cpus: vec![Cpu(0), Cpu(1)],
            ..TraceInfo::default()
        },
        classes: [(0, "c"), (1, "b"), (2, "a")].map(class).into(),
        events: [(5, 0, 2), (8, 1, 1), (9, 1, 2), (30, 0, 2)]
            .map(event)
            .into(),
        losses: vec![
            loss(0, Some(7), LossCause::Discarded),
            loss(1, None, LossCause::Overrun),
        ],
        ..MemoryTrace::default()
    }
    .into_trace()
}

fn facts(range: TimeRange, cpus: &[Cpu]) -> TraceFacts {
    TraceFacts::gather(&trace(), range, cpus, |_, _| {}).unwrap()
}

#[test]
fn events_are_counted_by_class_and_losses_by_what_is_known_of_them() {
    let check = |cpus: &[Cpu], events: &[(&str, u64)], losses: (u64, u64, u64)| {
        let facts = facts(TimeRange::ALL, cpus);
        let found = facts.classes.iter().map(|c| (c.name.as_str(), c.events));
        assert_eq!(found.collect::<Vec<_>>(), events, "{cpus:?}");
        let found = facts.losses;
        assert_eq!(
            (found.discarded, found.places, found.uncounted_places),
            losses
        );
    };
    check(&[], &[("a", 3), ("b", 1)], (7, 1, 1));
    check(&[Cpu(0)], &[("a", 2)], (7, 1, 0));
    check(&[Cpu(1)], &[("a", 1), ("b", 1)], (0, 0, 1));
}

#[test]
fn both_forms_say_the_same() {
    let range = TimeRange {
        begin: Instant::from_ns(8),
        end: Instant::from_ns(30),
    };
    let facts = facts(range, &[]);
    let text = trace_facts_text(&facts);
    for words in [
        "2026-11-20 11:47:13.000000008 to 2026-11-20 11:47:13.000000009 UTC (1 ns)",
        "events   2 of 2 classes (3 declared)",
        "lost     7 discarded in 1 place, an unknown number in 1 place",
        "         1    50.00  a\n         1    50.00  b\n",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let json = trace_facts_json(&facts);
    let check = |pointer: &str, expect: serde_json::Value| {
        assert_eq!(json.pointer(pointer), Some(&expect), "{pointer}");
    };
    check("/schema", "rtscope.info".into());
    check("/events", 2.into());
    check("/events_range/duration_ns", 1.into());
    check("/losses/discarded", 7.into());
    check("/classes/1/name", "b".into());
    check("/declared_classes", 3.into());
}
