//! What looks at a task's own work show: in which of its functions it was.

use event::evidence::{Frame, Stack, Worked};

use crate::finding::LateActivation;
use crate::model::Model;

/// Where a frame of user code is: `plan+0x12 (robot)`, or `robot+0x1170` without a function.
struct At<'a> {
    /// The function; without one the whole symbol.
    name: &'a str,
    /// Its file.
    file: &'a str,
}

impl At<'_> {
    fn of(frame: &Frame) -> Option<At<'_>> {
        let symbol = frame.symbol.as_str();
        let place = match symbol.strip_suffix(')').and_then(|s| s.rsplit_once(" (")) {
            Some((function, file)) => At {
                name: function
                    .rsplit_once("+0x")
                    .map_or(function, |(name, _)| name),
                file,
            },
            None => At {
                name: symbol,
                file: symbol.rsplit_once("+0x").map_or(symbol, |(file, _)| file),
            },
        };
        (!symbol.is_empty()).then_some(place)
    }

    /// Whether it serves the program that asked for it.
    fn is_library(&self) -> bool {
        self.file.contains(".so") || self.file.starts_with('[')
    }

    fn text(&self) -> String {
        match self.name.starts_with(self.file) {
            true => self.name.to_owned(),
            false => format!("{} of {}", self.name, self.file),
        }
    }
}

/// The innermost function of the program itself; where all are of libraries, of those.
fn function(stack: &Stack) -> Option<String> {
    let mut own = stack.iter().filter_map(At::of);
    let own = own.find(|at| !at.is_library());
    let first = || stack.iter().find_map(At::of);
    own.or_else(first).map(|at| at.text())
}

/// Functions in which the kernel spins for a lock of another task, or of another CPU
/// (kernel/locking).
const SPINS: [&str; 10] = [
    "rwsem_spin_on_owner",
    "rwsem_optimistic_spin",
    "rwsem_down_write_slowpath",
    "osq_lock",
    "mutex_spin_on_owner",
    "rtmutex_spin_on_owner",
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
];

/// Whether it was in one of these.
fn spins(look: &Worked) -> bool {
    let function = |frame: &Frame| {
        let symbol = frame.symbol.split_once("+0x");
        symbol.is_some_and(|(name, _)| SPINS.contains(&name))
    };
    look.kernel.first().is_some_and(function)
}

/// The stretches in which two looks in a row found a task spinning.
pub(crate) fn spun(model: &Model, tid: i32, (begin_ns, end_ns): (i64, i64)) -> Vec<(i64, i64)> {
    let looks = model.evidence.worked.iter();
    let its = looks.filter(|look| look.task.tid.0 == tid);
    let its = its.map(|look| (look.time.as_ns(), spins(look)));
    let within: Vec<_> = its
        .filter(|(time_ns, _)| (begin_ns..end_ns).contains(time_ns))
        .collect();
    let pairs = within.windows(2);
    let both = pairs.filter(|pair| pair[0].1 && pair[1].1);
    both.map(|pair| (pair[0].0, pair[1].0)).collect()
}

/// The looks at this activation's own work.
pub(crate) fn looks<'a>(
    model: &'a Model,
    late: &'a LateActivation,
) -> impl Iterator<Item = &'a Worked> {
    let inside = late.origin..=late.end;
    let looks = model.evidence.worked.iter();
    looks.filter(move |look| look.task.tid == late.task.tid && inside.contains(&look.time))
}

/// In which function it was seen most often, and how often: `plan of robot at 2 of 3 looks`.
pub(crate) fn seen_in(model: &Model, late: &LateActivation) -> Option<String> {
    let (mut all, mut seen) = (0, Vec::<(String, usize)>::new());
    for look in looks(model, late) {
        all += 1;
        let Some(name) = function(&look.stack) else {
            continue;
        };
        match seen.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => *times += 1,
            None => seen.push((name, 1)),
        }
    }
    // The first of equals.
    let (name, times) = seen.into_iter().rev().max_by_key(|(_, times)| *times)?;
    Some(format!("{name} at {times} of {all} looks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_is_the_programs_own_which_a_library_serves() {
        let check = |symbols: &[&str], expect: Option<&str>| {
            let frame = |symbol: &&str| Frame {
                address: 1,
                symbol: (*symbol).into(),
            };
            let stack: Stack = symbols.iter().map(frame).collect();
            assert_eq!(function(&stack).as_deref(), expect, "{symbols:?}");
        };
        let spins = [
            "[vdso]+0x91a",
            "clock_gettime+0x2d (libc.so.6)",
            "plan_path()+0x12 (ctrl)",
            "run+0x1 (ctrl)",
        ];
        check(&spins, Some("plan_path() of ctrl"));
        check(&["memset+0x3 (libc.so.6)"], Some("memset of libc.so.6"));
        check(&["robot+0x1170"], Some("robot+0x1170"));
        check(
            &["operator+(A, B)+0x3 (robot)"],
            Some("operator+(A, B) of robot"),
        );
        check(&["", "plan+0x1 (robot)"], Some("plan of robot"));
        check(&[""], None);
        check(&[], None);
    }
}
