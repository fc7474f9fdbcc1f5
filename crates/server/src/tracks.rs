//! Which tracks there are, in what order, and how the time of each went.

use std::cmp::Reverse;
use std::collections::HashMap;

use event::Result;
use timeline::{Index, Kind, Series, Track, UserTrack, UserWhat};

use crate::answers::{TrackRow, Tracks, User};
use crate::api::{facts, is_meant, range};
use crate::events::ROWS_MAX;
use crate::question::Words;
use crate::view::View;

/// Kinds of tracks; what a question asks for that says none stands first, here and below.
const KINDS: [&str; 5] = ["cpu", "thread", "frequency", "idle", "user"];
/// What threads are sorted by.
const SORTS: [&str; 6] = ["run", "waits", "blocked", "prio", "name", "tid"];
/// What stands together.
const GROUPS: [&str; 2] = ["", "process"];

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
        let kind = words.one_of("kind", &KINDS)?;
        let sorted_by = words.one_of("sort", &SORTS)?;
        let group = words.one_of("group", &GROUPS)?;
        let of_numbers = match kind {
            "frequency" => Some(("f", &index.frequencies)),
            "idle" => Some(("i", &index.idle_states)),
            "user" => return Ok(users(&index, words.text("search"), offset, limit)),
            _ => None,
        };
        if let Some((kind, all)) = of_numbers {
            return Ok(of_cpus(kind, all, offset, limit));
        }
        if kind != "thread" {
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
        sort(&mut rows, sorted_by, &index);
        if group == "process" {
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
        user: None,
    }
}

/// A row of a track that has no time by kind.
fn plain(id: String) -> TrackRow {
    let nothing = Row {
        sums: [0; Kind::COUNT],
        place: 0,
    };
    told(&nothing, id, None)
}

/// Tracks of numbers of those CPUs that have some.
fn of_cpus(kind: &str, all: &[Series], offset: usize, limit: usize) -> Tracks {
    let known = all.iter().enumerate();
    let known: Vec<usize> = known
        .filter(|(_, series)| !series.is_empty())
        .map(|(cpu, _)| cpu)
        .collect();
    let some = known.iter().skip(offset).take(limit);
    Tracks {
        total: known.len(),
        tracks: some.map(|cpu| plain(format!("{kind}{cpu}"))).collect(),
    }
}

/// Tracks of what applications did in the threads that a search means.
fn users(index: &Index, search: &str, offset: usize, limit: usize) -> Tracks {
    let search = search.to_lowercase();
    // The last task of a number is the one that most events are of.
    let tasks = index.tasks.iter().enumerate();
    let by_tid: HashMap<i32, usize> = tasks.map(|(place, task)| (task.tid, place)).collect();
    let user = |track: &UserTrack| {
        let task = by_tid.get(&track.tid).copied();
        let of_kernel = || task.map(|place| index.tasks[place].comm.clone());
        let name = match track.comm.is_empty() {
            true => of_kernel().unwrap_or_default(),
            false => track.comm.clone(),
        };
        let told = User {
            tid: track.tid,
            pid: track.pid,
            name,
            lane: match track.what {
                UserWhat::Events(_) => None,
                UserWhat::Spans(lane, _) => Some(lane),
            },
        };
        (told, task)
    };
    let all = index.users.iter().enumerate();
    let all = all.map(|(place, track)| (place, user(track)));
    let is_meant =
        |told: &User| told.name.to_lowercase().contains(&search) || told.tid.to_string() == search;
    let meant: Vec<_> = all.filter(|(_, (told, _))| is_meant(told)).collect();
    let total = meant.len();
    let some = meant.into_iter().skip(offset).take(limit);
    let tracks = some.map(|(place, (told, task))| TrackRow {
        task,
        facts: task.and_then(|task| facts(index, task as u64)),
        user: Some(told),
        ..plain(format!("u{place}"))
    });
    Tracks {
        total,
        tracks: tracks.collect(),
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
