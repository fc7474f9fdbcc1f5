//! Numbers over time, each of which holds until the next one: any range is cheap.

/// Numbers that one of the level above stands for.
const FAN: usize = 64;
/// Nobody knows the number from here on.
const UNKNOWN: i64 = i64::MIN;

/// The least and the greatest of some numbers; the least is above where there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    least: i64,
    most: i64,
}

impl Extent {
    const NONE: Extent = Extent {
        least: i64::MAX,
        most: i64::MIN,
    };

    fn of(value: i64) -> Extent {
        match value {
            UNKNOWN => Extent::NONE,
            _ => Extent {
                least: value,
                most: value,
            },
        }
    }

    fn and(self, other: Extent) -> Extent {
        Extent {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

/// What the numbers of a stretch of time were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The least and the greatest that held in it; none where nobody knows.
    pub extent: Option<(i64, i64)>,
    /// The one that held at its end.
    pub last: Option<i64>,
    /// How many came in it.
    pub count: usize,
}

/// Numbers over time. A number holds from its instant until the next one's; before the first nobody
/// knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// In order.
    times_ns: Vec<i64>,
    values: Vec<i64>,
    /// Of the numbers, of these, and so on, up to at most [`FAN`].
    levels: Vec<Vec<Extent>>,
}

impl Series {
    /// A number that holds from `at_ns` on; time that goes backwards is taken to stand still.
    pub fn push(&mut self, at_ns: i64, value: i64) {
        let last_ns = self.times_ns.last().copied().unwrap_or(i64::MIN);
        self.times_ns.push(at_ns.max(last_ns));
        self.values.push(value.max(UNKNOWN + 1));
    }

    /// How many numbers there are, those that nobody knows among them.
    pub fn len(&self) -> usize {
        self.times_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times_ns.is_empty()
    }

    /// Makes it ready for questions. From each of `lost_ns` on nobody knows the number, until the
    /// next one.
    pub fn finish(&mut self, lost_ns: impl IntoIterator<Item = i64>) {
        let mut lost_ns: Vec<i64> = lost_ns.into_iter().collect();
        if !lost_ns.is_empty() && !self.is_empty() {
            lost_ns.sort_unstable();
            self.forget(&lost_ns);
        }
        self.levels.clear();
        let plain: Vec<Extent> = self.values.iter().map(|one| Extent::of(*one)).collect();
        let mut below = plain;
        while below.len() > FAN {
            let all = |some: &[Extent]| some.iter().copied().fold(Extent::NONE, Extent::and);
            below = below.chunks(FAN).map(all).collect();
            self.levels.push(below.clone());
        }
    }

    /// Puts what nobody knows where it belongs.
    fn forget(&mut self, lost_ns: &[i64]) {
        let before = std::mem::take(self);
        let mut lost = lost_ns.iter().copied().peekable();
        let numbers = before.times_ns.into_iter().zip(before.values);
        for (at_ns, value) in numbers {
            while let Some(lost_ns) = lost.next_if(|lost_ns| *lost_ns < at_ns) {
                self.unknown_from(lost_ns);
            }
            self.times_ns.push(at_ns);
            self.values.push(value);
        }
        lost.for_each(|lost_ns| self.unknown_from(lost_ns));
    }

    fn unknown_from(&mut self, at_ns: i64) {
        if self.values.last().is_some_and(|value| *value != UNKNOWN) {
            self.times_ns.push(at_ns);
            self.values.push(UNKNOWN);
        }
    }

    /// How many numbers came before an instant.
    fn before(&self, at_ns: i64) -> usize {
        self.times_ns.partition_point(|time_ns| *time_ns < at_ns)
    }

    /// The number that holds at an instant, where that is known.
    pub fn at(&self, at_ns: i64) -> Option<i64> {
        let begun = self.times_ns.partition_point(|time_ns| *time_ns <= at_ns);
        let value = *self.values.get(begun.checked_sub(1)?)?;
        (value != UNKNOWN).then_some(value)
    }

    /// The numbers of a range, in order, from the one that holds at its begin on; none for one that
    /// nobody knows.
    pub fn numbers(
        &self,
        (begin_ns, end_ns): (i64, i64),
    ) -> impl Iterator<Item = (i64, Option<i64>)> + '_ {
        let begun = self
            .times_ns
            .partition_point(|time_ns| *time_ns <= begin_ns);
        let places = begun.saturating_sub(1)..self.before(end_ns);
        places.map(|place| {
            let value = self.values[place];
            (self.times_ns[place], (value != UNKNOWN).then_some(value))
        })
    }

    /// How many numbers of a range there are, or one less.
    pub fn count(&self, (begin_ns, end_ns): (i64, i64)) -> usize {
        self.before(end_ns).saturating_sub(self.before(begin_ns))
    }

    /// What the numbers of each stretch between two neighbouring `edges_ns` were.
    pub fn columns<'a>(&'a self, edges_ns: &'a [i64]) -> impl Iterator<Item = Numbers> + 'a {
        let mut first = edges_ns
            .first()
            .map_or(0, |begin_ns| self.before(*begin_ns));
        edges_ns.windows(2).map(move |edges| {
            let last = first + near(&self.times_ns[first..], edges[1]);
            // What holds at its begin came before, but where a number comes right there.
            let held = match self.times_ns.get(first) {
                Some(time_ns) if *time_ns == edges[0] && first < last => first,
                _ => first.saturating_sub(1),
            };
            let extent = self.extent(held, last);
            let numbers = Numbers {
                extent: (extent.least <= extent.most).then_some((extent.least, extent.most)),
                last: last.checked_sub(1).and_then(|place| {
                    let value = self.values[place];
                    (value != UNKNOWN).then_some(value)
                }),
                count: last - first,
            };
            first = last;
            numbers
        })
    }

    /// The extent of the numbers at some places, those of whole blocks by one look.
    fn extent(&self, mut first: usize, mut last: usize) -> Extent {
        let mut found = Extent::NONE;
        let mut level = 0;
        let look = |level: usize, place: usize| match level {
            0 => Extent::of(self.values[place]),
            _ => self.levels[level - 1][place],
        };
        while first < last {
            let is_top = level == self.levels.len();
            while first < last && (is_top || !first.is_multiple_of(FAN)) {
                found = found.and(look(level, first));
                first += 1;
            }
            while first < last && !last.is_multiple_of(FAN) {
                last -= 1;
                found = found.and(look(level, last));
            }
            (first, last, level) = (first / FAN, last / FAN, level + 1);
        }
        found
    }

    /// Its instants and its numbers.
    pub(crate) fn parts(&self) -> (&[i64], &[i64]) {
        (&self.times_ns, &self.values)
    }

    /// A series of these parts, as [`Series::parts`] gives them; none when they are no series.
    pub(crate) fn of_parts(times_ns: Vec<i64>, values: Vec<i64>) -> Option<Series> {
        if times_ns.len() != values.len() || !times_ns.is_sorted() {
            return None;
        }
        let mut series = Series {
            times_ns,
            values,
            levels: Vec::new(),
        };
        series.finish([]);
        Some(series)
    }
}

/// How many of some times lie before an instant that is not far from the first of them.
fn near(times_ns: &[i64], at_ns: i64) -> usize {
    let mut step = 1;
    while times_ns.get(step).is_some_and(|time_ns| *time_ns < at_ns) {
        step *= 2;
    }
    let near = &times_ns[..step.min(times_ns.len())];
    near.partition_point(|time_ns| *time_ns < at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(numbers: &[(i64, i64)], lost_ns: &[i64]) -> Series {
        let mut series = Series::default();
        numbers
            .iter()
            .for_each(|(at_ns, value)| series.push(*at_ns, *value));
        series.finish(lost_ns.iter().copied());
        series
    }

    /// By looking at each number.
    fn plain(series: &Series, begin_ns: i64, end_ns: i64) -> Numbers {
        let held = series.at(begin_ns.saturating_sub(1));
        let inside: Vec<_> = series
            .numbers((i64::MIN, end_ns))
            .filter(|(at_ns, _)| *at_ns >= begin_ns)
            .collect();
        let at_begin = inside.first().is_some_and(|(at_ns, _)| *at_ns == begin_ns);
        let before = held.filter(|_| !at_begin);
        let known = inside.iter().filter_map(|(_, value)| *value).chain(before);
        let all: Vec<i64> = known.collect();
        let least = all.iter().min().copied();
        Numbers {
            extent: least.zip(all.iter().max().copied()),
            last: inside.last().map_or(held, |(_, value)| *value),
            count: inside.len(),
        }
    }

    #[test]
    fn columns_say_what_a_look_at_each_number_says() {
        let mut mixed = 7u64;
        let mut next = |below: u64| {
            mixed = mixed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((mixed >> 33) % below) as i64
        };
        for count in [0, 1, 2, 63, 64, 65, 4_095, 4_097, 9_000] {
            let mut at_ns = 0;
            let numbers: Vec<(i64, i64)> = (0..count)
                .map(|_| {
                    at_ns += next(4);
                    (at_ns, next(1_000_000) - 500_000)
                })
                .collect();
            let lost_ns = [at_ns / 3, at_ns / 2 + 1, at_ns + 5];
            for lost_ns in [&[][..], &lost_ns] {
                let series = series(&numbers, lost_ns);
                for columns in [1, 3, 100] {
                    let begin_ns = -10 + next(at_ns as u64 + 1);
                    let end_ns = begin_ns + 1 + next(at_ns as u64 * 2 + 20);
                    let edge = |column: i64| begin_ns + (end_ns - begin_ns) * column / columns;
                    let edges: Vec<i64> = (0..=columns).map(edge).collect();
                    for (place, numbers) in series.columns(&edges).enumerate() {
                        let expect = plain(&series, edges[place], edges[place + 1]);
                        assert_eq!(numbers, expect, "{count} {columns} {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_number_holds_until_the_next_one_or_until_events_are_lost() {
        let series = series(&[(10, 5), (20, 7), (30, 9)], &[15, 16, 40, 3]);
        let check =
            |at_ns: i64, expect: Option<i64>| assert_eq!(series.at(at_ns), expect, "{at_ns}");
        check(9, None);
        check(10, Some(5));
        check(14, Some(5));
        check(15, None);
        check(20, Some(7));
        check(39, Some(9));
        check(40, None);
        assert_eq!(series.len(), 5);
    }
}
