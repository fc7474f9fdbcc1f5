//! Many events, one after the other: the hot path of a recorder.

use event::{Instant, Result};

use super::{
    COMPACT_BYTES, COMPACT_EXTENDED_ID, COMPACT_TIME_BITS, HeaderKind, LARGE_BYTES,
    LARGE_EXTENDED_ID, LARGE_TIME_BITS, StreamWriter, compact_header, large_header,
};
use crate::writer::encode::ClassEncoder;

/// Events that are alike are copied in windows of this size, the last of which reaches beyond its
/// event.
pub const WINDOW_BYTES: usize = 16;
/// A longer context is copied event by event.
const CONTEXT_WINDOWS_MAX: usize = 4;
/// Room that a packet begins with. It grows as events come: of a thousand streams most have few.
const FIRST_ROOM_BYTES: usize = 16 << 10;
/// Room behind the last byte of a packet: for that, and for a header that is written as eight bytes
/// whatever its size.
const SLACK_BYTES: usize = 8 + 2 * WINDOW_BYTES;

/// The events for which a packet that is open takes the short header and bytes as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quick {
    /// Classes before this place.
    classes: u32,
    /// Times that lie less than this behind the last.
    span_ns: u64,
    /// Whether that header has four bytes; else it has six.
    is_compact: bool,
}

impl Quick {
    pub fn new(header: HeaderKind, classes: &[ClassEncoder]) -> Quick {
        let (ids, bits) = match header {
            HeaderKind::Compact => (COMPACT_EXTENDED_ID, COMPACT_TIME_BITS),
            HeaderKind::Large => (LARGE_EXTENDED_ID, LARGE_TIME_BITS),
            HeaderKind::Untimed => return Quick::default(),
        };
        let bytes = classes.iter().take_while(|class| class.wire.is_bytes);
        Quick {
            classes: ids.min(bytes.count() as u32),
            span_ns: 1 << bits,
            is_compact: header == HeaderKind::Compact,
        }
    }
}

/// Appends events to a stream, with what that takes in registers: while it lives, nobody else sees
/// the stream. What was appended is there when it is dropped.
#[derive(Debug)]
pub struct Run<'s> {
    stream: &'s mut StreamWriter,
    quick: Quick,
    /// Where the next event goes.
    at: *mut u8,
    /// Bytes behind it in the open packet; none where no event can go there.
    room_bytes: usize,
    /// The time of the last event.
    end: u64,
    events: u64,
}

impl<'s> Run<'s> {
    pub(super) fn new(stream: &'s mut StreamWriter) -> Self {
        let most = stream.packet_bytes_max();
        let packet = &mut stream.packet;
        let used = packet.bytes.len();
        let mut room_bytes = 0;
        if used > 0 && packet.is_at_byte() {
            let there = packet.bytes.room_bytes().saturating_sub(used + SLACK_BYTES);
            let wanted = there.max(used).max(FIRST_ROOM_BYTES);
            room_bytes = most.saturating_sub(used).min(wanted);
            packet.bytes.reserve(room_bytes + SLACK_BYTES);
        }
        Run {
            quick: stream.quick,
            // SAFETY: the length lies in the allocation, or at its end.
            at: unsafe { packet.bytes.as_mut_ptr().add(used) },
            room_bytes,
            end: stream.end,
            events: 0,
            stream,
        }
    }

    /// Appends an event whose payload has two parts: `context` and `fields`, laid out as
    /// [`super::super::PayloadWriter`] does. False when the event begins a packet, or has no short
    /// header: then it is one for [`Run::any_event`].
    #[inline(always)]
    pub fn event(&mut self, class: u32, time: Instant, context: &[u8], fields: &[u8]) -> bool {
        let ns = time.as_ns() as u64;
        let (header, header_bytes) = match self.quick.is_compact {
            true => (compact_header(class, ns), COMPACT_BYTES),
            false => (large_header(class, ns), LARGE_BYTES),
        };
        let parts_bytes = context.len() + fields.len();
        // A time before the last, or before the clock's origin, is far behind it by this.
        let is_quick = class < self.quick.classes
            && ns.wrapping_sub(self.end) < self.quick.span_ns
            && header_bytes + parts_bytes <= self.room_bytes;
        if !is_quick {
            return false;
        }
        // SAFETY: from `at` on the packet has room for `room_bytes` and eight more: enough for
        // eight bytes of header, of which those that are none are written over, and both parts.
        unsafe {
            self.at.cast::<u64>().write_unaligned(header.to_le());
            let behind_header = self.at.add(header_bytes);
            copy_words(context, behind_header);
            copy_words(fields, behind_header.add(context.len()));
            self.at = behind_header.add(parts_bytes);
        }
        self.room_bytes -= header_bytes + parts_bytes;
        self.end = ns;
        self.events += 1;
        true
    }

    /// Appends events of one class, one context and one size for as long as `next` gives some:
    /// their times, and whole windows ([`WINDOW_BYTES`]) that begin with `fields_bytes` of fields.
    /// Gives how many it appended; the next, which it may have asked for, is one for
    /// [`Run::event`].
    #[inline(always)]
    pub fn alike<'b>(
        &mut self,
        class: u32,
        context: &[u8],
        fields_bytes: usize,
        next: impl FnMut() -> Option<(Instant, &'b [u8])>,
    ) -> usize {
        let mut context_windows = [[0; WINDOW_BYTES]; CONTEXT_WINDOWS_MAX];
        let Some(begin) = context_windows.as_flattened_mut().get_mut(..context.len()) else {
            return 0;
        };
        begin.copy_from_slice(context);
        let alike = Alike {
            class,
            context_windows: &context_windows[..context.len().div_ceil(WINDOW_BYTES)],
            context_bytes: context.len(),
            fields_bytes,
        };
        let is_small = alike.context_windows.len() == 1 && alike.windows_bytes() == WINDOW_BYTES;
        // What is known of most of them is worth a loop of its own.
        match (self.quick.is_compact, is_small) {
            (true, true) => self.append_alike::<true, true>(&alike, next),
            (true, false) => self.append_alike::<true, false>(&alike, next),
            (false, true) => self.append_alike::<false, true>(&alike, next),
            (false, false) => self.append_alike::<false, false>(&alike, next),
        }
    }

    /// The same, with headers of four bytes or six, for events of one window each or of any size.
    #[inline(always)]
    fn append_alike<'b, const COMPACT: bool, const SMALL: bool>(
        &mut self,
        alike: &Alike<'_>,
        mut next: impl FnMut() -> Option<(Instant, &'b [u8])>,
    ) -> usize {
        let header_bytes = match COMPACT {
            true => COMPACT_BYTES,
            false => LARGE_BYTES,
        };
        let context_windows = match SMALL {
            true => &alike.context_windows[..1],
            false => alike.context_windows,
        };
        let windows_bytes = match SMALL {
            true => WINDOW_BYTES,
            false => alike.windows_bytes(),
        };
        let event_bytes = header_bytes + alike.context_bytes + alike.fields_bytes;
        let (mut at, mut end) = (self.at, self.end);
        let mut room_bytes = match alike.class < self.quick.classes {
            true => self.room_bytes,
            false => 0,
        };
        let mut count = 0;
        while event_bytes <= room_bytes {
            let Some((time, windows)) = next() else {
                break;
            };
            let ns = time.as_ns() as u64;
            if ns.wrapping_sub(end) >= self.quick.span_ns || windows.len() != windows_bytes {
                break;
            }
            let header = match COMPACT {
                true => compact_header(alike.class, ns),
                false => large_header(alike.class, ns),
            };
            // SAFETY: from `at` on there is room for the event, and behind it for the rest of the
            // header's word and of two windows.
            unsafe {
                at.cast::<u64>().write_unaligned(header.to_le());
                let context_at = at.add(header_bytes);
                copy_windows(context_windows.as_flattened(), context_at);
                copy_windows(windows, context_at.add(alike.context_bytes));
                at = at.add(event_bytes);
            }
            room_bytes -= event_bytes;
            end = ns;
            count += 1;
        }
        (self.at, self.end) = (at, end);
        self.room_bytes -= count * event_bytes;
        self.events += count as u64;
        count
    }

    /// Appends any event.
    ///
    /// # Errors
    /// As [`StreamWriter::event`].
    #[cold]
    #[inline(never)]
    pub fn any_event(
        self,
        class: u32,
        time: Instant,
        context: &[u8],
        fields: &[u8],
    ) -> Result<Run<'s>> {
        let stream = self.into_stream();
        stream.any_event(class, time, context, fields)?;
        Ok(Run::new(stream))
    }

    fn into_stream(mut self) -> &'s mut StreamWriter {
        self.keep();
        let stream: *mut StreamWriter = self.stream;
        std::mem::forget(self);
        // SAFETY: the one reference that there was, for as long as it was given.
        unsafe { &mut *stream }
    }

    /// Tells the stream what was appended.
    fn keep(&mut self) {
        if self.events == 0 {
            return;
        }
        let packet = &mut self.stream.packet.bytes;
        // SAFETY: `at` came from this packet, which nobody else could change, and all before it was
        // written.
        unsafe {
            let used = self.at.offset_from_unsigned(packet.as_ptr());
            packet.set_len(used);
        }
        self.stream.end = self.end;
        self.stream.events += self.events;
        self.events = 0;
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.keep();
    }
}

/// What events that are alike have in common.
struct Alike<'c> {
    class: u32,
    /// The context, and zeros to the end of the last window.
    context_windows: &'c [[u8; WINDOW_BYTES]],
    context_bytes: usize,
    fields_bytes: usize,
}

impl Alike<'_> {
    fn windows_bytes(&self) -> usize {
        self.fields_bytes.next_multiple_of(WINDOW_BYTES)
    }
}

/// Copies whole windows.
///
/// # Safety
/// There is room for them at `to`.
#[inline(always)]
unsafe fn copy_windows(windows: &[u8], mut to: *mut u8) {
    for window in windows.chunks_exact(WINDOW_BYTES) {
        // SAFETY: the window is whole, and the caller made room.
        unsafe {
            to.copy_from_nonoverlapping(window.as_ptr(), WINDOW_BYTES);
            to = to.add(WINDOW_BYTES);
        }
    }
}

/// Copies `part`: one or two words without a call.
///
/// # Safety
/// There is room for it at `to`.
#[inline(always)]
unsafe fn copy_words(part: &[u8], to: *mut u8) {
    let from = part.as_ptr();
    // SAFETY: the length was looked at, and the caller made room.
    unsafe {
        match part.len() {
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            16 => to.cast::<[u8; 16]>().write(from.cast::<[u8; 16]>().read()),
            length => to.copy_from_nonoverlapping(from, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use event::{ClassId, Cpu, EventClass, Field, FieldType};

    use super::super::PACKET_BYTES;
    use super::*;
    use crate::writer::{ClockMeta, StreamMeta, TraceMeta, TraceWriter};

    /// A stream of one class with a text, in a folder that goes when it is dropped.
    fn stream(header: HeaderKind) -> (tempfile::TempDir, StreamWriter) {
        let folder = tempfile::tempdir().expect("a folder");
        let class = EventClass {
            id: ClassId(0),
            name: "said".to_owned(),
            stream: 0,
            fields: vec![Field::payload("text", FieldType::String)].into(),
        };
        let meta = TraceMeta {
            clocks: vec![ClockMeta::monotonic(0)],
            streams: vec![StreamMeta {
                header,
                classes: vec![class],
                ..StreamMeta::default()
            }],
            ..TraceMeta::default()
        };
        let mut trace = TraceWriter::create(&folder.path().join("trace"), &meta).expect("a trace");
        let stream = trace.stream(0, Cpu(0)).expect("a stream");
        (folder, stream)
    }

    #[test]
    fn a_run_writes_what_events_one_by_one_write_whatever_their_lengths_and_times() {
        let check = |header: HeaderKind| {
            let (_one, mut one_by_one) = stream(header);
            let (_run, mut of_run) = stream(header);
            let bytes: Vec<u8> = (100..180).collect();
            let steps = [0, 1, 1000, 1 << 26, 1 << 27, 1 << 31, 1 << 33];
            let mut ns = 5_000;
            let mut run = of_run.run();
            for length in 0..40 {
                ns += steps[length % steps.len()];
                let time = Instant::from_ns(ns);
                let (context, fields) = (&bytes[..length], &bytes[40..80 - length]);
                one_by_one
                    .any_event(0, time, context, fields)
                    .expect("an event");
                if !run.event(0, time, context, fields) {
                    run = run.any_event(0, time, context, fields).expect("an event");
                }
            }
            drop(run);
            assert_eq!(of_run.packet.bytes[..], one_by_one.packet.bytes[..]);
            assert_eq!((of_run.end, of_run.events), (one_by_one.end, 40));
        };
        check(HeaderKind::Compact);
        check(HeaderKind::Large);
        check(HeaderKind::Untimed);
    }

    #[test]
    fn events_that_are_alike_are_those_that_one_by_one_are() {
        let check = |header: HeaderKind, context_bytes: usize, fields_bytes: usize| {
            let (_one, mut one_by_one) = stream(header);
            let (_alike, mut of_alike) = stream(header);
            let windows_bytes = fields_bytes.next_multiple_of(WINDOW_BYTES);
            let bytes: Vec<u8> = (0..200).collect();
            let context = &bytes[..context_bytes];
            // The sixth is too late for a short header, the ninth too early for any.
            let times = [1, 1, 5, 900, 901, 1 << 40, (1 << 40) + 1, (1 << 40) + 9, 3];
            let times = times.map(Instant::from_ns);
            let first = one_by_one.any_event(0, times[0], context, &bytes[1..1 + fields_bytes]);
            first.expect("an event");
            let first = of_alike.any_event(0, times[0], context, &bytes[1..1 + fields_bytes]);
            first.expect("an event");
            let mut events = (1..times.len()).map(|place| {
                let windows = &bytes[place + 1..place + 1 + windows_bytes];
                (times[place], windows)
            });
            let mut run = of_alike.run();
            let count = run.alike(0, context, fields_bytes, || events.next());
            drop(run);
            for place in 1..=count {
                let fields = &bytes[place + 1..place + 1 + fields_bytes];
                let event = one_by_one.any_event(0, times[place], context, fields);
                event.expect("an event");
            }
            assert_eq!(of_alike.packet.bytes[..], one_by_one.packet.bytes[..]);
            assert_eq!(of_alike.events, one_by_one.events);
            count
        };
        for header in [HeaderKind::Compact, HeaderKind::Large] {
            for length in 0..=64 {
                assert_eq!(check(header, length, 16), 4, "{length} bytes of context");
                assert_eq!(check(header, 8, length), 4, "{length} bytes of fields");
            }
            assert_eq!(check(header, 65, 8), 0, "too long a context");
        }
        assert_eq!(check(HeaderKind::Untimed, 8, 8), 0, "no short header");
    }

    #[test]
    fn a_full_packet_and_a_time_that_falls_are_none_of_a_runs_events() {
        let (_folder, mut stream) = stream(HeaderKind::Compact);
        let text = [b'x'; 1000];
        let mut run = stream.run();
        let mut count = 0;
        let mut time = Instant::from_ns(1);
        while run.stream.written.len() < 2 {
            time = time + event::Duration::from_ns(1);
            count += 1;
            if !run.event(0, time, &text, &[0]) {
                run = run.any_event(0, time, &text, &[0]).expect("an event");
            }
        }
        assert!(!run.event(0, Instant::from_ns(2), &text, &[0]));
        assert!(!run.event(1, time, &text, &[0]), "no such class");
        assert!(run.event(0, time, &text, &[0]));
        drop(run);
        let sizes = stream.written.iter().map(|packet| packet.size_bits / 8);
        assert!(sizes.clone().all(|size| size <= PACKET_BYTES as u64));
        assert!(sizes.clone().all(|size| size > PACKET_BYTES as u64 - 1100));
        let totals = stream.finish().expect("room");
        assert_eq!(totals.events, count + 1);
    }
}
