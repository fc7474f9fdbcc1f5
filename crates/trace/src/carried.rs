//! Events on their way to another thread: one decodes, the other one reads what was decoded.
//!
//! An [`EventView`] is borrowed from the cursor that stands on it. A [`Batch`] holds some of them
//! with the numbers and the texts of their fields, so that whoever works on events need not wait
//! for the next one to be found.

use event::{ClassId, Cpu, EventClass, FieldId, FieldType, Instant, Scope, Value};

use crate::cursor::Payload;
use crate::held::HeldEvent;
use crate::{Damage, EventView, Item, Lost};

/// A batch with so many events is full.
const EVENTS: usize = 2048;
/// So is one with texts of so many bytes.
const TEXT_BYTES: usize = 1 << 20;
/// The CPU of an event that has none.
const NO_CPU: u32 = u32::MAX;

/// How a field is carried, and behind how many numbers of its event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Slot {
    /// It is not: it reads as zero, and as an empty text.
    #[default]
    Nothing,
    Number(u16),
    Float(u16),
    /// Where it ends among the texts, and how long it is.
    Text(u16),
}

/// Which fields of a class are carried: of each kind one behind the other, so that no event is
/// looked at for what it does not have.
#[derive(Clone, Debug, Default)]
struct Fields {
    integers: Box<[FieldId]>,
    floats: Box<[FieldId]>,
    texts: Box<[FieldId]>,
    /// A slot for each field.
    slots: Box<[Slot]>,
}

impl Fields {
    fn of(class: &EventClass) -> Fields {
        let mut slots = vec![Slot::Nothing; class.fields.len()].into_boxed_slice();
        let mut before = 0;
        let mut of_kind = |kind: Carried| -> Box<[FieldId]> {
            let fields = class.fields.iter().zip(&mut slots).enumerate();
            let fields = fields.filter(|(_, (field, _))| carried(field) == Some(kind));
            let taken = fields.map(|(place, (_, slot))| {
                *slot = match kind {
                    Carried::Integer => Slot::Number(before),
                    Carried::Float => Slot::Float(before),
                    Carried::Text => Slot::Text(before),
                };
                before += 1;
                FieldId(place as u16)
            });
            taken.collect()
        };
        Fields {
            integers: of_kind(Carried::Integer),
            floats: of_kind(Carried::Float),
            texts: of_kind(Carried::Text),
            slots,
        }
    }
}

/// Which fields of which classes are carried.
#[derive(Clone, Debug)]
pub struct Carry {
    by_class: Vec<Fields>,
    /// Of a class that is not known.
    nothing: Fields,
}

impl Carry {
    /// The numbers and the texts of all classes that are `wanted`; of others that they happened,
    /// when and on which CPU.
    pub fn new(classes: &[EventClass], wanted: impl Fn(&EventClass) -> bool) -> Carry {
        let fields = |class: &EventClass| match wanted(class) {
            true => Fields::of(class),
            false => Fields::default(),
        };
        Carry {
            by_class: classes.iter().map(fields).collect(),
            nothing: Fields::default(),
        }
    }

    #[inline]
    fn of(&self, class: ClassId) -> &Fields {
        let fields = self.by_class.get(class.0 as usize);
        fields.unwrap_or(&self.nothing)
    }
}

/// The kinds of fields that are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Integer,
    Float,
    Text,
}

fn carried(field: &event::Field) -> Option<Carried> {
    if matches!(field.scope, Scope::PacketHeader | Scope::PacketContext) {
        return None;
    }
    match field.ty {
        FieldType::Integer(_) | FieldType::Enum(..) | FieldType::Bool(_) | FieldType::Flags(..) => {
            Some(Carried::Integer)
        }
        FieldType::Float { .. } => Some(Carried::Float),
        FieldType::String
        | FieldType::Text { .. }
        | FieldType::Array { .. }
        | FieldType::Sequence { .. } => Some(Carried::Text),
        FieldType::WideText { .. }
        | FieldType::Blob { .. }
        | FieldType::Struct(_)
        | FieldType::Variant { .. }
        | FieldType::Optional { .. } => None,
    }
}

/// An event but for its fields.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: Instant,
    class: ClassId,
    cpu: u32,
    /// Where its numbers begin.
    first: u32,
}

/// What is no event.
#[derive(Clone, Debug)]
enum Other {
    Lost(Lost),
    Damage(Damage),
}

/// Items of a walk that follow each other.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    heads: Vec<Head>,
    numbers: Vec<u64>,
    texts: Vec<u8>,
    /// What is no event, and how many events stand before it.
    others: Vec<(usize, Other)>,
}

impl Batch {
    /// Empties it; its room serves the next items.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.numbers.clear();
        self.texts.clear();
        self.others.clear();
    }

    /// Whether it is time to hand it on.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.heads.len() >= EVENTS || self.texts.len() >= TEXT_BYTES || self.others.len() >= EVENTS
    }

    /// Takes in an item.
    #[inline]
    pub fn take(&mut self, item: &Item<'_>, carry: &Carry) {
        match item {
            Item::Event(event) => self.take_event(event, carry),
            Item::Lost(lost) => self.others.push((self.heads.len(), Other::Lost(*lost))),
            Item::Damage(damage) => {
                let damage = Other::Damage(damage.clone());
                self.others.push((self.heads.len(), damage));
            }
        }
    }

    #[inline]
    fn take_event(&mut self, event: &EventView<'_>, carry: &Carry) {
        let class = event.class();
        self.heads.push(Head {
            time: event.time(),
            class,
            cpu: event.cpu().map_or(NO_CPU, |cpu| cpu.0),
            first: self.numbers.len() as u32,
        });
        let fields = carry.of(class);
        event.add_integers(&fields.integers, &mut self.numbers);
        for field in &fields.floats {
            self.numbers.push(event.f64(*field).to_bits());
        }
        for field in &fields.texts {
            let text = event.text(*field);
            self.texts.extend_from_slice(text);
            let place = (self.texts.len() as u64) << 32 | text.len() as u64;
            self.numbers.push(place);
        }
    }

    /// Hands its items to `take`, in their order, until that says no; gives whether it did not.
    /// `carry` is what they were taken with.
    #[inline]
    pub fn each_while(&self, carry: &Carry, mut take: impl FnMut(&Item<'_>) -> bool) -> bool {
        let mut others = self.others.iter().peekable();
        for (place, head) in self.heads.iter().enumerate() {
            while let Some((_, other)) = others.next_if(|(before, _)| *before <= place) {
                if !take(&other.item()) {
                    return false;
                }
            }
            let event = EventView {
                time: head.time,
                payload: Payload::Held(HeldEvent::Carried(CarriedEvent {
                    head,
                    slots: &carry.of(head.class).slots,
                    batch: self,
                })),
            };
            if !take(&Item::Event(event)) {
                return false;
            }
        }
        others.all(|(_, other)| take(&other.item()))
    }
}

impl Other {
    #[cold]
    fn item(&self) -> Item<'static> {
        match self {
            Other::Lost(lost) => Item::Lost(*lost),
            Other::Damage(damage) => Item::Damage(damage.clone()),
        }
    }
}

/// An event of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarriedEvent<'a> {
    head: &'a Head,
    slots: &'a [Slot],
    batch: &'a Batch,
}

impl<'a> CarriedEvent<'a> {
    #[inline]
    pub fn class(&self) -> ClassId {
        self.head.class
    }

    #[inline]
    pub fn cpu(&self) -> Option<Cpu> {
        (self.head.cpu != NO_CPU).then_some(Cpu(self.head.cpu))
    }

    #[inline]
    fn slot(&self, field: FieldId) -> Slot {
        let slot = self.slots.get(usize::from(field.0));
        slot.copied().unwrap_or_default()
    }

    /// A number of its own.
    #[inline]
    fn number(&self, place: u16) -> u64 {
        let place = self.head.first as usize + usize::from(place);
        self.batch.numbers.get(place).copied().unwrap_or(0)
    }

    #[inline]
    pub fn integer(&self, field: FieldId) -> i64 {
        match self.slot(field) {
            Slot::Number(place) => self.number(place) as i64,
            _ => 0,
        }
    }

    pub fn float(&self, field: FieldId) -> f64 {
        match self.slot(field) {
            Slot::Float(place) => f64::from_bits(self.number(place)),
            _ => 0.0,
        }
    }

    #[inline]
    pub fn text(&self, field: FieldId) -> &'a [u8] {
        let place = match self.slot(field) {
            Slot::Text(place) => self.number(place),
            _ => 0,
        };
        let (end, length) = ((place >> 32) as usize, place as u32 as usize);
        let text = self.batch.texts.get(end.saturating_sub(length)..end);
        text.unwrap_or_default()
    }

    /// What is not carried is absent.
    pub fn value(&self, field: FieldId) -> Value<'a> {
        match self.slot(field) {
            Slot::Number(_) => Value::Signed(self.integer(field)),
            Slot::Float(_) => Value::Float(self.float(field)),
            Slot::Text(_) => Value::Text(String::from_utf8_lossy(self.text(field))),
            Slot::Nothing => Value::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use event::{Field, Integer, TimeRange};

    use super::*;
    use crate::{LossCause, LostFrom, MemoryEvent, MemoryTrace, Trace};

    const FIELDS: u16 = 3;

    fn class(id: u32, name: &str) -> EventClass {
        let number = FieldType::Integer(Integer::le(64, true));
        EventClass {
            id: ClassId(id),
            name: name.to_owned(),
            stream: 0,
            fields: [
                Field::payload("number", number),
                Field::payload("text", FieldType::String),
                Field::payload("other", FieldType::String),
            ]
            .into(),
        }
    }

    fn trace() -> Trace {
        let event = |ns: i64| MemoryEvent {
            time: Instant::from_ns(ns),
            cpu: (ns % 3 > 0).then_some(Cpu(ns as u32 % 3)),
            class: ClassId((ns % 2) as u32),
            values: vec![
                Value::Signed(-ns),
                Value::Text(format!("text {ns}").into()),
                Value::Text("x".repeat(ns as usize % 40).into()),
            ],
        };
        let lost = |ns: i64| Lost {
            cpu: None,
            range: TimeRange {
                begin: Instant::from_ns(ns),
                end: Instant::from_ns(ns + 1),
            },
            count: Some(ns as u64),
            cause: LossCause::Discarded,
            from: LostFrom::Recording,
        };
        let memory = MemoryTrace {
            classes: vec![class(0, "told"), class(1, "counted")],
            events: (0..5_000).map(event).collect(),
            losses: [-5, 7, 2_047, 2_048, 4_999, 6_000].map(lost).into(),
            ..MemoryTrace::default()
        };
        memory.into_trace()
    }

    /// All that an item says, of the fields of a wanted class alone.
    fn told(item: &Item<'_>, wanted: impl Fn(ClassId) -> bool) -> String {
        match item {
            Item::Event(event) => {
                let fields = if wanted(event.class()) { FIELDS } else { 0 };
                let field = |place: u16| {
                    let field = FieldId(place);
                    (
                        event.i64(field),
                        event.text(field).to_vec(),
                        event.value(field),
                    )
                };
                let fields: Vec<_> = (0..fields).map(field).collect();
                format!(
                    "{:?} {:?} {:?} {fields:?}",
                    event.time(),
                    event.cpu(),
                    event.class()
                )
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_carried_is_what_the_cursor_hands_out_in_its_order() {
        let trace = trace();
        let wanted = |class: ClassId| class.0 == 0;
        let carry = Carry::new(trace.classes(), |class| wanted(class.id));
        let (mut expect, mut found, mut batches) = (Vec::new(), Vec::new(), 0);
        let mut batch = Batch::default();
        let mut pass_on = |batch: &mut Batch| {
            batches += 1;
            let all = batch.each_while(&carry, |item| {
                found.push(told(item, wanted));
                true
            });
            assert!(all);
            batch.clear();
        };
        let mut cursor = trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next().expect("it is in memory") {
            expect.push(told(&item, wanted));
            batch.take(&item, &carry);
            if batch.is_full() {
                pass_on(&mut batch);
            }
        }
        pass_on(&mut batch);
        assert_eq!(found, expect);
        assert_eq!(found.len(), 5_006);
        assert_eq!(batches, 3);
    }

    /// All of a trace in one batch.
    fn carried(trace: &Trace, carry: &Carry) -> Batch {
        let mut batch = Batch::default();
        let mut cursor = trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next().expect("it is in memory") {
            batch.take(&item, carry);
        }
        batch
    }

    #[test]
    fn who_says_no_gets_no_more() {
        let trace = trace();
        let carry = Carry::new(trace.classes(), |_| true);
        let batch = carried(&trace, &carry);
        for most in [1, 2, 3_000, 5_005] {
            let mut seen = 0;
            let all = batch.each_while(&carry, |_| {
                seen += 1;
                seen < most
            });
            assert_eq!((seen, all), (most, false));
        }
    }

    #[test]
    fn what_is_not_carried_reads_as_nothing() {
        let trace = trace();
        let carry = Carry::new(trace.classes(), |_| false);
        let batch = carried(&trace, &carry);
        batch.each_while(&carry, |item| {
            if let Item::Event(event) = item {
                let field = FieldId(1);
                assert_eq!((event.i64(field), event.text(field)), (0, &b""[..]));
                assert_eq!(event.value(field), Value::Absent);
            }
            true
        });
    }
}
