//! Which tracks there are, in what order, and how the time of each went.

use std::cmp::Reverse;
use std::collections::HashMap;

use event::Result;
use timeline::{Index, Kind, Track};

use crate::answers::{TrackRow, Tracks};
use crate::api::{facts, is_meant, range};
use crate::events::ROWS_MAX;
use crate::question::Words;
use crate::view::View;

/// A thread's time in a range by kind, and its place among the tasks.
struct Row {
    sums: [u64; Kind::COUNT],
    place: usize,
}

impl Row {
    fn of(&self, kind: Kind) -> u64 {
        self.sums[kind as usize]
    }

    fn run_ns(&self) -> u64 {
        let run = [Kind::Run, Kind::Call, Kind::Irq, Kind::Softirq];
        run.iter().map(|kind| self.of(*kind)).sum()
    }
}

impl View {
    /// Tracks of CPUs by number, or of threads as the client wants them sorted.
    pub(crate) fn tracks(&self, words: &Words) -> Result<Tracks> {
        let index = self.index();
        let range = range(words, &index)?;
        let offset = words.count("offset", 0, i64::MAX)?;
        let limit = words.count("limit", 100, ROWS_MAX)?;
        if words.text("kind") != "thread" {
            let cpus = index.cpus.iter().enumerate().skip(offset).take(limit);
            let rows = cpus.map(|(cpu, track)| {
                let row = row(track, cpu, range);
                told(&row, format!("c{cpu}"), None)
            });
            return Ok(Tracks {
                total: index.cpus.len(),
                tracks: rows.collect(),
            });
        }
        let search = words.text("search").to_lowercase();
        let tasks = index.tasks.iter().zip(&index.threads).enumerate();
        let meant = tasks.filter(|(_, (task, _))| task.tid != 0 && is_meant(task, &search));
        let mut rows: Vec<Row> = meant
            .map(|(place, (_, track))| row(track, place, range))
            .collect();
        sort(&mut rows, words.text("sort"), &index);
        if words.text("group") == "process" {
            together(&mut rows, &index);
        }
        let total = rows.len();
        let rows = rows.into_iter().skip(offset).take(limit);
        let rows = rows.map(|row| {
            let facts = facts(&index, row.place as u64);
            TrackRow {
                facts,
                ..told(&row, format!("t{}", row.place), Some(row.place))
            }
        });
        Ok(Tracks {
            total,
            tracks: rows.collect(),
        })
    }
}

fn row(track: &Track, place: usize, (begin_ns, end_ns): (i64, i64)) -> Row {
    Row {
        sums: track.sums(begin_ns, end_ns),
        place,
    }
}

fn told(row: &Row, id: String, task: Option<usize>) -> TrackRow {
    TrackRow {
        id,
        task,
        run_ns: row.run_ns(),
        runnable_ns: row.of(Kind::Runnable),
        sums_ns: row.sums,
        facts: None,
    }
}

fn sort(rows: &mut [Row], by: &str, index: &Index) {
    let task = |row: &Row| &index.tasks[row.place];
    match by {
        "waits" => rows.sort_by_key(|row| Reverse(row.of(Kind::Runnable))),
        "blocked" => rows.sort_by_key(|row| Reverse(row.of(Kind::Idle))),
        "name" => rows.sort_by_cached_key(|row| (task(row).comm.clone(), task(row).tid)),
        "tid" => rows.sort_by_key(|row| task(row).tid),
        // The most urgent first: a lower number goes before.
        "prio" => rows.sort_by_key(|row| {
            let prio = task(row).prio.unwrap_or(i32::MAX);
            (prio, Reverse(row.run_ns()))
        }),
        _ => rows.sort_by_key(|row| Reverse(row.run_ns())),
    }
}

/// The threads of a process behind each other, where its first one stands.
fn together(rows: &mut [Row], index: &Index) {
    let mut first: HashMap<i32, usize> = HashMap::new();
    let pid = |row: &Row| index.tasks[row.place].pid;
    let mut order: HashMap<usize, usize> = HashMap::new();
    for (place, row) in rows.iter().enumerate() {
        let at = pid(row).map_or(place, |pid| *first.entry(pid).or_insert(place));
        order.insert(row.place, at);
    }
    rows.sort_by_key(|row| order.get(&row.place).copied());
}
