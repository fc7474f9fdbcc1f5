//! What trackers counted in the last 1, 5 and 15 minutes, out of counters in the kernel that only
//! grow: nothing is cleared there, so that nothing is lost between two looks.

use std::collections::{BTreeMap, VecDeque};

use abi::Histogram;
use event::{Duration, Instant, TimeRange};

/// The windows.
pub const WINDOWS_MIN: [u32; 3] = [1, 5, 15];
/// A window begins where a look was taken: it is longer than asked by less than this.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_ms(10_000);
/// How often the windows are told.
pub(super) const TOLD_INTERVAL: Duration = Duration::from_ms(60_000);

const fn minutes(minutes: u32) -> Duration {
    Duration::from_ms(minutes as i64 * 60_000)
}

/// What a row counts: a kind of intervals, or those of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Which of the tracker's intervals.
    pub series: usize,
    /// The key and what tells equal ones apart; none for all of them.
    pub key: Option<(u64, u32)>,
}

/// What a row has counted since its tracker began.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub row: Row,
    pub name: String,
    pub sum: Duration,
    pub max: Duration,
    pub histogram: Histogram,
}

/// The longest of some intervals, or the end of the bucket that it fell into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Longest {
    duration: Duration,
    is_exact: bool,
}

/// What came between two looks.
struct Slot {
    range: TimeRange,
    rows: BTreeMap<Row, Change>,
}

struct Change {
    sum: Duration,
    longest: Longest,
    /// Those that are not empty.
    buckets: Vec<(u16, u64)>,
}

/// A row of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRow {
    /// What it counts.
    pub row: Row,
    /// What its key is called; empty for all of them.
    pub name: String,
    /// All intervals together.
    pub sum: Duration,
    /// The longest, or what it did not exceed.
    pub worst: Duration,
    /// It took just that; else it lies in the bucket that ends there.
    pub worst_is_exact: bool,
    /// All of them.
    pub histogram: Histogram,
}

impl WindowRow {
    /// How many ended.
    pub fn count(&self) -> u64 {
        self.histogram.samples()
    }

    /// Their mean.
    pub fn mean(&self) -> Duration {
        Duration::from_ns(self.sum.as_ns() / self.count().max(1) as i64)
    }

    /// As [`bpf_host::trackers::SeriesStatistics::quantile`].
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        Some(self.histogram.quantile(quantile)?.min(self.worst))
    }
}

/// The last minutes.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// So many were asked for.
    pub minutes: u32,
    /// From where to where it is.
    pub range: TimeRange,
    /// It reaches back to where the tracker began.
    pub is_all: bool,
    /// Those in which something ended: all of a kind first, then by name.
    pub rows: Vec<WindowRow>,
}

/// One tracker's past.
pub(super) struct History {
    began: Instant,
    looked: Instant,
    /// What each row had counted then.
    counted: BTreeMap<Row, Counted>,
    slots: VecDeque<Slot>,
}

impl History {
    pub(super) fn new(now: Instant) -> History {
        History {
            began: now,
            looked: now,
            counted: BTreeMap::new(),
            slots: VecDeque::new(),
        }
    }

    /// Whether the next look is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now - self.looked >= LOOK_INTERVAL
    }

    /// Keeps what came since the last look.
    pub(super) fn look(&mut self, now: Instant, rows: Vec<Counted>) {
        let mut changes = BTreeMap::new();
        for row in rows {
            let change = change(&row, self.counted.get(&row.row));
            changes.extend(change.map(|change| (row.row, change)));
            self.counted.insert(row.row, row);
        }
        let range = TimeRange {
            begin: self.looked,
            end: now,
        };
        self.slots.push_back(Slot {
            range,
            rows: changes,
        });
        self.looked = now;
        let longest = minutes(WINDOWS_MIN[WINDOWS_MIN.len() - 1]);
        while let Some(first) = self.slots.front()
            && now - first.range.end >= longest
        {
            self.slots.pop_front();
        }
    }

    /// The windows that end with the last look.
    pub(super) fn windows(&self) -> Vec<Window> {
        WINDOWS_MIN.map(|minutes| self.window(minutes)).to_vec()
    }

    fn window(&self, asked: u32) -> Window {
        let is_inside = |slot: &&Slot| self.looked - slot.range.end < minutes(asked);
        let slots = self.slots.iter().rev().take_while(is_inside);
        let mut begin = self.looked;
        let mut rows: BTreeMap<Row, WindowRow> = BTreeMap::new();
        for slot in slots {
            begin = slot.range.begin;
            for (row, change) in &slot.rows {
                let sum = rows.entry(*row).or_insert_with(|| self.empty(*row));
                add(sum, change);
            }
        }
        let mut rows: Vec<WindowRow> = rows.into_values().collect();
        rows.sort_by(|a, b| {
            let order = |row: &WindowRow| (row.row.series, row.row.key.is_some());
            order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
        });
        Window {
            minutes: asked,
            range: TimeRange {
                begin,
                end: self.looked,
            },
            is_all: begin == self.began,
            rows,
        }
    }

    fn empty(&self, row: Row) -> WindowRow {
        let name = self.counted.get(&row).map(|counted| counted.name.clone());
        WindowRow {
            row,
            name: name.unwrap_or_default(),
            sum: Duration::ZERO,
            worst: Duration::ZERO,
            worst_is_exact: true,
            histogram: Histogram::default(),
        }
    }
}

fn add(sum: &mut WindowRow, change: &Change) {
    sum.sum += change.sum;
    sum.histogram.add_some(&change.buckets);
    let longest = change.longest;
    let is_longer = longest.duration > sum.worst;
    // Of two that end alike, one is known.
    if is_longer || (longest.duration == sum.worst && longest.is_exact) {
        sum.worst = longest.duration;
        sum.worst_is_exact = longest.is_exact;
    }
}

/// What a row counted since `before`; none when that is nothing.
fn change(now: &Counted, before: Option<&Counted>) -> Option<Change> {
    let of_before = before.map(|before| &before.histogram);
    let buckets = now.histogram.since(of_before);
    let (last, _) = buckets.last()?;
    let is_new = before.is_none_or(|before| now.max > before.max);
    let upper = Histogram::end_of(*last);
    let longest = match is_new {
        true => now.max,
        false => upper.min(now.max),
    };
    Some(Change {
        sum: now.sum - before.map_or(Duration::ZERO, |before| before.sum),
        longest: Longest {
            duration: longest,
            is_exact: is_new,
        },
        buckets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Row = Row {
        series: 0,
        key: None,
    };

    /// A tracker that counts these durations as time passes.
    struct Scene {
        history: History,
        now: Instant,
        all: Counted,
    }

    impl Scene {
        fn new() -> Scene {
            let now = Instant::from_ns(1_000_000_000);
            Scene {
                history: History::new(now),
                now,
                all: Counted {
                    row: ALL,
                    name: String::new(),
                    sum: Duration::ZERO,
                    max: Duration::ZERO,
                    histogram: Histogram::default(),
                },
            }
        }

        fn pass(&mut self, seconds: i64, durations_ns: &[i64]) {
            for ns in durations_ns {
                let duration = Duration::from_ns(*ns);
                let bucket = (0..u16::MAX).find(|bucket| Histogram::end_of(*bucket) > duration);
                let bucket = bucket.expect("a bucket");
                self.all.histogram.add_some(&[(bucket, 1)]);
                self.all.sum += duration;
                self.all.max = self.all.max.max(duration);
            }
            self.now = self.now + Duration::from_ms(seconds * 1000);
            self.history.look(self.now, vec![self.all.clone()]);
        }

        /// Of each window: how many, the worst, whether that is exact, how long it is in seconds.
        fn told(&self) -> Vec<(u64, i64, bool, i64)> {
            let window = |window: Window| {
                let length = (window.range.end - window.range.begin).as_ns() / 1_000_000_000;
                let row = window.rows.first();
                row.map_or((0, 0, true, length), |row| {
                    (row.count(), row.worst.as_ns(), row.worst_is_exact, length)
                })
            };
            self.history.windows().into_iter().map(window).collect()
        }
    }

    #[test]
    fn each_window_has_what_ended_in_it_and_nothing_older() {
        let mut scene = Scene::new();
        scene.pass(10, &[1000, 5]);
        for _ in 0..6 {
            scene.pass(10, &[7]);
        }
        // Within the last minute there is no new longest: its bucket is known.
        assert_eq!(Histogram::end_of(7).as_ns(), 8);
        let found = scene.told();
        assert_eq!(found[0], (6, 8, false, 60));
        assert_eq!(found[1], (8, 1000, true, 70));
        assert_eq!(found[2], (8, 1000, true, 70));
        assert!(!scene.history.windows()[0].is_all && scene.history.windows()[1].is_all);
        for _ in 0..24 {
            scene.pass(10, &[]);
        }
        let found = scene.told();
        assert_eq!((found[0], found[1].0), ((0, 0, true, 60), 6));
        assert_eq!(found[2], (8, 1000, true, 310));
    }

    #[test]
    fn a_new_longest_is_told_exactly_and_the_sums_are_those_of_the_window() {
        let mut scene = Scene::new();
        scene.pass(60, &[100]);
        scene.pass(60, &[1_000_003, 40]);
        let windows = scene.history.windows();
        let row = &windows[0].rows[0];
        assert_eq!((row.worst.as_ns(), row.worst_is_exact), (1_000_003, true));
        assert_eq!((row.sum.as_ns(), row.mean().as_ns()), (1_000_043, 500_021));
        assert_eq!(row.quantile(1.0).map(Duration::as_ns), Some(1_000_003));
        assert_eq!(windows[1].rows[0].count(), 3);
    }

    #[test]
    fn an_hour_is_kept_in_the_memory_of_a_quarter_and_ends_in_the_same_windows() {
        let mut scene = Scene::new();
        for second in 0..360 {
            scene.pass(10, &[100 + second]);
        }
        let slots = scene.history.slots.len();
        assert_eq!(slots, 90);
        let counts: Vec<u64> = scene.told().iter().map(|(count, ..)| *count).collect();
        assert_eq!(counts, [6, 30, 90]);
        assert!(scene.history.is_due(scene.now + LOOK_INTERVAL));
        assert!(!scene.history.is_due(scene.now));
    }

    #[test]
    fn rows_of_a_kind_come_before_those_of_its_keys_which_are_sorted_by_name() {
        let mut history = History::new(Instant::from_ns(0));
        let counted = |series, key, name: &str| {
            let mut histogram = Histogram::default();
            histogram.add_some(&[(3, 1)]);
            Counted {
                row: Row { series, key },
                name: name.to_owned(),
                sum: Duration::from_ns(3),
                max: Duration::from_ns(3),
                histogram,
            }
        };
        let rows = vec![
            counted(1, None, ""),
            counted(0, Some((9, 0)), "vda read"),
            counted(0, Some((1, 0)), "vda write"),
            counted(0, None, ""),
        ];
        history.look(Instant::from_ns(10), rows);
        let windows = history.windows();
        let told = windows[0]
            .rows
            .iter()
            .map(|row| (row.row.series, &*row.name));
        let told: Vec<_> = told.collect();
        assert_eq!(told, [(0, ""), (0, "vda read"), (0, "vda write"), (1, "")]);
    }
}
