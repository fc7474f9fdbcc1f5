//! How far one clock is ahead of another, from packets that crossed between them.
//!
//! A packet never arrives before it was sent. So each packet from A to B bounds from above how far
//! B's clock can be ahead of A's, and each one from B to A bounds it from below. Clocks of two
//! hosts drift apart evenly as long as nobody sets them: what is looked for are all straight lines
//! between the two sets of bounds. Only the corners of their convex hulls matter. The line in the
//! middle is taken, and the farthest that any other lies from it is the error, which is proven as
//! long as the clocks are even.

/// How far two clocks can drift apart in a nanosecond: twice what the kernel's slewing can do
/// (adjtimex(2): 500 ppm).
const DRIFT_MAX: f64 = 1e-3;
/// Halvings of an interval of slopes, and thirds: below what a double can tell.
const STEPS: u32 = 200;
/// Instants and bounds are whole nanoseconds.
const ROUNDING_NS: f64 = 1.0;

/// A bound of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// When it holds, on A's clock in nanoseconds.
    pub at_ns: i64,
    /// B's clock minus A's is at most, or at least, so many nanoseconds.
    pub offset_ns: i64,
}

/// B's clock minus A's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// Where the packets begin, on A's clock in nanoseconds.
    pub begin_ns: i64,
    /// Where they end.
    pub end_ns: i64,
    /// The offset at the begin, in nanoseconds.
    pub at_begin_ns: i64,
    /// The offset at the end, in nanoseconds.
    pub at_end_ns: i64,
    /// No offset between begin and end is further from this line, in nanoseconds.
    pub error_ns: i64,
}

impl ClockOffset {
    /// At an instant of A's clock.
    pub fn at(&self, at_ns: i64) -> i64 {
        let moved_ns = self.moved_ns() * self.share_at(at_ns);
        self.at_begin_ns.saturating_add(moved_ns.round() as i64)
    }

    /// How far B's clock moves away from A's in a second, in nanoseconds.
    pub fn drift_ns_per_s(&self) -> f64 {
        self.moved_ns() * 1e9 / self.length_ns()
    }

    fn moved_ns(&self) -> f64 {
        difference(self.at_end_ns, self.at_begin_ns)
    }

    fn length_ns(&self) -> f64 {
        difference(self.end_ns, self.begin_ns).max(1.0)
    }

    /// 0 at the begin, 1 at the end.
    fn share_at(&self, at_ns: i64) -> f64 {
        difference(at_ns, self.begin_ns) / self.length_ns()
    }
}

/// Of two instants or offsets that any trace may claim.
fn difference(a: i64, b: i64) -> f64 {
    a.saturating_sub(b) as f64
}

/// Why no offset can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOffset {
    /// Packets of one direction bound it from one side.
    OneDirection,
    /// No even clocks fit: one of them was set meanwhile.
    ClockSet,
}

impl std::fmt::Display for NoOffset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoOffset::OneDirection => "packets of one direction alone bound it from one side",
            NoOffset::ClockSet => "no steady clocks fit these packets: one was set meanwhile",
        })
    }
}

/// The offset that lies below all of `upper` and above all of `lower`.
///
/// # Errors
/// There are bounds from one side only, or no straight line lies between them.
pub(super) fn between(upper: Vec<Bound>, lower: Vec<Bound>) -> Result<ClockOffset, NoOffset> {
    let all = || upper.iter().chain(&lower);
    let (Some(begin_ns), Some(end_ns)) = (
        all().map(|bound| bound.at_ns).min(),
        all().map(|bound| bound.at_ns).max(),
    ) else {
        return Err(NoOffset::OneDirection);
    };
    let Some(base_ns) = upper.first().filter(|_| !lower.is_empty()) else {
        return Err(NoOffset::OneDirection);
    };
    let base_ns = base_ns.offset_ns;
    // Small numbers, so that doubles are exact enough.
    let near = |bound: Bound, sign: f64| Point {
        x: difference(bound.at_ns, begin_ns),
        y: sign * difference(bound.offset_ns, base_ns),
    };
    let channel = Channel {
        ceiling: lower_hull(upper, |bound| near(bound, 1.0)),
        floor: lower_hull(lower, |bound| near(bound, -1.0)),
    };
    let slopes = channel.slopes().ok_or(NoOffset::ClockSet)?;
    let width = difference(end_ns, begin_ns);
    let [at_begin, at_end] = [0.0, width].map(|x| channel.range_at(x, slopes));
    let middle_ns =
        |(low, high): (f64, f64)| base_ns.saturating_add(f64::midpoint(low, high).round() as i64);
    let half = |(low, high): (f64, f64)| (high - low) / 2.0;
    // The highest line at an instant is convex in it, the lowest concave: between begin and end
    // both are nearer to the middle than the farther of the two ends.
    let error = half(at_begin).max(half(at_end)) + ROUNDING_NS;
    Ok(ClockOffset {
        begin_ns,
        end_ns,
        at_begin_ns: middle_ns(at_begin),
        at_end_ns: middle_ns(at_end),
        error_ns: error.ceil() as i64,
    })
}

#[derive(Clone, Copy, Debug)]
struct Point {
    x: f64,
    y: f64,
}

/// The corners that lines from below touch, from left to right.
fn lower_hull(bounds: Vec<Bound>, place: impl Fn(Bound) -> Point) -> Vec<Point> {
    let mut points: Vec<Point> = bounds.into_iter().map(place).collect();
    points.sort_unstable_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..]
            && (b.x - a.x) * (point.y - a.y) <= (b.y - a.y) * (point.x - a.x)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Where lines can lie: below the ceiling and above the floor.
struct Channel {
    ceiling: Vec<Point>,
    /// Upside down.
    floor: Vec<Point>,
}

impl Channel {
    /// How high the line of this slope through `x` = 0 can lie, at most.
    fn highest(&self, slope: f64) -> f64 {
        let heights = self.ceiling.iter().map(|point| point.y - slope * point.x);
        heights.fold(f64::INFINITY, f64::min)
    }

    /// And at least.
    fn lowest(&self, slope: f64) -> f64 {
        let depths = self.floor.iter().map(|point| point.y + slope * point.x);
        -depths.fold(f64::INFINITY, f64::min)
    }

    fn has_room(&self, slope: f64) -> bool {
        self.highest(slope) - self.lowest(slope) >= -ROUNDING_NS
    }

    /// The slopes of the lines that fit, which are an interval; none when there is no such line.
    fn slopes(&self) -> Option<(f64, f64)> {
        let roomiest = peak((-DRIFT_MAX, DRIFT_MAX), |slope| {
            self.highest(slope) - self.lowest(slope)
        });
        self.has_room(roomiest).then(|| {
            let least = self.last_with_room(roomiest, -DRIFT_MAX);
            (least, self.last_with_room(roomiest, DRIFT_MAX))
        })
    }

    /// From a slope that fits towards one that may not.
    fn last_with_room(&self, from: f64, to: f64) -> f64 {
        if self.has_room(to) {
            return to;
        }
        let (mut fits, mut too_far) = (from, to);
        for _ in 0..STEPS {
            let middle = f64::midpoint(fits, too_far);
            match self.has_room(middle) {
                true => fits = middle,
                false => too_far = middle,
            }
        }
        fits
    }

    /// From the lowest to the highest that a line of these slopes can be at `x`.
    fn range_at(&self, x: f64, slopes: (f64, f64)) -> (f64, f64) {
        let high = |slope: f64| self.highest(slope) + slope * x;
        let depth = |slope: f64| -(self.lowest(slope) + slope * x);
        (-depth(peak(slopes, depth)), high(peak(slopes, high)))
    }
}

/// Where a concave function is greatest.
fn peak((mut from, mut to): (f64, f64), height: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let third = (to - from) / 3.0;
        match height(from + third) < height(to - third) {
            true => from += third,
            false => to -= third,
        }
    }
    f64::midpoint(from, to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bound(at_ns: i64, offset_ns: i64) -> Bound {
        Bound { at_ns, offset_ns }
    }

    #[test]
    fn one_packet_each_way_bounds_the_offset_by_its_round_trip() {
        let found = between(vec![bound(1_000, 700)], vec![bound(1_000, 100)]).expect("bounded");
        assert_eq!((found.at(1_000), found.error_ns), (400, 301));
    }

    #[test]
    fn packets_of_one_direction_and_clocks_that_were_set_are_refused() {
        let one = between(vec![bound(0, 5)], vec![]);
        assert_eq!(one, Err(NoOffset::OneDirection));
        assert_eq!(between(vec![], vec![]), Err(NoOffset::OneDirection));
        let (second, step) = (1_000_000_000, 50_000_000);
        let upper = vec![bound(0, 100), bound(second, 100 + step)];
        let lower = vec![bound(0, 0), bound(second, step)];
        assert_eq!(between(upper, lower), Err(NoOffset::ClockSet));
    }

    proptest! {
        #[test]
        fn whatever_a_trace_claims_nothing_overflows(
            upper in prop::collection::vec(any::<(i64, i64)>(), 0..20),
            lower in prop::collection::vec(any::<(i64, i64)>(), 0..20),
        ) {
            let bounds = |all: Vec<(i64, i64)>| {
                all.into_iter().map(|(at_ns, offset_ns)| bound(at_ns, offset_ns)).collect()
            };
            if let Ok(found) = between(bounds(upper), bounds(lower)) {
                found.at(i64::MIN);
                prop_assert!(found.error_ns >= 0 && found.drift_ns_per_s().is_finite());
            }
        }

        #[test]
        fn the_true_offset_is_never_further_away_than_the_stated_error(
            offset_ns in -1_000_000_000_000i64..1_000_000_000_000,
            drift_ppm in -300i64..300,
            packets in prop::collection::vec(
                (0i64..60_000_000_000, 1_000i64..3_000_000, any::<bool>()), 2..200
            ),
        ) {
            let truth_ns = |at_ns: i64| offset_ns + at_ns * drift_ppm / 1_000_000;
            let (mut upper, mut lower) = (Vec::new(), Vec::new());
            for (at_ns, delay_ns, there) in packets {
                match there {
                    true => upper.push(bound(at_ns, truth_ns(at_ns) + delay_ns)),
                    false => lower.push(bound(at_ns, truth_ns(at_ns) - delay_ns)),
                }
            }
            prop_assume!(!upper.is_empty() && !lower.is_empty());
            let found = between(upper, lower).expect("even clocks fit");
            let width_ns = found.end_ns - found.begin_ns;
            for part in 0..=10 {
                let at_ns = found.begin_ns + width_ns * part / 10;
                let off_ns = (found.at(at_ns) - truth_ns(at_ns)).abs();
                prop_assert!(off_ns <= found.error_ns + 2, "{off_ns} of {found:?}");
            }
        }
    }
}
