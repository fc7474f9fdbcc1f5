//! The API: each path, what it reads from the words behind it, and what it answers.

use event::{Error, ErrorKind, Result};

use timeline::{Index, Series, TaskFacts, TrackId};

use crate::answer::Answer;
use crate::answers::{Facts, Info, Loss, Losses, Marks, Progress, Tasks};
use crate::cache::Change;
use crate::columns::Columns;
use crate::events::ROWS_MAX;
use crate::question::Words;
use crate::view::View;

/// The version of the API, which is in its paths.
const VERSION: u32 = 1;
/// Answers for which the trace itself is read again.
const WALKS: [&str; 8] = [
    "late", "ledger", "incident", "events", "row", "marks", "report", "counters",
];
const TRACKS_MAX: usize = 512;
const TASKS_MAX: usize = 4096;
const LOSSES_MAX: usize = 10_000;
pub(crate) const COLUMNS_MAX: i64 = 4096;

impl View {
    /// The answer to a question: its path, as in `/api/v1/info`, and what stands behind its `?`.
    pub fn answer(&self, path: &str, query: &str) -> Answer {
        let words = Words::parse(query);
        let Some(name) = path.strip_prefix("/api/v1/") else {
            return no_such(path).into();
        };
        if WALKS.contains(&name) && self.change() == Change::Other {
            return changed();
        }
        let answer = match name {
            "info" => Ok(Answer::json(&self.info())),
            "tracks" => self.tracks(&words).map(|value| Answer::json(&value)),
            "tasks" => self.tasks(&words).map(|value| Answer::json(&value)),
            "tile" => self.tile(&words).map(Answer::binary),
            "losses" => Ok(Answer::json(&self.losses())),
            "latencies" => self.latencies(&words).map(|value| Answer::json(&value)),
            "moment" => self.moment(&words).map(|value| Answer::json(&value)),
            "marks" => self.marks(&words).map(|value| Answer::json(&value)),
            "counters" => Ok(Answer::json(&self.counters(&words))),
            "fields" => Ok(Answer::json(&self.fields())),
            "names" => Ok(Answer::json(&self.user_names())),
            "ledger" => self.one_ledger(&words),
            "incident" => self.incident(&words),
            "late" => words
                .count("worst", 50, ROWS_MAX)
                .and_then(|worst| self.late(words.text("tasks"), worst.max(1)))
                .map(|value| Answer::json(&*value)),
            "events" => self.rows(&words),
            "row" => self.row(&words),
            "reports" => Ok(Answer::json(&self.report_names())),
            "report" => range(&words, &self.index())
                .and_then(|range| self.report(&words, range))
                .map(|value| Answer::json(&*value)),
            _ => no_such(path),
        };
        answer.into()
    }

    fn info(&self) -> Info {
        let (index, progress) = self.known();
        let (info, change) = (self.trace.info(), self.change());
        Info {
            schema: "rtscope.view".to_owned(),
            version: VERSION,
            name: self.name.clone(),
            begin_wall_ns: index.begin_ns.to_string(),
            begin_trace_ns: index
                .begin_ns
                .saturating_sub(info.wall_offset.as_ns())
                .to_string(),
            length_ns: index.end_ns.saturating_sub(index.begin_ns),
            events: index.events,
            cpus: index.cpus.len(),
            tasks: index.tasks.len(),
            activations: index.activations.len(),
            handlers: index.irqs.len() + index.softirqs.len(),
            calls: index.calls.len(),
            frequencies: known_of(&index.frequencies),
            idle_states: known_of(&index.idle_states),
            user_tracks: index.users.len(),
            losses: index.losses.len(),
            damages: index.damages,
            environment: info.environment.clone(),
            progress: Progress {
                done: progress.done,
                share: progress.share,
                error: progress.error,
                from_cache: progress.from_cache,
            },
            stale: change != Change::None,
            grown: change == Change::Grown,
            generation: self.generation,
        }
    }

    fn tasks(&self, words: &Words) -> Result<Tasks> {
        let index = self.index();
        let ids = words.list("ids", TASKS_MAX, |id| id.parse::<u64>().ok())?;
        let tasks = ids.into_iter().map(|id| facts(&index, id));
        Ok(Tasks {
            tasks: tasks.collect(),
        })
    }

    fn tile(&self, words: &Words) -> Result<Vec<u8>> {
        let index = self.index();
        let columns = words.count("columns", 1000, COLUMNS_MAX)?;
        let tracks = words.list("tracks", TRACKS_MAX, TrackId::parse)?;
        let range = range(words, &index)?;
        let counted = self.counted(words, &tracks);
        let counters: Vec<Option<&Series>> = counted
            .iter()
            .map(|one| one.as_ref().map(|one| &one.series))
            .collect();
        Ok(index.tile_with(&tracks, &counters, range, columns as u32))
    }

    fn losses(&self) -> Losses {
        let index = self.index();
        let losses = index.losses.iter().take(LOSSES_MAX).map(|loss| Loss {
            cpu: loss.cpu,
            begin_ns: loss.begin_ns.saturating_sub(index.begin_ns),
            end_ns: loss.end_ns.saturating_sub(index.begin_ns),
            count: loss.count,
            why: loss.why().to_owned(),
        });
        Losses {
            total: index.losses.len(),
            losses: losses.collect(),
        }
    }

    fn one_ledger(&self, words: &Words) -> Result<Answer> {
        let task = words.needed("task", i64::from(u32::MAX))?;
        let value = self.ledger(task, words.number("end", 0)?)?;
        Ok(Answer::json(&*value))
    }

    fn rows(&self, words: &Words) -> Result<Answer> {
        let first = words.count("first", 0, i64::MAX)?;
        let count = words.count("count", 100, ROWS_MAX)?;
        let columns = Columns::new(&self.trace, words.text("columns"));
        let rows = self.events(words.text("filter"), columns, first as u64, count)?;
        Ok(Answer::json(&rows))
    }

    /// How many events match a filter in each column of a range.
    fn marks(&self, words: &Words) -> Result<Marks> {
        let range = range(words, &self.index())?;
        let columns = words.count("columns", 1000, COLUMNS_MAX)?.max(1);
        self.marks_of(words.text("filter"), range, columns)
    }

    fn row(&self, words: &Words) -> Result<Answer> {
        let at_ns = self.index().begin_ns.saturating_add(words.number("at", 0)?);
        Ok(Answer::json(&self.row_at(words.text("filter"), at_ns)?))
    }
}

/// Of how many CPUs something is told.
fn known_of(all: &[Series]) -> usize {
    all.iter().filter(|series| !series.is_empty()).count()
}

/// What the index says still holds of the trace as it was; what is read now would be of another.
fn changed() -> Answer {
    let error = Error::new(
        ErrorKind::Corrupt,
        "the trace has changed since it was opened",
    )
    .found("files of other sizes or times, or none")
    .fix("wait until it is read again, or put its files back");
    Answer::refusal(409, &error)
}

fn no_such(path: &str) -> Result<Answer> {
    let path: String = path.chars().take(80).collect();
    Err(Error::new(ErrorKind::NotFound, "no such path")
        .found(format!("'{path}'"))
        .fix("docs/view.md has the API"))
}

/// The range that is asked for, in nanoseconds of the wall clock; the whole trace by default.
pub(crate) fn range(words: &Words, index: &Index) -> Result<(i64, i64)> {
    let length_ns = index.end_ns.saturating_sub(index.begin_ns);
    let begin_ns = words.number("begin", 0)?;
    let end_ns = words.number("end", length_ns)?;
    let wall = |ns: i64| index.begin_ns.saturating_add(ns);
    Ok((wall(begin_ns), wall(end_ns)))
}

pub(crate) fn facts(index: &Index, task: u64) -> Option<Facts> {
    let known = index.tasks.get(usize::try_from(task).ok()?)?;
    Some(Facts {
        task,
        name: known.comm.clone(),
        tid: known.tid,
        pid: known.pid,
        prio: known
            .prio
            .map(|prio| event::Prio::from_lttng(prio).to_string()),
    })
}

/// Whether a search means a task: a part of its name, or its id.
pub(crate) fn is_meant(task: &TaskFacts, search: &str) -> bool {
    task.comm.to_lowercase().contains(search) || task.tid.to_string() == search
}
