//! A picture of time of fixed size, for a window whose end is not known while it is filled.

/// What a bin adds up.
pub(super) trait Merge: Default {
    /// Takes in what the next bin has.
    fn merge(&mut self, next: Self);
}

/// Bins of equal width from a begin on. When time goes beyond the last, all are merged in pairs.
#[derive(Debug)]
pub(super) struct TimeBins<T> {
    begin_ns: i64,
    width_ns: i64,
    bins: Vec<T>,
}

/// As many as a wide picture has columns, and twice as many before they are merged.
const BINS_MAX: usize = 1024;
/// The width of the first bins.
const FIRST_WIDTH_NS: i64 = 1_000;

impl<T: Merge> TimeBins<T> {
    pub fn new(begin_ns: i64) -> TimeBins<T> {
        TimeBins {
            begin_ns,
            width_ns: FIRST_WIDTH_NS,
            bins: Vec::new(),
        }
    }

    /// The bin of an instant; what lies before the begin belongs to the first.
    pub fn at(&mut self, time_ns: i64) -> &mut T {
        let place = self.place(time_ns);
        if self.bins.len() <= place {
            self.bins.resize_with(place + 1, T::default);
        }
        &mut self.bins[place]
    }

    /// Calls `each` with every bin that a stretch of time touches, and how much of it lies there.
    pub fn spread(&mut self, from_ns: i64, to_ns: i64, mut each: impl FnMut(&mut T, i64)) {
        let mut now_ns = from_ns.max(self.begin_ns);
        if to_ns <= now_ns {
            return;
        }
        // Merging is over before the first bin is touched.
        self.at(to_ns - 1);
        while now_ns < to_ns {
            let place = self.place(now_ns);
            let end_ns = self.edge_ns(place + 1).min(to_ns);
            each(&mut self.bins[place], end_ns - now_ns);
            now_ns = end_ns;
        }
    }

    /// Each bin with its begin and its end, which is at most `end_ns`.
    pub fn iter(&self, end_ns: i64) -> impl Iterator<Item = (i64, i64, &T)> {
        let bounds = move |(place, bin)| {
            let end_ns = self.edge_ns(place + 1).min(end_ns);
            (self.edge_ns(place), end_ns, bin)
        };
        self.bins.iter().enumerate().map(bounds)
    }

    fn edge_ns(&self, place: usize) -> i64 {
        let offset_ns = self.width_ns.saturating_mul(place as i64);
        self.begin_ns.saturating_add(offset_ns)
    }

    fn place(&mut self, time_ns: i64) -> usize {
        let offset_ns = time_ns.saturating_sub(self.begin_ns).max(0);
        while offset_ns / self.width_ns >= BINS_MAX as i64 {
            self.halve();
        }
        (offset_ns / self.width_ns) as usize
    }

    fn halve(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let mut bins = std::mem::take(&mut self.bins).into_iter();
        while let Some(mut bin) = bins.next() {
            if let Some(next) = bins.next() {
                bin.merge(next);
            }
            self.bins.push(bin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Sum(i64);

    impl Merge for Sum {
        fn merge(&mut self, next: Sum) {
            self.0 += next.0;
        }
    }

    #[test]
    fn bins_stay_few_and_lose_nothing_however_long_the_window() {
        let check = |spans: &[(i64, i64)]| {
            let mut bins = TimeBins::<Sum>::new(100);
            for (from_ns, to_ns) in spans {
                bins.spread(*from_ns, *to_ns, |bin, ns| bin.0 += ns);
            }
            let end_ns = spans.iter().map(|(_, to_ns)| *to_ns).max().unwrap_or(100);
            let clipped = spans
                .iter()
                .map(|(from, to)| (to - (*from).max(100)).max(0));
            assert!(bins.iter(end_ns).count() <= BINS_MAX);
            let sum: i64 = bins.iter(end_ns).map(|(_, _, bin)| bin.0).sum();
            assert_eq!(sum, clipped.sum::<i64>());
            for (begin_ns, end_ns, bin) in bins.iter(end_ns) {
                assert!(bin.0 <= end_ns - begin_ns, "{begin_ns} {bin:?}");
            }
        };
        check(&[]);
        check(&[(0, 50)]);
        check(&[(0, 150), (150, 3_000)]);
        check(&[(100, 200), (5_000_000_000, 70_000_000_000)]);
        check(&[(200, i64::MAX / 4)]);
    }
}
