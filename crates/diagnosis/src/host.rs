//! Whether what looks like a section with interrupts off was one: what other CPUs, and locks, say
//! of the same time.

use event::evidence::{LateTimer, Mode};
use event::{Cpu, Duration};

use crate::model::{Model, Span};
use crate::naming::STEAL_SHARE_MIN;
use crate::stacks::is_at_border;
use crate::term::Reason;

/// Why the code that late timer `place` interrupted is not to blame; none when nothing speaks
/// against it. What speaks against it has to cover half of the lateness.
pub(crate) fn instead_of_section(model: &Model, place: usize) -> Option<Reason> {
    let late = model.evidence.late_timers.get(place)?;
    let half = Duration::from_ns(late.lateness.as_ns() / 2);
    let others = model.evidence.late_timers.iter();
    let mut others = others.filter(|other| other.cpu != late.cpu && both(late, other) >= half);
    let at_once = |other: &&LateTimer| says_of_host(model, other);
    if let Some(reason) = others.find_map(|other| at_once(&other)) {
        return Some(reason);
    }
    let (begin_ns, end_ns) = (late.expiry.as_ns(), late.time.as_ns());
    let waits = &model.timeline(late.cpu)?.contended;
    let spun = waits.iter().any(|lock| {
        let part_ns = lock
            .end_ns
            .min(end_ns)
            .saturating_sub(lock.begin_ns.max(begin_ns));
        part_ns >= half.as_ns()
    });
    spun.then_some(Reason::LockOwnerUnknown)
}

/// When in a span the host did not let a CPU run, and how that shows: a timer of it was late while
/// another CPU's says so.
pub(crate) fn took(model: &Model, cpu: Option<Cpu>, span: Span) -> Vec<(Span, Reason)> {
    let timers = model.evidence.late_timers.iter().enumerate();
    let here = timers.filter(|(_, late)| {
        let (expiry_ns, time_ns) = (late.expiry.as_ns(), late.time.as_ns());
        Some(late.cpu) == cpu && expiry_ns < span.1 && span.0 < time_ns
    });
    let taken = here.filter_map(|(place, late)| {
        let reason = instead_of_section(model, place)?;
        let is_host = matches!(reason, Reason::MachineStoodStill | Reason::MaybeStolen);
        is_host.then_some(((late.expiry.as_ns(), late.time.as_ns()), reason))
    });
    taken.collect()
}

/// For how long, in one piece, nothing happened on a CPU in a span while another one's late timer
/// says that the host did not let it run.
pub(crate) fn stood_still(model: &Model, cpu: Cpu, span: Span) -> Duration {
    let others = model.evidence.late_timers.iter();
    let others = others.filter(|other| other.cpu != cpu && says_of_host(model, other).is_some());
    let mut longest_ns = 0;
    for other in others {
        let begin_ns = other.expiry.as_ns().max(span.0);
        let end_ns = other.time.as_ns().min(span.1);
        if let Some(timeline) = model.timeline(cpu).filter(|_| begin_ns < end_ns) {
            timeline.slices(begin_ns, end_ns, |slice| {
                longest_ns = longest_ns.max(slice.end_ns - slice.begin_ns);
            });
        }
    }
    Duration::from_ns(longest_ns)
}

/// For how long two timers were late at the same time.
fn both(late: &LateTimer, other: &LateTimer) -> Duration {
    late.time.min(other.time) - late.expiry.max(other.expiry)
}

/// What another CPU's late timer says of the host.
fn says_of_host(model: &Model, other: &LateTimer) -> Option<Reason> {
    let stolen = other.steal.share_of(other.lateness) >= STEAL_SHARE_MIN;
    let was_free = match other.mode {
        Mode::User | Mode::Enabled => true,
        Mode::Idle => other.lateness > model.idle_exit_max(),
        Mode::Kernel => is_at_border(&other.stack),
    };
    match (was_free, stolen) {
        // Nothing that runs there keeps interrupts off.
        (true, _) => Some(Reason::MachineStoodStill),
        (_, true) => Some(Reason::MaybeStolen),
        _ => None,
    }
}
