//! What was told of a track later than something behind it, and how it comes into its place.

use crate::state::{Kind, Segment};

/// What was told late.
#[derive(Clone, Debug, Default)]
pub(crate) struct Late {
    /// Stretches.
    pub late: Vec<Segment>,
    /// What work turned out to have been since it was told.
    pub turned_out: Vec<Segment>,
}

impl Late {
    pub fn is_empty(&self) -> bool {
        self.late.is_empty() && self.turned_out.is_empty()
    }

    pub fn extend(&mut self, other: Late) {
        self.late.extend(other.late);
        self.turned_out.extend(other.turned_out);
    }

    /// That for which `is_here` holds, and the rest.
    pub fn parted(self, is_here: impl Fn(&Segment) -> bool) -> (Late, Late) {
        let (late, rest) = self.late.into_iter().partition(&is_here);
        let (turned_out, others) = self.turned_out.into_iter().partition(is_here);
        let here = Late { late, turned_out };
        let rest = Late {
            late: rest,
            turned_out: others,
        };
        (here, rest)
    }

    /// Gives what is `known`, stretches in their order, with this in its place. Where two say
    /// something of one instant, the first to begin is believed; what it knew nothing of, the
    /// other fills.
    pub fn put_in_order(
        mut self,
        known: impl Iterator<Item = Segment>,
        mut put: impl FnMut(Segment),
    ) {
        self.late
            .sort_by_key(|segment| (segment.begin_ns, segment.end_ns));
        self.turned_out.sort_by_key(|segment| segment.begin_ns);
        let mut turned_out = &self.turned_out[..];
        let (mut known, mut late) = (known.peekable(), self.late.into_iter().peekable());
        let mut until_ns = i64::MIN;
        loop {
            let order = |segment: &Segment| (segment.begin_ns, segment.end_ns);
            let is_late = match (known.peek(), late.peek()) {
                (Some(known), Some(late)) => order(late) < order(known),
                (known, _) => known.is_none(),
            };
            let next = if is_late { late.next() } else { known.next() };
            let Some(mut segment) = next else { break };
            segment.begin_ns = segment.begin_ns.max(until_ns);
            if segment.begin_ns < segment.end_ns {
                until_ns = segment.end_ns;
                put_right(segment, &mut turned_out, &mut put);
            }
        }
    }
}

/// Gives a stretch with what it turned out to have been: of `turned_out`, which is in order.
fn put_right(segment: Segment, turned_out: &mut &[Segment], put: &mut impl FnMut(Segment)) {
    let mut put = |segment: Segment| {
        if segment.begin_ns < segment.end_ns {
            put(segment);
        }
    };
    let is_before = |other: &&Segment| other.end_ns <= segment.begin_ns;
    let before = turned_out.iter().take_while(is_before).count();
    *turned_out = &turned_out[before..];
    let is_work = matches!(segment.state.kind(), Kind::Run | Kind::Call);
    let inside = turned_out.iter().filter(|_| is_work);
    let mut from_ns = segment.begin_ns;
    for other in inside.take_while(|other| other.begin_ns < segment.end_ns) {
        let begin_ns = other.begin_ns.max(from_ns);
        let end_ns = other.end_ns.min(segment.end_ns);
        put(Segment {
            begin_ns: from_ns,
            end_ns: begin_ns,
            ..segment
        });
        put(Segment {
            begin_ns,
            end_ns,
            ..*other
        });
        from_ns = from_ns.max(end_ns);
    }
    put(Segment {
        begin_ns: from_ns,
        ..segment
    });
}
