//! Late activations with their ledgers and verdicts, as the diagnosis finds them.

use std::sync::Arc;

use diagnosis::{Query, TaskFilter, diagnose};
use event::{Error, ErrorKind, Instant, Result, TaskPattern, Tid, TimeRange};
use report::{Incident, diagnosis_json, incident_html};
use serde_json::Value;

use crate::answer::Answer;
use crate::question::Words;
use crate::view::View;

/// Keys of the diagnosis that hold instants.
const INSTANTS: [&str; 5] = ["origin_ns", "end_ns", "begin_ns", "time_ns", "since_ns"];
/// What names tasks, at most.
const TASKS_BYTES_MAX: usize = 1024;

impl View {
    /// The worst activations of the tasks that `tasks` names, in whose language; of all real-time
    /// tasks when it is empty.
    pub(crate) fn late(&self, tasks: &str, worst: usize) -> Result<Arc<Value>> {
        let query = Query {
            tasks: task_filter(tasks)?,
            worst,
            ..Query::default()
        };
        let question = format!("{worst} {tasks}");
        self.diagnoses.get(&question, || self.diagnosis(&query))
    }

    /// The activation of a task that ended at an instant.
    pub(crate) fn ledger(&self, task: usize, end_ns: i64) -> Result<Arc<Value>> {
        let query = self.query(task, end_ns)?;
        let question = format!("{task}@{end_ns}");
        self.diagnoses.get(&question, || self.diagnosis(&query))
    }

    /// The same as a page for a ticket, as `rtscope diagnose --html` writes it.
    pub(crate) fn incident(&self, words: &Words) -> Result<Answer> {
        let task = words.needed("task", i64::from(u32::MAX))?;
        let query = self.query(task, words.number("end", 0)?)?;
        let (index, info) = (self.index(), self.trace.info());
        let tid = index.tasks.get(task).map_or(0, |facts| facts.tid);
        let command = format!(
            "rtscope diagnose {} --task tid:{tid} --until switch-in",
            self.name
        );
        let page = incident_html(&Incident {
            diagnosis: &diagnose(&self.trace, &query)?,
            info,
            index: Some(&index),
            trace: &self.name,
            command: &command,
            utc: false,
        });
        Ok(Answer {
            status: 200,
            content_type: "text/html; charset=utf-8",
            body: page.into_bytes(),
        })
    }

    fn query(&self, task: usize, end_ns: i64) -> Result<Query> {
        let index = self.index();
        let Some(facts) = index.tasks.get(task) else {
            let error = Error::new(ErrorKind::NotFound, "no such task");
            return Err(error.found(task.to_string()).fix("look at /api/v1/tracks"));
        };
        let offset_ns = self.trace.info().wall_offset.as_ns();
        let wall_ns = index.begin_ns.saturating_add(end_ns);
        let end = Instant::from_ns(wall_ns.saturating_sub(offset_ns));
        Ok(Query {
            tasks: TaskFilter {
                patterns: vec![TaskPattern::Tid(Tid(facts.tid))],
            },
            worst: 0,
            range: TimeRange {
                begin: end,
                end: Instant::from_ns(end.as_ns().saturating_add(1)),
            },
            ..Query::default()
        })
    }

    fn diagnosis(&self, query: &Query) -> Result<Value> {
        let mut value = diagnosis_json(&diagnose(&self.trace, query)?);
        let offset_ns = self.trace.info().wall_offset.as_ns();
        let begin_ns = self.first_ns()?.saturating_sub(offset_ns);
        after(&mut value, begin_ns);
        Ok(value)
    }
}

/// The tasks that a client names, with commas between.
pub(crate) fn task_filter(tasks: &str) -> Result<TaskFilter> {
    if tasks.len() > TASKS_BYTES_MAX {
        let error = Error::new(ErrorKind::InvalidInput, "too long to name tasks");
        let fix = format!("keep it below {TASKS_BYTES_MAX}");
        return Err(error.found(format!("{} bytes", tasks.len())).fix(fix));
    }
    let named: Vec<&str> = tasks.split(',').filter(|task| !task.is_empty()).collect();
    TaskFilter::parse(&named)
}

/// Turns instants of the trace's clock into time after its first event: what a page can reckon
/// with.
fn after(value: &mut Value, begin_ns: i64) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                match member.as_i64().filter(|_| INSTANTS.contains(&key.as_str())) {
                    Some(ns) => *member = ns.saturating_sub(begin_ns).into(),
                    None => after(member, begin_ns),
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(|each| after(each, begin_ns)),
        _ => {}
    }
}
