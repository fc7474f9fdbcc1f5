//! What no question can reach any more is dropped while the pass goes on, so that memory grows with
//! the activations that are kept and with what is under way, not with the trace.

use super::build::Builder;
use super::chain::{AGE_MAX_NS, NodeId};
use super::tasks::Run;

/// Fewer records than this are not worth looking through.
pub(super) const RECORDS_MIN: usize = 2 << 20;
/// Kept of the newest time whatever it is: a handler that is reported at its end began there.
const NEWEST_NS: i64 = 1_000_000_000;
/// Kept around an activation: who had the CPU before it, and stamps that are a little apart.
const AROUND_NS: i64 = 1_000_000;

/// Stretches of time of which everything is kept: sorted, apart from each other.
#[derive(Debug)]
pub(super) struct Kept(Vec<(i64, i64)>);

impl Kept {
    fn new(mut stretches: Vec<(i64, i64)>) -> Kept {
        stretches.sort_unstable();
        let mut apart: Vec<(i64, i64)> = Vec::new();
        for (begin_ns, end_ns) in stretches {
            match apart.last_mut().filter(|last| begin_ns <= last.1) {
                Some(last) => last.1 = last.1.max(end_ns),
                None => apart.push((begin_ns, end_ns)),
            }
        }
        Kept(apart)
    }

    /// Whether something that lasts from `begin_ns` to `end_ns` touches what is kept.
    pub fn touches(&self, begin_ns: i64, end_ns: i64) -> bool {
        let after = self.0.partition_point(|kept| kept.1 < begin_ns);
        self.0.get(after).is_some_and(|kept| kept.0 <= end_ns)
    }
}

impl Builder {
    /// Looks through what was kept when it has doubled since the last time.
    pub(super) fn forget_the_unreachable(&mut self, now_ns: i64) {
        if self.arena.len() + self.logged < self.records_max {
            return;
        }
        let kept = self.kept(now_ns);
        for state in &mut self.cpus {
            state.timeline.retain(&kept);
        }
        self.logged = 0;
        for state in &mut self.tasks.states {
            // The last moment says where the task is.
            let last = state.log.len().saturating_sub(1);
            let mut place = 0;
            state.log.retain(|moment| {
                place += 1;
                place > last || kept.touches(moment.time_ns, moment.time_ns)
            });
            state.log.shrink_to(2 * state.log.len());
            self.logged += state.log.len();
        }
        self.page_faults
            .retain(|fault| kept.touches(fault.time_ns, fault.time_ns));
        self.system_calls
            .retain(|(time_ns, _)| kept.touches(*time_ns, *time_ns));
        self.logged += self.system_calls.len();
        self.boosts
            .retain(|boost| kept.touches(boost.begin_ns, boost.end_ns));
        self.requests
            .done
            .retain(|(since_ns, until_ns)| kept.touches(*since_ns, *until_ns));
        self.late_expiries
            .retain(|late| kept.touches(late.due_ns, late.served_ns));
        self.forget_chains();
        let left = self.arena.len() + self.logged;
        self.records_max = self.records_min.max(2 * left);
    }

    /// The time of activations that are kept, and of those that may yet end or be handed on.
    fn kept(&self, now_ns: i64) -> Kept {
        let mut stretches = vec![(now_ns - NEWEST_NS, i64::MAX)];
        let activations = self.candidates.kept();
        stretches.extend(activations.map(|late| {
            let begin_ns = late.end_ns.saturating_sub(late.latency_ns);
            (begin_ns - AROUND_NS, late.end_ns.saturating_add(AROUND_NS))
        }));
        let mut oldest_ns = now_ns;
        let mut reach = |node: NodeId, age_ns_max: i64| {
            let origin_ns = self.arena.get(node).map(|node| node.origin_ns);
            if let Some(origin_ns) = origin_ns.filter(|ns| now_ns - ns <= age_ns_max) {
                oldest_ns = oldest_ns.min(origin_ns);
            }
        };
        for state in &self.tasks.states {
            match state.run {
                // However long it waits.
                Run::Woken => reach(state.chain, i64::MAX),
                // Its end is judged, however late it comes.
                _ if self.is_judged_to_its_end(state) => reach(state.chain, i64::MAX),
                _ if self.hands_on(state.chain) => reach(state.chain, AGE_MAX_NS),
                _ => {}
            }
            reach(state.pending, AGE_MAX_NS);
            let frames = state.softirqs.iter();
            frames.for_each(|frame| reach(frame.current, AGE_MAX_NS));
        }
        for state in &self.cpus {
            let frames = state.frames.iter();
            frames.for_each(|frame| reach(frame.current, AGE_MAX_NS));
            state
                .raised
                .iter()
                .for_each(|node| reach(*node, AGE_MAX_NS));
            if let Some(left) = &state.left_handler {
                reach(left.chain, AGE_MAX_NS);
            }
        }
        stretches.push((oldest_ns - AROUND_NS, i64::MAX));
        Kept::new(stretches)
    }

    /// Drops the steps that lead to nothing, and numbers the others anew.
    fn forget_chains(&mut self) {
        let mut sweep = self.arena.sweep();
        self.each_chain(|node| sweep.keep(*node));
        let numbers = sweep.finish(&mut self.arena);
        self.each_chain(|node| *node = numbers.of(*node));
    }

    /// All places that hold a chain.
    fn each_chain(&mut self, mut each: impl FnMut(&mut NodeId)) {
        for state in &mut self.tasks.states {
            each(&mut state.chain);
            each(&mut state.pending);
            for frame in &mut state.softirqs {
                each(&mut frame.base);
                each(&mut frame.current);
            }
        }
        for state in &mut self.cpus {
            for frame in &mut state.frames {
                each(&mut frame.base);
                each(&mut frame.current);
            }
            state.raised.iter_mut().for_each(&mut each);
            if let Some(left) = &mut state.left_handler {
                each(&mut left.chain);
            }
        }
        for late in self.candidates.kept_mut() {
            each(&mut late.node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_a_stretch_that_is_kept_is_kept() {
        let kept = Kept::new(vec![(50, 60), (10, 20), (15, 30)]);
        let check = |begin_ns, end_ns, expect| {
            assert_eq!(
                kept.touches(begin_ns, end_ns),
                expect,
                "{begin_ns} {end_ns}"
            );
        };
        check(0, 9, false);
        check(0, 10, true);
        check(25, 26, true);
        check(31, 49, false);
        check(31, 50, true);
        check(0, 100, true);
        check(61, 70, false);
    }
}
