//! Walks a whole trace and says how fast, in CPU time of its thread, so that a busy machine does
//! not spoil the figure: `cargo run --release -p trace --example walk -- TRACE [PASSES] [WHAT]`.
//!
//! With `fields` every field of every event is decoded into a checksum that depends on order; with
//! another word, events of that name alone.

use event::{FieldId, FieldType, Integer, TimeRange};
use rustix::time::{ClockId, clock_gettime};
use trace::{EventView, Item, Trace};

/// How a field adds to the checksum.
#[derive(Clone, Copy)]
enum Reads {
    Number(FieldId),
    Float(FieldId),
    Text(FieldId),
    Value(FieldId),
}

fn reads(place: usize, ty: &FieldType) -> Reads {
    let id = FieldId(place as u16);
    let is_text = |ty: &FieldType| matches!(ty, FieldType::Integer(Integer { text: true, .. }));
    match ty {
        FieldType::Integer(_) | FieldType::Enum(..) | FieldType::Bool(_) | FieldType::Flags(..) => {
            Reads::Number(id)
        }
        FieldType::Float { .. } => Reads::Float(id),
        FieldType::String | FieldType::Text { .. } => Reads::Text(id),
        FieldType::Sequence { element, .. } if is_text(element) => Reads::Text(id),
        _ => Reads::Value(id),
    }
}

fn add(sum: &mut u64, event: &EventView<'_>, reads: Reads) {
    let more = match reads {
        Reads::Number(id) => event.u64(id),
        Reads::Float(id) => event.f64(id).to_bits(),
        Reads::Text(id) => {
            let fold = |sum: u64, byte: &u8| sum.rotate_left(5) ^ u64::from(*byte);
            event.text(id).iter().fold(0, fold)
        }
        Reads::Value(id) => format!("{:?}", event.value(id)).len() as u64,
    };
    *sum = sum.rotate_left(7).wrapping_add(more);
}

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn main() -> event::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let passes: u32 = arguments
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(1);
    let what = arguments.next();
    let all = what.is_some();
    let name = what.filter(|word| word != "fields");
    let start = cpu_seconds();
    let trace = Trace::open(&path)?;
    let open_ms = (cpu_seconds() - start) * 1e3;
    let bound: Vec<Vec<Reads>> = trace
        .classes()
        .iter()
        .map(|class| {
            let reads = |(place, field): (usize, &event::Field)| reads(place, &field.ty);
            // The packet's context belongs to the packet, not to each of its events.
            let fields = class.fields.iter().enumerate();
            let own = fields.filter(|(_, field)| field.scope != event::Scope::PacketContext);
            match all {
                true => own.map(reads).collect(),
                false => class
                    .field("next_tid")
                    .map(Reads::Number)
                    .into_iter()
                    .collect(),
            }
        })
        .collect();
    for _ in 0..passes {
        let start = cpu_seconds();
        let (mut events, mut lost, mut damaged, mut sum) = (0u64, 0u64, 0u64, 0u64);
        let mut cursor = trace.cursor_of(TimeRange::ALL, |class| {
            let class = &trace.classes()[class.0 as usize];
            name.as_ref().is_none_or(|name| class.name == *name)
        });
        cursor.each(|item| {
            match item {
                Item::Event(event) => {
                    events += 1;
                    for reads in &bound[event.class().0 as usize] {
                        add(&mut sum, event, *reads);
                    }
                }
                Item::Lost(loss) => lost += loss.count.unwrap_or(1),
                Item::Damage(damage) => {
                    damaged += 1;
                    eprintln!(
                        "{} at {}: {}",
                        damage.file, damage.offset_bytes, damage.reason
                    );
                }
            }
            Ok(())
        })?;
        let seconds = cpu_seconds() - start;
        let rate = events as f64 / seconds / 1e6;
        println!(
            "{events} events, {lost} lost, {damaged} damaged, {rate:.2} million/s of CPU, \
             sum {sum:x}, opened in {open_ms:.1} ms"
        );
    }
    Ok(())
}
