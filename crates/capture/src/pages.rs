//! Raw sub-buffers in memory: shared between snapshots, found by time, not yet parsed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use event::{Cpu, Instant, TimeRange};
use ftrace::{Page, PageLayout};

/// The pages of one CPU from one drain, in order.
#[derive(Debug)]
pub struct PageBlock {
    cpu: Cpu,
    layout: PageLayout,
    bytes: Vec<u8>,
}

impl PageBlock {
    /// From the bytes of whole pages; an incomplete last page is not seen.
    pub fn new(cpu: Cpu, layout: PageLayout, bytes: Vec<u8>) -> Self {
        PageBlock { cpu, layout, bytes }
    }

    /// The CPU.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// How many pages.
    pub fn page_count(&self) -> usize {
        self.bytes.len() / self.layout.page_size_bytes()
    }

    /// Bytes of memory that it holds.
    pub fn size_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The bytes of page `index`; empty when there is none.
    pub fn page(&self, index: usize) -> &[u8] {
        let size = self.layout.page_size_bytes();
        self.bytes
            .get(index * size..(index + 1) * size)
            .unwrap_or_default()
    }

    fn begin(&self, index: usize) -> Option<Instant> {
        let page = Page::parse(&self.layout, self.page(index)).ok()?;
        Some(Instant::from_ns(page.time_ns as i64))
    }

    /// The time of the last event of page `index`.
    fn end(&self, index: usize) -> Option<Instant> {
        self.last_before(index, Instant::MAX)
    }

    /// The time of the last event of page `index` before `until`.
    fn last_before(&self, index: usize, until: Instant) -> Option<Instant> {
        let page = Page::parse(&self.layout, self.page(index)).ok()?;
        let times = page.events().flatten();
        let times = times.map(|event| Instant::from_ns(event.time_ns as i64));
        times.take_while(|time| *time < until).last()
    }
}

/// Some neighbouring pages of a block.
#[derive(Clone, Debug)]
pub struct PageSpan {
    /// Their block.
    pub block: Arc<PageBlock>,
    /// Their numbers in it.
    pub pages: Range<usize>,
}

impl PageSpan {
    /// All pages of a block.
    pub fn whole(block: Arc<PageBlock>) -> Self {
        let pages = 0..block.page_count();
        PageSpan { block, pages }
    }

    /// The bytes of each page, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.pages.clone().map(|index| self.block.page(index))
    }

    /// Those of its pages that may hold events of `range`.
    fn overlapping(&self, range: TimeRange) -> Option<PageSpan> {
        // Page i holds the events from its own begin to the begin of page i + 1.
        let begins = |index: usize| self.block.begin(index).unwrap_or(Instant::MIN);
        let mut pages = self.pages.clone();
        while pages.len() > 1 && begins(pages.start + 1) <= range.begin {
            pages.start += 1;
        }
        while !pages.is_empty() && begins(pages.end - 1) >= range.end {
            pages.end -= 1;
        }
        if pages.len() == 1
            && self
                .block
                .end(pages.start)
                .is_some_and(|end| end < range.begin)
        {
            return None;
        }
        (!pages.is_empty()).then(|| PageSpan {
            block: Arc::clone(&self.block),
            pages,
        })
    }
}

/// The pages of one CPU, oldest first.
#[derive(Clone, Debug)]
pub struct CpuPages {
    /// The CPU.
    pub cpu: Cpu,
    /// Its pages, from one drain or several.
    pub spans: Vec<PageSpan>,
}

impl CpuPages {
    /// The bytes of each page, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().flat_map(PageSpan::iter)
    }

    /// The time of the last event before `until`.
    fn last_before(&self, until: Instant) -> Option<Instant> {
        let in_span = |span: &PageSpan| {
            let mut pages = span.pages.clone().rev();
            pages.find_map(|index| span.block.last_before(index, until))
        };
        self.spans.iter().rev().find_map(in_span)
    }

    /// The times of the first and the last event; none without events.
    pub fn range(&self) -> Option<TimeRange> {
        let places = |span: &PageSpan| {
            let block = Arc::clone(&span.block);
            span.pages
                .clone()
                .map(move |index| (Arc::clone(&block), index))
        };
        let mut forward = self.spans.iter().flat_map(places);
        let begin = forward.find_map(|(block, index)| {
            let page = Page::parse(&block.layout, block.page(index)).ok()?;
            let first = page.events().flatten().next()?;
            Some(Instant::from_ns(first.time_ns as i64))
        })?;
        let all: Vec<_> = self.spans.iter().flat_map(places).collect();
        let end = all
            .iter()
            .rev()
            .find_map(|(block, index)| block.end(*index))?;
        Some(TimeRange { begin, end })
    }
}

/// What a drain yields: the pages of each CPU.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// One entry per CPU, in order.
    pub cpus: Vec<CpuPages>,
    /// What happened from then on is for the next drain, though some of it is in the pages.
    pub until: Instant,
    /// When the recorder stood still: what happened then is not in the pages.
    pub stops: Vec<TimeRange>,
}

impl Pages {
    /// The time of the last event that is not for the next drain: the recorder ran at least until
    /// then.
    pub fn newest(&self) -> Option<Instant> {
        let last = |cpu: &CpuPages| cpu.last_before(self.until);
        self.cpus.iter().filter_map(last).max()
    }

    /// Takes over the last stop of `drained`, the drain in which these end, where it began before
    /// `end`: what came after a hit is no part of its snapshot, what is missing of the hit is.
    pub fn stopped_before(&mut self, end: Instant, drained: &Pages) {
        let is_in_hit = |stop: &&TimeRange| stop.end == self.until && stop.begin < end;
        let last = drained.stops.last().filter(is_in_hit);
        self.stops.extend(last.copied());
    }

    /// How many pages.
    pub fn page_count(&self) -> usize {
        self.cpus
            .iter()
            .flat_map(|cpu| &cpu.spans)
            .map(|span| span.pages.len())
            .sum()
    }
}

/// Keeps the pages of the last drains, bounded by bytes, so that hits that overlap share them.
#[derive(Debug)]
pub struct History {
    limit_bytes: usize,
    drains: VecDeque<Pages>,
}

impl History {
    /// Keeps at most `limit_bytes` of pages, but always the last drain.
    pub fn new(limit_bytes: usize) -> Self {
        History {
            limit_bytes,
            drains: VecDeque::new(),
        }
    }

    /// Adds a drain; the oldest ones go when there are too many bytes.
    pub fn push(&mut self, pages: Pages) {
        self.drains.push_back(pages);
        while self.drains.len() > 1 && self.size_bytes() > self.limit_bytes {
            self.drains.pop_front();
        }
    }

    /// The bytes that are kept.
    pub fn size_bytes(&self) -> usize {
        let spans = self
            .drains
            .iter()
            .flat_map(|pages| &pages.cpus)
            .flat_map(|cpu| &cpu.spans);
        spans.map(|span| span.block.size_bytes()).sum()
    }

    /// The pages that may hold events of `range`, shared with this history. A CPU without any is
    /// listed with none.
    pub fn overlapping(&self, range: TimeRange) -> Pages {
        let stops = self.drains.iter().flat_map(|pages| &pages.stops);
        let is_inside = |stop: &TimeRange| range.begin < stop.end && stop.end < range.end;
        let mut found = Pages {
            cpus: Vec::new(),
            until: range.end,
            stops: stops.copied().filter(is_inside).collect(),
        };
        for cpu in self.drains.iter().flat_map(|pages| &pages.cpus) {
            let spans = cpu.spans.iter().filter_map(|span| span.overlapping(range));
            match found.cpus.iter_mut().find(|known| known.cpu == cpu.cpu) {
                Some(known) => known.spans.extend(spans),
                None => found.cpus.push(CpuPages {
                    cpu: cpu.cpu,
                    spans: spans.collect(),
                }),
            }
        }
        found.cpus.sort_by_key(|cpu| cpu.cpu);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page whose events are at `times`, each a record of four bytes.
    fn page(times: &[u64]) -> Vec<u8> {
        let mut bytes = times[0].to_le_bytes().to_vec();
        bytes.extend((8 * times.len() as u64).to_le_bytes());
        let mut last = times[0];
        for time in times {
            bytes.extend((1u32 | ((time - last) as u32) << 5).to_le_bytes());
            bytes.extend([0; 4]);
            last = *time;
        }
        bytes.resize(4096, 0);
        bytes
    }

    fn drain(pages: &[&[u64]]) -> Pages {
        let bytes = pages.iter().flat_map(|times| page(times)).collect();
        let block = PageBlock::new(Cpu(0), PageLayout::LP64, bytes);
        let spans = vec![PageSpan::whole(Arc::new(block))];
        Pages {
            cpus: vec![CpuPages { cpu: Cpu(0), spans }],
            ..Pages::default()
        }
    }

    fn range(begin: i64, end: i64) -> TimeRange {
        TimeRange {
            begin: Instant::from_ns(begin),
            end: Instant::from_ns(end),
        }
    }

    #[test]
    fn a_history_hands_out_the_pages_that_overlap_and_shares_them() {
        let mut history = History::new(1 << 20);
        history.push(drain(&[&[10, 15], &[20, 25], &[30, 35]]));
        history.push(drain(&[&[40, 45], &[50, 55]]));
        let check = |begin, end, expect: &[u64]| {
            let pages = history.overlapping(range(begin, end));
            let layout = PageLayout::LP64;
            let begins: Vec<_> = pages.cpus[0]
                .iter()
                .map(|page| Page::parse(&layout, page).map(|page| page.time_ns))
                .collect::<Result<_, _>>()
                .expect("sound pages");
            assert_eq!(begins, expect, "{begin}..{end}");
        };
        check(0, 100, &[10, 20, 30, 40, 50]);
        check(22, 32, &[20, 30]);
        check(33, 50, &[30, 40]);
        check(56, 100, &[]);
        check(0, 10, &[]);
        let first = history.overlapping(range(0, 100));
        assert!(
            Arc::strong_count(&first.cpus[0].spans[0].block) > 1,
            "shared, not copied"
        );
        assert_eq!(first.cpus[0].range(), Some(range(10, 55)));
    }

    #[test]
    fn a_stop_that_began_before_a_hit_was_over_belongs_to_its_window() {
        let mut history = History::new(1 << 20);
        history.push(Pages {
            until: Instant::from_ns(90),
            stops: vec![range(25, 90)],
            ..drain(&[&[10, 15], &[20, 25]])
        });
        let drained = history.drains[0].clone();
        let check = |end, expect: &[TimeRange]| {
            let mut window = history.overlapping(range(0, 90));
            window.stopped_before(Instant::from_ns(end), &drained);
            assert_eq!(window.stops, expect, "{end}");
        };
        check(24, &[]);
        check(80, &[range(25, 90)]);
    }

    #[test]
    fn a_history_is_bounded_but_keeps_the_last_drain() {
        let mut history = History::new(4096);
        history.push(drain(&[&[10]]));
        history.push(drain(&[&[20], &[30]]));
        assert_eq!(history.overlapping(range(0, 100)).page_count(), 2);
    }
}
