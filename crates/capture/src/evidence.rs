//! The evidence stream: classes and encoding of `docs/format/evidence.md`.

use std::sync::Arc;

use ctf::writer::PayloadWriter;
use event::evidence::{
    Blocked, BlockedOn, EndKind, Evidence, Frame, Hit, LateTimer, PreemptionModel, PreemptionOff,
    Step, StepKind, TaskRef,
};
use event::{ClassId, Cpu, EventClass, Field, FieldType, Instant, Integer, IntegerMapping};

/// Places of the classes in [`classes`].
const HIT: u32 = 0;
const LATE_TIMER: u32 = 1;
const PREEMPTION_OFF: u32 = 2;
const BLOCKED: u32 = 3;
const THROTTLED: u32 = 4;

/// Bit of a hit's `flags`.
const FLAG_STALE: u32 = 1 << 0;
const FLAG_REPAIRED: u32 = 1 << 1;

/// An encoded event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub cpu: Cpu,
    pub time: Instant,
    pub class: u32,
    pub payload: Vec<u8>,
}

/// The classes of the stream.
pub(crate) fn classes(stream: u32) -> Vec<EventClass> {
    let class = |name: &str, fields: Vec<Field>| EventClass {
        id: ClassId(0),
        name: name.to_owned(),
        stream,
        fields: fields.into(),
    };
    vec![
        class("rtscope_hit", hit_fields()),
        class("rtscope_late_timer", late_timer_fields()),
        class("rtscope_preemption_off", preemption_off_fields()),
        class("rtscope_blocked", blocked_fields()),
        class("rtscope_throttled", throttled_fields()),
    ]
}

fn integer(size_bits: u8, signed: bool) -> FieldType {
    FieldType::Integer(Integer::le(size_bits, signed))
}

fn unsigned(name: &str, size_bits: u8) -> Field {
    Field::payload(name, integer(size_bits, false))
}

fn signed(name: &str) -> Field {
    Field::payload(name, integer(32, true))
}

fn address(name: &str) -> Field {
    Field::payload(name, FieldType::Integer(Integer::hex(64)))
}

fn text16(name: &str) -> Field {
    Field::payload(name, FieldType::Text { size_bytes: 16 })
}

fn labelled<'a>(name: &str, labels: impl IntoIterator<Item = (u8, &'a str)>) -> Field {
    let mapping = |(value, label): (u8, &str)| {
        let value = i64::from(value);
        IntegerMapping {
            label: label.to_owned(),
            first: value,
            last: value,
        }
    };
    let mappings: Arc<[_]> = labels.into_iter().map(mapping).collect();
    Field::payload(name, FieldType::Enum(Integer::le(8, false), mappings))
}

/// The length of a sequence, and the sequence.
fn sequence(name: &str, members: Vec<Field>) -> [Field; 2] {
    let length = format!("{name}_length");
    let element = Arc::new(FieldType::Struct(members.into()));
    let ty = FieldType::Sequence {
        element,
        length: length.clone(),
    };
    [unsigned(&length, 32), Field::payload(name, ty)]
}

fn stack(name: &str) -> [Field; 2] {
    let symbol = Field::payload("symbol", FieldType::String);
    sequence(name, vec![address("address"), symbol])
}

fn hit_fields() -> Vec<Field> {
    let step = vec![
        unsigned("time_ns", 64),
        labelled(
            "kind",
            StepKind::NAMES.map(|(kind, name)| (kind as u8, name)),
        ),
        unsigned("cpu", 32),
        signed("id"),
        signed("prio"),
        text16("comm"),
    ];
    let mut fields = vec![
        unsigned("id", 64),
        labelled(
            "end_kind",
            EndKind::NAMES.map(|(kind, name)| (kind as u8, name)),
        ),
        unsigned("origin_ns", 64),
        unsigned("end_ns", 64),
        unsigned("threshold_ns", 64),
        signed("tid"),
        signed("prio"),
        text16("comm"),
        unsigned("preemptions", 32),
        unsigned("overflow", 32),
        unsigned("flags", 32),
        signed("culprit_tid"),
        signed("culprit_prio"),
        text16("culprit_comm"),
    ];
    fields.extend(sequence("steps", step));
    fields.extend(
        ["waker_stack", "wakee_stack", "culprit_stack"]
            .into_iter()
            .flat_map(stack),
    );
    fields
}

fn late_timer_fields() -> Vec<Field> {
    let mut fields = vec![
        unsigned("expiry_ns", 64),
        unsigned("lateness_ns", 64),
        address("hrtimer"),
        address("function"),
        signed("interrupted_tid"),
        signed("interrupted_prio"),
        text16("interrupted_comm"),
        labelled(
            "mode",
            [(0, "kernel"), (1, "user"), (2, "idle"), (3, "enabled")],
        ),
        unsigned("steal_ns", 64),
    ];
    fields.extend(stack("stack"));
    fields.push(unsigned("came_on", 32));
    fields
}

fn preemption_off_fields() -> Vec<Field> {
    let models = PreemptionModel::NAMES.map(|(model, name)| (model as u8, name));
    let mut fields = vec![
        unsigned("begin_ns", 64),
        unsigned("delay_ns", 64),
        signed("tid"),
        signed("prio"),
        text16("comm"),
        labelled("model", models),
    ];
    fields.extend(stack("stack"));
    fields
}

/// The fields of a task.
fn task_fields(prefix: &str) -> [Field; 3] {
    [
        signed(&format!("{prefix}tid")),
        signed(&format!("{prefix}prio")),
        text16(&format!("{prefix}comm")),
    ]
}

fn throttled_fields() -> Vec<Field> {
    let mut fields = vec![unsigned("begin_ns", 64)];
    fields.extend(task_fields(""));
    fields
}

fn blocked_fields() -> Vec<Field> {
    let kinds = BlockedOn::NAMES.map(|(on, name)| (on as u8, name));
    let mut fields = task_fields("").to_vec();
    fields.push(labelled("on", kinds));
    fields.extend(task_fields("owner_"));
    fields.push(address("lock"));
    fields.extend(stack("stack"));
    fields
}

/// Encodes hits and records, in the order of time.
pub(crate) fn encode(hits: &[Hit], evidence: &[Evidence]) -> Vec<Encoded> {
    let mut encoded: Vec<_> = hits
        .iter()
        .map(encode_hit)
        .chain(evidence.iter().map(encode_evidence))
        .collect();
    encoded.sort_by_key(|event| event.time);
    encoded
}

fn encode_hit(hit: &Hit) -> Encoded {
    let mut out = PayloadWriter::new();
    out.u64(hit.id).u8(hit.end_kind as u8);
    out.u64(ns(hit.origin))
        .u64(ns(hit.end))
        .u64(hit.threshold.as_ns_unsigned());
    task(&mut out, &hit.task);
    let stale = if hit.stale { FLAG_STALE } else { 0 };
    let repaired = if hit.repaired { FLAG_REPAIRED } else { 0 };
    out.u32(hit.preemptions)
        .u32(hit.overflow)
        .u32(stale | repaired);
    match &hit.culprit {
        Some(culprit) => task(&mut out, culprit),
        None => nobody(&mut out),
    }
    out.sequence(&hit.steps, step);
    for frames in [&hit.waker_stack, &hit.wakee_stack, &hit.culprit_stack] {
        out.sequence(frames, frame);
    }
    let cpu = hit.steps.last().map_or(Cpu(0), |step| step.cpu);
    Encoded {
        cpu,
        time: hit.end,
        class: HIT,
        payload: out.bytes().to_vec(),
    }
}

fn encode_evidence(evidence: &Evidence) -> Encoded {
    let mut out = PayloadWriter::new();
    let class = match evidence {
        Evidence::LateTimer(late) => encode_late_timer(late, &mut out),
        Evidence::PreemptionOff(off) => encode_preemption_off(off, &mut out),
        Evidence::Blocked(blocked) => encode_blocked(blocked, &mut out),
        Evidence::Throttled(throttled) => {
            out.u64(ns(throttled.begin));
            task(&mut out, &throttled.task);
            THROTTLED
        }
    };
    Encoded {
        cpu: evidence.cpu(),
        time: evidence.time(),
        class,
        payload: out.bytes().to_vec(),
    }
}

fn encode_late_timer(late: &LateTimer, out: &mut PayloadWriter) -> u32 {
    out.u64(ns(late.expiry)).u64(late.lateness.as_ns_unsigned());
    out.u64(late.hrtimer).u64(late.function);
    task(out, &late.interrupted);
    out.u8(late.mode as u8).u64(late.steal.as_ns_unsigned());
    out.sequence(&late.stack, frame).u32(late.came_on);
    LATE_TIMER
}

fn encode_preemption_off(off: &PreemptionOff, out: &mut PayloadWriter) -> u32 {
    out.u64(ns(off.begin)).u64(off.delay.as_ns_unsigned());
    task(out, &off.task);
    out.u8(off.model as u8);
    out.sequence(&off.stack, frame);
    PREEMPTION_OFF
}

fn encode_blocked(blocked: &Blocked, out: &mut PayloadWriter) -> u32 {
    task(out, &blocked.task);
    out.u8(blocked.on as u8);
    match &blocked.owner {
        Some(owner) => task(out, owner),
        None => nobody(out),
    }
    out.u64(blocked.lock);
    out.sequence(&blocked.stack, frame);
    BLOCKED
}

/// In the place of a task; -1 is no task's number.
fn nobody(out: &mut PayloadWriter) {
    out.i32(-1).i32(0).text16("");
}

fn ns(instant: Instant) -> u64 {
    instant.as_ns().max(0) as u64
}

fn task(out: &mut PayloadWriter, task: &TaskRef) {
    out.i32(task.tid.0)
        .i32(task.prio.lttng())
        .text16(&task.comm);
}

fn step(out: &mut PayloadWriter, step: &Step) {
    out.u64(ns(step.time))
        .u8(step.kind as u8)
        .u32(step.cpu.0)
        .i32(step.id);
    out.i32(step.prio.lttng()).text16(&step.comm);
}

fn frame(out: &mut PayloadWriter, frame: &Frame) {
    out.u64(frame.address).string(&frame.symbol);
}
