//! What the lines of a measurement's file add up to.

use std::path::Path;

use event::{Duration, Error, ErrorKind, Result};

use super::line::{
    Begin, ClockSet, Excursion, Head, Interval, Line, LoadState, Plain, SCHEMA, VERSION,
};

/// All that stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its first line.
    pub head: Head,
    /// What was measured before anything was explained.
    pub plain: Option<Plain>,
    /// The runs that closed an interval, in their order.
    pub parts: Vec<Part>,
}

/// What one run left.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its begin.
    pub begin: Begin,
    /// What it closed.
    pub intervals: Vec<Interval>,
    /// Whether it ended by itself, and then whether it was complete.
    pub ended: Option<bool>,
}

impl Record {
    /// Reads whole lines.
    pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Record> {
        let mut lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let corrupt = |number: usize, found: String| {
            let what = format!("line {number} of {} cannot be read", path.display());
            let fix = "measure anew, into another folder: the file was changed";
            Error::new(ErrorKind::Corrupt, what).found(found).fix(fix)
        };
        let parse = |number: usize, line: &[u8]| {
            let parsed = serde_json::from_slice(line);
            parsed.map_err(|error| corrupt(number, error.to_string()))
        };
        let head = match lines.next().map(|line| parse(1, line)).transpose()? {
            Some(Line::Head(head)) if head.schema == SCHEMA && head.version == VERSION => head,
            Some(Line::Head(head)) => {
                let found = format!("schema {}, version {}", head.schema, head.version);
                return Err(corrupt(1, found));
            }
            _ => return Err(corrupt(1, "not the head of a measurement".to_owned())),
        };
        let mut record = Record {
            head,
            plain: None,
            parts: Vec::new(),
        };
        for (number, line) in (2..).zip(lines) {
            if !record.take(parse(number, line)?) {
                return Err(corrupt(number, "a line that cannot stand here".to_owned()));
            }
        }
        record.parts.retain(|part| !part.intervals.is_empty());
        Ok(record)
    }

    fn take(&mut self, line: Line) -> bool {
        match (line, self.parts.last_mut()) {
            (Line::Head(_), _) => return false,
            (Line::Plain(plain), _) => self.plain = Some(plain),
            (Line::Begin(begin), _) => self.parts.push(Part {
                begin,
                intervals: Vec::new(),
                ended: None,
            }),
            (Line::Interval(interval), Some(part)) => part.intervals.push(interval),
            (Line::End { complete }, Some(part)) => part.ended = Some(complete),
            (_, None) => return false,
        }
        true
    }

    /// For how long it was measured, but for the plain part.
    pub fn elapsed(&self) -> Duration {
        let elapsed = self.parts.iter().map(|part| part.elapsed().as_ns());
        Duration::from_ns(elapsed.sum())
    }

    /// Whether nothing is left to measure.
    pub fn is_complete(&self) -> bool {
        self.parts
            .last()
            .is_some_and(|part| part.ended == Some(true))
    }
}

impl Part {
    /// For how long it measured.
    pub fn elapsed(&self) -> Duration {
        Duration::from_ns(self.intervals.iter().map(|one| one.elapsed_ns).sum())
    }

    /// From its first interval to its last, in nanoseconds since 1970.
    pub fn wall_ns(&self) -> (i64, i64) {
        let first = self.intervals.first().map(|one| one.from_wall_ns);
        let last = self.intervals.last().map(|one| one.until_wall_ns);
        (first.unwrap_or_default(), last.unwrap_or_default())
    }

    /// The same by the clock of the machine's start, which nobody sets, where that was noted.
    pub fn since_boot_ns(&self) -> Option<(i64, i64)> {
        let last = self.intervals.last()?.since_boot_ns?;
        Some((self.begin.since_boot_ns?, last))
    }

    /// When the wall clock was set meanwhile.
    pub fn clock_set(&self) -> impl Iterator<Item = &ClockSet> {
        self.intervals.iter().flat_map(|one| &one.clock_set)
    }

    /// Its loads, as the last interval has them.
    pub fn loads(&self) -> &[LoadState] {
        self.intervals.last().map_or(&[], |one| &one.loads)
    }

    /// Its samples over the limit, as far as they were kept, and how many more there were.
    pub fn excursions(&self) -> (impl Iterator<Item = &Excursion>, u64) {
        let kept = self.intervals.iter().flat_map(|one| &one.excursions);
        let left_out = self.intervals.iter().map(|one| one.excursions_left_out);
        (kept, left_out.sum())
    }

    /// The longest latency of each stretch of at least `stretch` of one thread, and when it ended,
    /// since the begin of the part.
    pub fn series(&self, thread: usize, stretch: Duration) -> Vec<(Duration, Duration)> {
        let (mut points, mut at_ns, mut begun_ns) = (Vec::new(), 0, 0);
        let mut longest_ns: Option<i64> = None;
        for (place, interval) in self.intervals.iter().enumerate() {
            at_ns += interval.elapsed_ns;
            let own = interval
                .threads
                .get(thread)
                .and_then(|one| one.latency.longest_ns);
            longest_ns = longest_ns.max(own);
            let is_last = place + 1 == self.intervals.len();
            if at_ns - begun_ns < stretch.as_ns() && !is_last {
                continue;
            }
            begun_ns = at_ns;
            let longest = longest_ns.take().map(Duration::from_ns);
            points.extend(longest.map(|longest| (Duration::from_ns(at_ns), longest)));
        }
        points
    }
}
