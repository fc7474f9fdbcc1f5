//! Who made tasks late in a trace, as `rtscope diagnose --json` says it.

use diagnosis::{Query, TaskFilter, Until, diagnose};
use event::{Duration, Error, ErrorKind, Instant, Result, TimeRange};
use trace::Trace;

/// A question of [`diagnosis_json`]; the default is that of `rtscope diagnose`.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Whose activations, each as after `--task`; empty: hits of the trace, else real-time tasks.
    pub tasks: Vec<String>,
    /// Those that took longer; none: the worst.
    pub over_ns: Option<i64>,
    /// `block`: to the end of the work; `switch-in`: to the CPU.
    pub until: String,
    /// At most so many, the worst first; zero: all.
    pub worst: usize,
    /// Only activations that end inside.
    pub range: TimeRange,
}

impl Default for Question {
    fn default() -> Self {
        let query = Query::default();
        Question {
            tasks: Vec::new(),
            over_ns: None,
            until: Until::Block.name().to_owned(),
            worst: query.worst,
            range: query.range,
        }
    }
}

/// The answer as JSON, schema `rtscope.diagnosis` version 1.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a word without a meaning; [`ErrorKind::Unsupported`] for a trace
/// that cannot be diagnosed; what the operating system says of its files.
pub fn diagnosis_json(trace: &Trace, question: &Question) -> Result<String> {
    let ends = [Until::Block, Until::SwitchIn];
    let until = ends.into_iter().find(|end| end.name() == question.until);
    let until = until.ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "no such end of an activation")
            .found(format!("'{}'", question.until))
            .fix("give 'block' (the end of the work) or 'switch-in'")
    })?;
    let range = TimeRange {
        begin: question.range.begin.max(Instant::MIN),
        end: question.range.end.min(Instant::MAX),
    };
    let found = diagnose(
        trace,
        &Query {
            tasks: TaskFilter::parse(&question.tasks)?,
            until,
            threshold: question.over_ns.map(Duration::from_ns),
            worst: question.worst,
            range,
            ..Query::default()
        },
    )?;
    Ok(diagnosis::diagnosis_json(&found).to_string())
}

#[cfg(test)]
mod tests {
    use testkit::{SyntheticTrace, Task};

    use super::*;

    #[test]
    fn the_answer_is_that_of_the_verb_and_a_word_without_meaning_is_refused() {
        let (victim, hog) = (Task::rt(100, "victim", 50), Task::rt(200, "hog", 60));
        let trace = SyntheticTrace::new().at(20).block(victim, hog);
        let trace = trace.at(1_000).irq(9, "eth0").after(2).wake(victim);
        let trace = trace.after(2).irq_end(9).at(9_000).block(hog, victim);
        let trace = trace.after(10).block(victim, Task::IDLE).build();
        let question = Question {
            tasks: vec!["victim".to_owned()],
            over_ns: Some(1_000_000),
            ..Question::default()
        };
        let text = diagnosis_json(&trace, &question).expect("an answer");
        assert!(text.contains("\"schema\":\"rtscope.diagnosis\""), "{text}");
        assert!(
            text.contains("hog (tid 200, rt 60) ran ahead of it"),
            "{text}"
        );
        let check = |question: Question, found: &str| {
            let error = diagnosis_json(&trace, &question).expect_err("refused");
            assert_eq!(error.value_found(), Some(found));
        };
        let until = "lunch".to_owned();
        check(
            Question {
                until,
                ..Question::default()
            },
            "'lunch'",
        );
        let tasks = vec!["prio:0".to_owned()];
        check(
            Question {
                tasks,
                ..Question::default()
            },
            "'prio:0'",
        );
    }
}
