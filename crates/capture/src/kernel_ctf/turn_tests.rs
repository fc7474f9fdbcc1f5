//! From one stream to the next at an instant.

use ftrace::{EventFormat, Formats, PageLayout};

use super::*;
use crate::channels::RingId;
use crate::kernel_trace::KernelTrace;

const FORMAT: &str = "name: tick\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:int value;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
/// Of a page before which events are missing.
const MISSED: u64 = 1 << 31;

/// A page whose events are at `times`.
fn page(times: &[u64], flags: u64) -> Vec<u8> {
    let mut bytes = times[0].to_le_bytes().to_vec();
    bytes.extend(((16 * times.len() as u64) | flags).to_le_bytes());
    let mut last = times[0];
    for time in times {
        // Three words: the event's number, its task and its value.
        bytes.extend((3u32 | (((time - last) as u32) << 5)).to_le_bytes());
        for word in [7u32, 1, 5] {
            bytes.extend(word.to_le_bytes());
        }
        last = *time;
    }
    bytes.resize(4096, 0);
    bytes
}

/// Events, losses, and the times of the first and the last event.
type Got = (u64, u64, Option<(i64, i64)>);

/// Converts `pages`, and turns at 25 as soon as the first `before` of them were converted; gives
/// events, losses and the window of both streams.
fn check(pages: &[Vec<u8>], before: usize, expect: [Got; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let format = EventFormat::parse("test", FORMAT).expect("a format");
    let formats = Formats::new(PageLayout::LP64, [format]);
    let classes = Arc::new(KernelClasses::compile(&formats));
    let trace = |name: &str| {
        let classes = (Arc::clone(&classes), &[][..]);
        KernelTrace::create(&folder.path().join(name), classes, Vec::new(), 0, false)
    };
    let (mut first, mut next) = (trace("1").expect("a trace"), trace("2").expect("a trace"));
    let groups = Arc::new(ThreadGroups::default());
    let mut converter = first.cpu(Cpu(0), &groups).expect("a stream");
    let mut streams = next
        .streams(&[RingId {
            channel: 0,
            cpu: Cpu(0),
        }])
        .expect("a stream");
    for (place, page) in pages.iter().enumerate() {
        if place == before {
            let (_, stream) = streams.pop().expect("one");
            converter.turn_to(Instant::from_ns(25), stream);
        }
        converter.page(page, Before::Running, 0).expect("converted");
    }
    let turned = converter.turned().expect("written").expect("it has turned");
    let ended = converter.finish().expect("written");
    let found = [turned, ended].map(|totals| {
        let window = totals.window.map(|of| (of.begin.as_ns(), of.end.as_ns()));
        (totals.events, totals.discarded, window)
    });
    assert_eq!(found, expect);
}

#[test]
fn an_event_goes_to_the_stream_of_its_time_whenever_it_is_read() {
    let all = page(&[10, 20, 30, 40], 0);
    let halves = [(2, 0, Some((10, 20))), (2, 0, Some((30, 40)))];
    check(&[all], 0, halves);
    check(&[page(&[10, 20], 0), page(&[30, 40], 0)], 1, halves);
    // Nothing was before, or comes behind.
    check(&[page(&[25], 0)], 0, [(0, 0, None), (1, 0, Some((25, 25)))]);
    check(&[page(&[24], 0)], 0, [(1, 0, Some((24, 24))), (0, 0, None)]);
}

#[test]
fn what_is_lost_at_the_turn_is_counted_once() {
    let pages = [page(&[10, 20], 0), page(&[30, 40], MISSED)];
    check(&pages, 1, [(2, 1, Some((10, 20))), (2, 0, Some((30, 40)))]);
    let pages = [page(&[10], MISSED), page(&[30], 0), page(&[40], MISSED)];
    check(&pages, 1, [(1, 1, Some((10, 10))), (2, 1, Some((30, 40)))]);
}

/// When events of this stream are missing, of a ring that stood still in `stops`.
fn missing(pages: &[Vec<u8>], stops: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let folder = tempfile::tempdir().expect("a folder");
    let format = EventFormat::parse("test", FORMAT).expect("a format");
    let formats = Formats::new(PageLayout::LP64, [format]);
    let classes = (Arc::new(KernelClasses::compile(&formats)), &[][..]);
    let root = folder.path().join("trace");
    let mut trace = KernelTrace::create(&root, classes, Vec::new(), 0, false).expect("a trace");
    let groups = Arc::new(ThreadGroups::default());
    let stop = |(begin, end): &(i64, i64)| TimeRange {
        begin: Instant::from_ns(*begin),
        end: Instant::from_ns(*end),
    };
    let stops: Vec<_> = stops.iter().map(stop).collect();
    let converter = trace.cpu(Cpu(0), &groups).expect("a stream");
    let mut converter = converter.without(Instant::MAX, &stops);
    for page in pages {
        converter.page(page, Before::Running, 0).expect("converted");
    }
    converter.finish().expect("written");
    drop(trace);
    let opened = trace::Trace::open(&root).expect("a trace");
    let mut cursor = opened.cursor(TimeRange::ALL);
    let mut missing = Vec::new();
    while let Some(item) = cursor.next().expect("it is read") {
        if let trace::Item::Lost(lost) = item {
            missing.push((lost.range.begin.as_ns(), lost.range.end.as_ns()));
        }
    }
    missing
}

#[test]
fn what_is_missing_of_a_ring_that_stood_still_begins_where_any_ring_last_ran() {
    let pages = [page(&[10, 90], 0)];
    assert_eq!(missing(&pages, &[(60, 70)]), [(60, 70)]);
    // Where nobody knows since when it stood still, behind its own last event.
    let unknown = missing(&pages, &[(0, 70)]);
    assert_eq!(unknown, [(10, 70)]);
    assert_eq!(missing(&pages, &[(20, 30), (60, 70)]), [(20, 30), (60, 70)]);
}
