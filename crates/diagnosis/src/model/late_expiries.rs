//! Timers of a recording whose interrupt came late: meanwhile their CPU took none, and what had it
//! is not known to have been free to go on or not. A watch says more of them, with a stack.

use event::Cpu;

use super::Model;
use super::build::Builder;
use super::handlers::LATENESS_MAX_NS;

/// A timer's interrupt that comes later than this after its expiry was held up.
pub(super) const LATE_NS_MIN: i64 = 300_000;
/// Of a stretch, this part and more without interrupts makes it one.
const SHARE_MIN: i64 = 2;

/// A timer that was due, and when its CPU served it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateExpiry {
    pub cpu: u32,
    pub due_ns: i64,
    pub served_ns: i64,
}

impl Builder {
    /// A hard interrupt serves a timer that was due.
    pub(super) fn serves_timer(&mut self, cpu: u32, due_ns: i64, served_ns: i64) {
        if served_ns.saturating_sub(due_ns) >= LATE_NS_MIN {
            self.late_expiries.push(LateExpiry {
                cpu,
                due_ns,
                served_ns,
            });
        }
    }
}

impl Model {
    /// Those that were overdue in a part of a span, on any CPU.
    pub(super) fn late_in(&self, (begin_ns, end_ns): (i64, i64)) -> Vec<LateExpiry> {
        let all = &self.late_expiries;
        let first = all.partition_point(|late| late.served_ns <= begin_ns);
        let last_ns = end_ns.saturating_add(LATENESS_MAX_NS);
        let near = all[first..]
            .iter()
            .take_while(|late| late.served_ns <= last_ns);
        near.filter(|late| late.due_ns < end_ns).copied().collect()
    }

    /// Whether a CPU took no interrupt in the half of a stretch or more, as far as its timers tell.
    pub fn took_no_interrupt(&self, cpu: Cpu, (begin_ns, end_ns): (i64, i64)) -> bool {
        let own = self.late_expiries.iter().filter(|late| late.cpu == cpu.0);
        let common_ns = |late: &LateExpiry| {
            late.served_ns
                .min(end_ns)
                .saturating_sub(late.due_ns.max(begin_ns))
        };
        let longest_ns = own.map(common_ns).max().unwrap_or(0);
        longest_ns > 0 && longest_ns.saturating_mul(SHARE_MIN) >= end_ns - begin_ns
    }
}
