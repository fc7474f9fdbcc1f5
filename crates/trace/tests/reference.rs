//! The engine against a slow reference that knows nothing but the sample's layout: one bit after
//! the other, all events sorted at the end. A checksum over all fields depends on their order.

use std::fs;
use std::path::Path;

use event::{FieldId, FieldType, TimeRange, Value};
use trace::{Cursor, EventView, Item, Trace};

/// Adds a number to a checksum that depends on order.
fn add(sum: &mut u64, number: u64) {
    *sum = sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number;
}

/// Bits of a file, little-endian, from the first on.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> u64 {
        let mut number = 0;
        for place in 0..count {
            let at = self.at + place;
            let bit = self.bytes[at / 8] >> (at % 8) & 1;
            number |= u64::from(bit) << place;
        }
        self.at += count;
        number
    }

    fn text(&mut self, sum: &mut u64) {
        loop {
            match self.take(8) {
                0 => return,
                byte => add(sum, byte),
            }
        }
    }

    /// The payload of one event of the sample.
    fn payload(&mut self, id: u64, sum: &mut u64) {
        match id {
            0 => {
                add(sum, self.take(32));
                self.text(sum);
            }
            1 => {
                add(sum, self.take(32));
                add(sum, self.take(16) as u16 as i16 as i64 as u64);
                add(sum, self.take(64));
            }
            2 => {
                add(sum, self.take(8));
                add(sum, self.take(64));
                let length = self.take(32);
                add(sum, length);
                (0..length).for_each(|_| add(sum, self.take(32)));
            }
            other => panic!("the sample has no class {other}"),
        }
    }
}

/// The time of each event of a stream file and a checksum over its fields.
fn events(bytes: &[u8]) -> Vec<(u64, u64)> {
    let mut bits = Bits { bytes, at: 0 };
    let mut events = Vec::new();
    while bits.at < bytes.len() * 8 {
        let packet_at = bits.at;
        assert_eq!(bits.take(32), 0xC1FC_1FC1);
        // The UUID, the stream class and which of its streams.
        bits.at += (16 + 4 + 8) * 8;
        let (mut clock, _end) = (bits.take(64), bits.take(64));
        let (content_bits, packet_bits) = (bits.take(64), bits.take(64));
        let (_sequence, _discarded, _cpu) = (bits.take(64), bits.take(64), bits.take(32));
        while bits.at < packet_at + content_bits as usize {
            let (mut id, low) = (bits.take(5), 27);
            let time = match id {
                31 => {
                    bits.at = bits.at.next_multiple_of(8);
                    id = bits.take(32);
                    bits.take(64)
                }
                _ => {
                    let low_bits = bits.take(low);
                    let mut time = clock >> low << low | low_bits;
                    time += if time < clock { 1 << low } else { 0 };
                    time
                }
            };
            clock = time;
            let mut sum = id;
            bits.payload(id, &mut sum);
            events.push((time, sum));
        }
        bits.at = packet_at + packet_bits as usize;
    }
    events
}

/// What the reference makes of a trace: the number of events and the checksum.
fn reference(dir: &Path) -> (u64, u64) {
    let mut all = Vec::new();
    for cpu in 0..2 {
        let bytes = fs::read(dir.join(format!("app_{cpu}"))).unwrap();
        all.extend(
            events(&bytes)
                .into_iter()
                .map(|(time, sum)| (time, cpu, sum)),
        );
    }
    all.sort_by_key(|(time, cpu, _)| (*time, *cpu));
    let mut sum = 0;
    for (time, cpu, fields) in &all {
        [*time, *cpu, *fields]
            .iter()
            .for_each(|number| add(&mut sum, *number));
    }
    (all.len() as u64, sum)
}

/// One event as the engine gives it.
fn fields(trace: &Trace, event: &EventView<'_>) -> u64 {
    let class = &trace.classes()[event.class().0 as usize];
    let mut sum = u64::from(event.class().0);
    for (place, field) in class.fields.iter().enumerate() {
        let id = FieldId(place as u16);
        match &field.ty {
            _ if field.scope != event::Scope::Payload => {}
            FieldType::Integer(_) | FieldType::Enum(..) => add(&mut sum, event.u64(id)),
            FieldType::Float { .. } => add(&mut sum, event.f64(id).to_bits()),
            FieldType::String => event
                .text(id)
                .iter()
                .for_each(|byte| add(&mut sum, u64::from(*byte))),
            _ => {
                let value = event.value(id);
                let elements = value.as_array().unwrap();
                let numbers = elements
                    .iter()
                    .map(|element| Value::as_u64(element).unwrap());
                numbers.for_each(|number| add(&mut sum, number));
            }
        }
    }
    sum
}

/// Time, CPU and fields of each event, as one walk or several give them.
fn numbers(trace: &Trace, cursor: &mut Cursor<'_>) -> event::Result<Vec<[u64; 3]>> {
    let mut numbers = Vec::new();
    cursor.each(|item| {
        if let Item::Event(event) = item {
            let (time, cpu) = (event.time().as_ns() as u64, event.cpu().unwrap().0);
            numbers.push([time, u64::from(cpu), fields(trace, event)]);
        }
        Ok(())
    })?;
    Ok(numbers)
}

#[test]
fn several_threads_decode_what_a_slow_reference_does_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    testkit::write_sample(folder.path()).unwrap();
    let trace = Trace::open(folder.path()).unwrap();
    for threads in 1..=4 {
        let map = |cursor: &mut Cursor<'_>| numbers(&trace, cursor);
        let slices = trace.map_slices(TimeRange::ALL, threads, map).unwrap();
        assert_eq!(slices.len() > 1, threads > 1, "{threads} threads");
        let (mut events, mut sum) = (0, 0);
        for number in slices.iter().flatten() {
            number.iter().for_each(|number| add(&mut sum, *number));
            events += 1;
        }
        assert_eq!((events, sum), reference(folder.path()), "{threads} threads");
    }
}

#[test]
fn every_field_of_every_event_is_what_a_slow_reference_decodes_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    testkit::write_sample(folder.path()).unwrap();
    let trace = Trace::open(folder.path()).unwrap();
    let mut cursor = trace.cursor(TimeRange::ALL);
    let (mut events, mut sum) = (0, 0);
    while let Some(item) = cursor.next().unwrap() {
        if let Item::Event(event) = item {
            let (time, cpu) = (event.time().as_ns() as u64, event.cpu().unwrap().0);
            let numbers = [time, u64::from(cpu), fields(&trace, &event)];
            numbers.iter().for_each(|number| add(&mut sum, *number));
            events += 1;
        }
    }
    assert_eq!(events, testkit::SAMPLE_EVENTS);
    assert_eq!((events, sum), reference(folder.path()));
}
