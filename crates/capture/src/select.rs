//! Which tracepoints to record: named sets, names, patterns.

use std::collections::BTreeSet;

use event::{Error, ErrorKind, Result};
use ftrace::{EventName, lttng};

use crate::sets;

/// How many names an error offers in place of one that does not exist.
const NEAR_MATCHES: usize = 5;

/// What was asked for: sets (`sched`, `irq`, …), tracepoints (`sched:sched_switch`,
/// `sched_switch`, LTTng's `syscall_entry_openat`) and patterns with `*` and `?`. What begins with
/// `?` may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSelection {
    terms: Vec<String>,
}

impl Default for EventSelection {
    /// Every event that the ledger needs.
    fn default() -> Self {
        EventSelection {
            terms: vec![sets::DEFAULT.to_owned()],
        }
    }
}

/// What a selection means on this kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// The tracepoints, sorted.
    pub events: Vec<EventName>,
    /// Patterns of sets that match nothing here: this kernel has no such event.
    pub absent: Vec<String>,
}

impl EventSelection {
    /// From what was typed; a term may hold several, separated by commas. Nothing typed is the
    /// default set.
    pub fn new<S: AsRef<str>>(terms: impl IntoIterator<Item = S>) -> Self {
        let mut list = Vec::new();
        for term in terms {
            let parts = term
                .as_ref()
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            list.extend(parts.map(str::to_owned));
        }
        if list.is_empty() {
            EventSelection::default()
        } else {
            EventSelection { terms: list }
        }
    }

    /// Adds a term.
    pub fn with(mut self, term: &str) -> Self {
        self.terms.push(term.to_owned());
        self
    }

    /// Whether every event that the ledger needs is asked for.
    pub(crate) fn has_default(&self) -> bool {
        self.terms.iter().any(|term| term == sets::DEFAULT)
    }

    /// The names of all sets.
    pub fn set_names() -> impl Iterator<Item = &'static str> {
        sets::SETS.iter().map(|(name, _)| *name)
    }

    /// Finds the tracepoints among those that this kernel has.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when a name or pattern, not part of a set, matches nothing; it
    /// offers names that are near.
    pub fn resolve(&self, available: &[EventName]) -> Result<Selected> {
        let mut events = BTreeSet::new();
        let mut absent = Vec::new();
        for term in &self.terms {
            if let Some(pattern) = term.strip_prefix('?') {
                // Of an event file: not every kernel has each of its events.
                add_set(&[pattern], available, &mut events, &mut absent);
                continue;
            }
            match sets::patterns(term) {
                Some(patterns) => add_set(patterns, available, &mut events, &mut absent),
                None if add(term, available, &mut events) => {}
                None => return Err(unknown(term, available)),
            }
        }
        Ok(Selected {
            events: events.into_iter().collect(),
            absent,
        })
    }
}

fn add_set(
    patterns: &[&str],
    available: &[EventName],
    events: &mut BTreeSet<EventName>,
    absent: &mut Vec<String>,
) {
    let mut found = BTreeSet::new();
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(without) => found.retain(|event| !matches(without, event)),
            None if add(pattern, available, &mut found) => {}
            None => absent.push((*pattern).to_owned()),
        }
    }
    events.append(&mut found);
}

/// Adds what `pattern` matches; false when that is nothing.
fn add(pattern: &str, available: &[EventName], events: &mut BTreeSet<EventName>) -> bool {
    let found = called(pattern, available);
    events.extend(found.iter().map(|event| (*event).clone()));
    !found.is_empty()
}

/// The events that `pattern` names: by the kernel's names, and where there is none, by LTTng's.
fn called<'e>(pattern: &str, available: &'e [EventName]) -> Vec<&'e EventName> {
    let kernels = available.iter().filter(|event| matches(pattern, event));
    let kernels: Vec<_> = kernels.collect();
    if !kernels.is_empty() || pattern.contains(':') {
        return kernels;
    }
    let lttngs = available
        .iter()
        .filter(|event| glob(pattern, &lttng::name(event)));
    lttngs.collect()
}

/// The one event that is called so, by the kernel or by LTTng.
///
/// # Errors
/// [`ErrorKind::NotFound`] when none is, with names that are near; [`ErrorKind::InvalidInput`] when
/// several are.
pub fn named_event<'e>(typed: &str, available: &'e [EventName]) -> Result<&'e EventName> {
    match called(typed, available)[..] {
        [event] => Ok(event),
        [] => {
            let plain = typed.rsplit(':').next().unwrap_or(typed);
            let names = available.iter().map(|event| event.name.as_str());
            let fix = match expr::nearest(plain, names) {
                Some(near) => format!("perhaps '{near}' is meant"),
                None => "/sys/kernel/tracing/available_events lists them".to_owned(),
            };
            let error = Error::new(ErrorKind::NotFound, "this kernel has no such tracepoint");
            Err(error.found(format!("'{typed}'")).fix(fix))
        }
        ref found => {
            let names: Vec<_> = found
                .iter()
                .take(NEAR_MATCHES)
                .map(ToString::to_string)
                .collect();
            let error = Error::new(ErrorKind::InvalidInput, "several tracepoints are called so");
            let fix = format!("choose from: {}", names.join(", "));
            Err(error.found(format!("'{typed}'")).fix(fix))
        }
    }
}

/// Whether `pattern` names `event`: `system:name`, or a name of any system.
fn matches(pattern: &str, event: &EventName) -> bool {
    match pattern.split_once(':') {
        Some((system, name)) => glob(system, &event.system) && glob(name, &event.name),
        None => glob(pattern, &event.name),
    }
}

/// `*` stands for any characters, `?` for one.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // The last star, and the text that it has swallowed so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == b'?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star {
            star = Some((star_p, star_t + 1));
            p = star_p + 1;
            t = star_t + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

fn unknown(term: &str, available: &[EventName]) -> Error {
    let near = near_matches(term, available);
    let fix = if near.is_empty() {
        let sets: Vec<_> = EventSelection::set_names().collect();
        format!(
            "name a set ({}), or see: rtscope record --list-events",
            sets.join(" ")
        )
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Error::new(ErrorKind::NotFound, "this kernel has no such event or set")
        .found(format!("'{term}'"))
        .fix(fix)
}

/// Names that a slip of the finger would turn into `term`.
fn near_matches(term: &str, available: &[EventName]) -> Vec<String> {
    let bare = term.rsplit(':').next().unwrap_or(term);
    let full = available
        .iter()
        .map(|event| (event.name.as_str(), event.to_string()));
    let sets = EventSelection::set_names().map(|set| (set, set.to_owned()));
    let mut near: Vec<_> = sets
        .chain(full)
        .filter_map(|(name, shown)| {
            let distance = expr::edit_distance(bare, name);
            let inside = bare.len() >= 4 && name.contains(bare);
            (distance <= 1 + bare.len() / 5 || inside).then_some((distance, shown))
        })
        .collect();
    near.sort();
    near.into_iter()
        .take(NEAR_MATCHES)
        .map(|(_, shown)| shown)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available() -> Vec<EventName> {
        let names = [
            "irq:irq_handler_entry",
            "irq:softirq_entry",
            "raw_syscalls:sys_enter",
            "sched:sched_switch",
            "sched:sched_wakeup",
            "sched:sched_waking",
            "syscalls:sys_enter_read",
        ];
        names
            .iter()
            .filter_map(|name| EventName::parse(name))
            .collect()
    }

    fn resolve(terms: &[&str]) -> Result<String> {
        let selected = EventSelection::new(terms).resolve(&available())?;
        let names: Vec<_> = selected
            .events
            .iter()
            .map(|event| event.name.clone())
            .collect();
        Ok(names.join(" "))
    }

    #[test]
    fn sets_names_and_patterns_select_what_they_say() {
        let check = |terms: &[&str], expect: &str| {
            assert_eq!(resolve(terms).ok().as_deref(), Some(expect), "{terms:?}");
        };
        check(&["sched_switch"], "sched_switch");
        check(&["sched:sched_wak*"], "sched_wakeup sched_waking");
        check(&["irq,softirq"], "irq_handler_entry softirq_entry");
        check(&["sched_w?king"], "sched_waking");
        check(&["syscall"], "sys_enter_read");
        let all = "irq_handler_entry softirq_entry sched_switch sched_wakeup sched_waking \
                   sys_enter_read";
        check(&["all"], all);
        check(&["sys_enter"], "sys_enter");
        check(
            &[],
            "irq_handler_entry softirq_entry sched_switch sched_wakeup sched_waking",
        );
    }

    #[test]
    fn lttngs_names_select_what_the_kernel_calls_otherwise() {
        let check = |terms: &[&str], expect: &str| {
            assert_eq!(resolve(terms).ok().as_deref(), Some(expect), "{terms:?}");
        };
        check(&["syscall_entry_read"], "sys_enter_read");
        check(
            &["syscall_entry_*,sched_switch"],
            "sched_switch sys_enter_read",
        );
        check(&["irq_softirq_entry"], "softirq_entry");
        assert!(resolve(&["syscalls:syscall_entry_read"]).is_err());
    }

    #[test]
    fn a_tracepoint_is_found_by_both_its_names_or_refused_with_a_near_one() {
        let available: Vec<_> = [
            "sched:sched_switch",
            "irq:softirq_entry",
            "syscalls:sys_enter_openat",
            "a:twice",
            "b:twice",
        ]
        .iter()
        .filter_map(|name| EventName::parse(name))
        .collect();
        let check = |typed: &str, expect: Result<&str, &str>| {
            let found = named_event(typed, &available).map(ToString::to_string);
            let found = found.map_err(|error| error.fixed_by().expect("a remedy").to_owned());
            match expect {
                Ok(name) => assert_eq!(found.as_deref(), Ok(name), "{typed}"),
                Err(fix) => assert!(found.as_ref().is_err_and(|found| found.contains(fix))),
            }
        };
        check("sched_switch", Ok("sched:sched_switch"));
        check("irq_softirq_entry", Ok("irq:softirq_entry"));
        check("softirq_entry", Ok("irq:softirq_entry"));
        check("syscall_entry_openat", Ok("syscalls:sys_enter_openat"));
        check("a:twice", Ok("a:twice"));
        check("twice", Err("a:twice, b:twice"));
        check("sched_swich", Err("'sched_switch'"));
        check("jackd", Err("available_events"));
    }

    #[test]
    fn an_unknown_name_offers_its_neighbours_and_a_set_reports_what_is_absent() {
        let error = resolve(&["sched:sched_swich"]).expect_err("it does not exist");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(
            error
                .fixed_by()
                .is_some_and(|fix| fix.contains("sched:sched_switch"))
        );
        let error = resolve(&["irk"]).expect_err("it does not exist");
        assert!(error.fixed_by().is_some_and(|fix| fix.contains("irq")));
        let selected = EventSelection::new(["nmi"])
            .resolve(&available())
            .expect("a set");
        assert_eq!((selected.events.len(), selected.absent.len()), (0, 1));
    }
}
