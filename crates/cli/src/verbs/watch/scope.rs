//! What a watch judged: a number of hits says nothing without it.

use capture::watch::Status;

use crate::flags::Until;

/// Whose activations, and where they end.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The targets, in words.
    pub whom: String,
    /// Where an activation ends.
    pub until: Until,
}

impl Scope {
    /// As `--until` and JSON call the end.
    pub fn until_name(&self) -> &'static str {
        match self.until {
            Until::Block => "block",
            Until::SwitchIn => "switch-in",
            Until::UserReturn => "user-return",
        }
    }

    /// How many activations of whom were judged to where, and how many were not.
    pub fn judged(&self, status: &Status) -> String {
        let statistics = &status.statistics;
        let (samples, whom) = (statistics.samples, &self.whom);
        let to = match self.until {
            // What the watch follows is inside the work; these it does not.
            Until::Block => {
                "to the end of the work; a sleep for a semaphore, a condition or an answer ends it"
            }
            Until::SwitchIn => "to the switch-in; work after it not judged",
            Until::UserReturn => "to the return to user space; work after it not judged",
        };
        let judged = match samples {
            0 => format!("nothing judged: no activation of {whom} ended"),
            1 => format!("judged: 1 activation of {whom}, {to}"),
            _ => format!("judged: {samples} activations of {whom}, {to}"),
        };
        match statistics.untracked {
            0 => judged,
            wakeups => format!("{judged}; {wakeups} wake-ups of tasks that are not known yet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_hits_comes_with_what_was_judged() {
        let check = |until, samples, untracked, expect: &str| {
            let mut status = Status {
                elapsed: event::Duration::ZERO,
                read: event::Instant::MIN,
                hits: 0,
                statistics: Default::default(),
                cost: Default::default(),
                programs: Vec::new(),
            };
            status.statistics.samples = samples;
            status.statistics.untracked = untracked;
            let whom = "tasks called jackd".to_owned();
            assert_eq!(Scope { whom, until }.judged(&status), expect);
        };
        let block = "judged: 7 activations of tasks called jackd, to the end of the work; a sleep \
                     for a semaphore, a condition or an answer ends it";
        check(Until::Block, 7, 0, block);
        check(
            Until::Block,
            7,
            2,
            &format!("{block}; 2 wake-ups of tasks that are not known yet"),
        );
        check(
            Until::SwitchIn,
            1,
            0,
            "judged: 1 activation of tasks called jackd, to the switch-in; work after it not \
             judged",
        );
        check(
            Until::Block,
            0,
            0,
            "nothing judged: no activation of tasks called jackd ended",
        );
    }
}
