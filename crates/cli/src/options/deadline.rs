//! What `rtscope measure deadline` was asked to do.

use event::{Duration, Error, ErrorKind, Result};
use measure::deadline::{Plan, TaskPlan};

use super::positive_duration;
use crate::flags;

/// The histograms: a microsecond each, up to ten milliseconds.
const BUCKET: Duration = Duration::from_us(1);
const BUCKETS: usize = 10_000;

/// Tasks with deadlines, decided.
#[derive(Clone, Debug)]
pub struct DeadlineOptions {
    /// What to try.
    pub plan: Plan,
    /// End after this.
    pub run_for: Option<Duration>,
    /// The longest that a task may begin after its release.
    pub over: Option<Duration>,
}

impl DeadlineOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for words without a meaning.
    pub fn new(typed: &flags::Deadline) -> Result<DeadlineOptions> {
        let optional = |flag: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| positive_duration(flag, text)).transpose()
        };
        let mut tasks = Vec::new();
        for text in &typed.task {
            let one = task(text, typed.work)?;
            tasks.extend((0..typed.times).map(|_| one));
        }
        Ok(DeadlineOptions {
            plan: Plan {
                tasks,
                bucket: BUCKET,
                buckets: BUCKETS,
            },
            run_for: optional("--for", &typed.run_for)?,
            over: optional("--over", &typed.over)?,
        })
    }
}

fn task(text: &str, work_percent: u32) -> Result<TaskPlan> {
    let words: Vec<&str> = text.split(':').collect();
    let &[runtime, deadline, period] = words.as_slice() else {
        let what = "a task with a deadline has three times";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(format!("'{text}'"))
            .fix("RUNTIME:DEADLINE:PERIOD, as in --task 2ms:5ms:10ms"));
    };
    let duration = |text: &str| positive_duration("--task", text);
    let runtime = duration(runtime)?;
    Ok(TaskPlan {
        runtime,
        deadline: duration(deadline)?,
        period: duration(period)?,
        work: Duration::from_ns(runtime.as_ns() * i64::from(work_percent) / 100),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_three_times_as_often_as_was_asked() {
        let typed = |task: &str| flags::Deadline {
            task: vec![task.to_owned()],
            times: 3,
            work: 25,
            run_for: None,
            over: None,
            json: false,
        };
        let found = DeadlineOptions::new(&typed("2ms:5ms:10ms")).expect("decided");
        let ms = Duration::from_ms;
        let expect = TaskPlan {
            runtime: ms(2),
            deadline: ms(5),
            period: ms(10),
            work: Duration::from_us(500),
        };
        assert_eq!(found.plan.tasks, [expect; 3]);
        for wrong in [
            "2ms",
            "2ms:5ms",
            "2ms:5ms:10ms:1ms",
            "2:5:10",
            "0ms:5ms:10ms",
        ] {
            assert!(DeadlineOptions::new(&typed(wrong)).is_err(), "{wrong}");
        }
    }
}
