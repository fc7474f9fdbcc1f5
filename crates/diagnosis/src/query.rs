//! What the user asks: which tasks, how late, how many, when and where.

use event::{Cpu, Duration, Error, ErrorKind, Result, TimeRange};
use kernel_state::TaskFilter;

/// Where an activation ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Where its task is scheduled in: how late it began, not its work.
    #[default]
    SwitchIn,
    /// Where its task has done its work and waits for the next: the whole response.
    Block,
}

impl Until {
    /// Its name in flags and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Until::SwitchIn => "switch-in",
            Until::Block => "block",
        }
    }
}

/// A question to [`diagnose`](crate::diagnose).
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Whose activations.
    pub tasks: TaskFilter,
    /// Where an activation ends; hits end where their watch ended them.
    pub until: Until,
    /// Late means at least this; none: only the order counts.
    pub threshold: Option<Duration>,
    /// At most so many activations, the worst first; zero: all.
    pub worst: usize,
    /// Only activations that end inside.
    pub range: TimeRange,
    /// Only activations that end on one of these CPUs; empty: all.
    pub cpus: Vec<Cpu>,
    /// The lengths of all activations are counted, late or not, for who [compares](crate::compare)
    /// answers.
    pub lengths: bool,
}

impl Default for Query {
    fn default() -> Self {
        Query {
            tasks: TaskFilter::default(),
            until: Until::default(),
            threshold: None,
            worst: 10,
            range: TimeRange::ALL,
            cpus: Vec::new(),
            lengths: false,
        }
    }
}

impl Query {
    /// Refuses questions that have no meaning.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a threshold that is not positive and for an empty range.
    pub fn check(&self) -> Result<()> {
        if let Some(threshold) = self
            .threshold
            .filter(|threshold| *threshold <= Duration::ZERO)
        {
            return Err(
                Error::new(ErrorKind::InvalidInput, "a threshold must be positive")
                    .found(threshold.to_string())
                    .fix("give a duration above zero, as in --over 25ms"),
            );
        }
        if self.range.begin >= self.range.end {
            return Err(
                Error::new(ErrorKind::InvalidInput, "the time range is empty")
                    .found(format!("{} to {}", self.range.begin, self.range.end))
                    .fix("let --begin lie before --end"),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_meaning_is_refused_in_three_parts() {
        let zero = Query {
            threshold: Some(Duration::ZERO),
            ..Query::default()
        };
        let error = zero.check().expect_err("zero is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.fixed_by().is_some());
        let range = TimeRange {
            begin: event::Instant::MAX,
            end: event::Instant::MIN,
        };
        assert!(
            Query {
                range,
                ..Query::default()
            }
            .check()
            .is_err()
        );
        assert!(Query::default().check().is_ok());
    }
}
