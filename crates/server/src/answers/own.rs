//! What the API answers by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::shape::{Declared, Key, Shape, answers};

answers! {
    own, open: false;

    /// How far the index is.
    Progress {
        /// All of the trace is in it.
        done: bool,
        /// Of the trace's time, 0 to 1.
        share: f64,
        /// Why it failed.
        error: Option<String>,
        /// It was kept from another time.
        from_cache: bool,
    }

    /// `info`: the trace, and how far the index is.
    Info {
        /// `rtscope.view`.
        schema: String,
        /// The API's version.
        version: u32,
        /// What was opened.
        name: String,
        /// The first event by the wall clock; as text, because JavaScript's numbers do not hold it.
        begin_wall_ns: String,
        /// The first event by the trace's clock, as text too.
        begin_trace_ns: String,
        /// From the first event to the last one.
        length_ns: i64,
        /// Events so far.
        events: u64,
        /// CPUs.
        cpus: usize,
        /// Tasks that were seen.
        tasks: usize,
        /// Wake-ups that led to a CPU.
        activations: usize,
        /// Handlers of interrupts and softirqs that ended.
        handlers: usize,
        /// System calls that returned.
        calls: usize,
        /// CPUs whose frequency was told.
        frequencies: usize,
        /// CPUs whose idle states were told.
        idle_states: usize,
        /// Tracks of what applications did.
        user_tracks: usize,
        /// Places at which events are missing.
        losses: usize,
        /// Stretches of bytes that could not be read.
        damages: u64,
        /// What the trace says of its machine and its tracer.
        environment: BTreeMap<String, String>,
        /// How far the index is.
        progress: Progress,
        /// The files are others than those that were opened.
        stale: bool,
        /// They are the same, but longer, or there are more: the trace is still recorded.
        grown: bool,
        /// How often the trace was read again since the server began.
        generation: u64,
    }

    /// Who a task is.
    Facts {
        /// Its place among the tasks.
        task: u64,
        /// Its name, from the trace: text of others.
        name: String,
        /// Its thread's id.
        tid: i32,
        /// Its process, where that is known.
        pid: Option<i32>,
        /// Its priority as people say it, where that is known.
        prio: Option<String>,
    }

    /// A track, and its time in the range.
    TrackRow {
        /// `c0`: a CPU; `t5`: a thread; `f0`, `i0`: frequency, idle states; `u3`: an application.
        id: String,
        /// The thread's place among the tasks.
        task: Option<usize>,
        /// How long it had a CPU.
        run_ns: u64,
        /// How long it waited for one.
        runnable_ns: u64,
        /// Its time by kind, in the order of the kinds of tiles.
        sums_ns: [u64; 7],
        /// Who it is.
        facts: Option<Facts>,
        /// Of a track of an application: its thread, and what is in it.
        user: Option<User>,
    }

    /// What is in a track of an application.
    User {
        /// The thread's id, as its events say it.
        tid: i32,
        /// Its process, where they say it.
        pid: Option<i32>,
        /// The thread's name, from its events or from the kernel's; empty where neither says it.
        name: String,
        /// The row of its spans, from 0 on; null of its events.
        lane: Option<u32>,
    }

    /// `tracks`: some of the tracks, in the order that was asked for.
    Tracks {
        /// How many there are of that kind.
        total: usize,
        /// Those that were asked for.
        tracks: Vec<TrackRow>,
    }

    /// `tasks`: who the tasks are that were asked for, in their order.
    Tasks {
        /// Null for one that is not there.
        tasks: Vec<Option<Facts>>,
    }

    /// Time of which events are missing.
    Loss {
        /// On this CPU; null: nobody knows on which.
        cpu: Option<u32>,
        /// From when.
        begin_ns: i64,
        /// Until when.
        end_ns: i64,
        /// How many, where the tracer counted them.
        count: Option<u64>,
        /// Why, for people.
        why: String,
    }

    /// `losses`: the first 10,000 places at which events are missing.
    Losses {
        /// How many places there are.
        total: usize,
        /// In the order of the trace.
        losses: Vec<Loss>,
    }

    /// A wake-up that led to a CPU, a handler or a system call.
    Late {
        /// When it ended.
        end_ns: i64,
        /// How long it took.
        latency_ns: i64,
        /// The task's place among the tasks; null of a handler.
        task: Option<u32>,
        /// Who that is.
        facts: Option<Facts>,
        /// The CPU on which it ended.
        cpu: u32,
        /// Which interrupt, softirq or system call, by number.
        what: u32,
        /// Its name; empty of a wake-up.
        name: String,
    }

    /// What those of one task, interrupt, softirq or system call took.
    Stat {
        /// Of a wake-up the task's place, else the number of what it is.
        key: u32,
        /// The name of an interrupt, a softirq or a system call.
        name: String,
        /// Who the task is.
        facts: Option<Facts>,
        /// How many.
        count: u64,
        /// The shortest.
        min_ns: i64,
        /// All together, divided by how many they are.
        mean_ns: i64,
        /// 99 of 100 take no longer.
        p99_ns_max: i64,
        /// The longest.
        max_ns: i64,
        /// All together.
        total_ns: i64,
    }

    /// Statistics, the one with the longest first.
    Stats {
        /// How many there are.
        total: usize,
        /// The first 500.
        rows: Vec<Stat>,
    }

    /// `latencies`: how many there are by time and length, and the longest.
    Latencies {
        /// How many end in the range.
        count: u64,
        /// Columns of time.
        columns: usize,
        /// The upper edge of each row of lengths.
        row_ends_ns: Vec<i64>,
        /// How many, a column behind the other, the shortest length first.
        counts: Vec<u32>,
        /// The longest of each column.
        longest: Vec<Option<Late>>,
        /// The longest of all, the longest first.
        worst: Vec<Late>,
        /// Where they were asked for.
        stats: Option<Stats>,
        /// Half take no longer.
        median_ns_max: i64,
        /// 99 of 100 take no longer.
        p99_ns_max: i64,
        /// 999 of 1000 take no longer.
        p999_ns_max: i64,
    }

    /// `moment`: in what a track was at an instant.
    Moment {
        /// The thread's system call.
        call: Option<Late>,
        /// The CPU's interrupt.
        irq: Option<Late>,
        /// The CPU's softirq.
        softirq: Option<Late>,
    }

    /// `marks`: how many events match a filter in each column.
    Marks {
        /// How many match in all.
        total: usize,
        /// There are more, which were not looked at.
        cut: bool,
        /// By column; none for the empty filter.
        counts: Vec<u32>,
    }

    /// A row of the table of events.
    EventRow {
        /// Its place in the table.
        row: u64,
        /// When.
        time_ns: i64,
        /// On which CPU, where the trace says so.
        cpu: Option<u32>,
        /// What happened.
        name: String,
        /// Its fields as text.
        text: String,
        /// The fields that were asked for as columns; null for one that it does not have.
        cells: Vec<Option<String>>,
    }

    /// `events`: rows of the table.
    Events {
        /// Rows in all.
        total: u64,
        /// More events match, which were not looked at.
        cut: bool,
        /// Those that were asked for.
        rows: Vec<EventRow>,
    }

    /// A counter.
    Counter {
        /// `event.field`.
        name: String,
        /// How many numbers it has.
        count: usize,
        /// The least.
        least: Option<i64>,
        /// The greatest.
        most: Option<i64>,
        /// There are more, which were not looked at.
        cut: bool,
        /// Why it cannot be had.
        error: Option<String>,
    }

    /// `counters`: what those are that were asked for.
    Counters {
        /// In their order.
        counters: Vec<Counter>,
    }

    /// `fields`: what can be asked for, 5,000 of each at most.
    Fields {
        /// `event.field` of each field that can be a counter.
        counters: Vec<String>,
        /// The names of fields, for columns of the table of events.
        columns: Vec<String>,
    }

    /// `names`: of events and spans of applications.
    Names {
        /// By the numbers in their tracks.
        names: Vec<String>,
    }

    /// `row`: where the table is at an instant.
    RowAt {
        /// The first row then or later.
        row: u64,
        /// Rows in all.
        total: u64,
    }

    /// A report that can be asked for.
    ReportName {
        /// Its name.
        name: String,
        /// What it says.
        about: String,
    }

    /// `reports`: which there are.
    Reports {
        /// Our own, and those of others.
        reports: Vec<ReportName>,
    }

    /// A stretch of time.
    Range {
        /// From when.
        begin_ns: i64,
        /// Until when.
        end_ns: i64,
    }

    /// A task in a table.
    ProcessCell {
        /// Its name.
        name: Option<String>,
        /// Its thread's id.
        tid: Option<i32>,
        /// Its process.
        pid: Option<i32>,
    }

    /// An interrupt or a softirq in a table.
    IrqCell {
        /// An interrupt.
        hard: bool,
        /// Its number.
        nr: i64,
        /// Its name.
        name: String,
    }

    /// A column of a table.
    ReportColumn {
        /// Its name for programs.
        key: String,
        /// Its name for people.
        title: String,
        /// `ns`, `time`, `bytes`, `share`, `number`, or nothing.
        unit: String,
    }

    /// A table of a report.
    ReportTable {
        /// Its name for programs.
        table: String,
        /// Its name for people.
        title: String,
        /// What of its kind it is about.
        of: Option<String>,
        /// Rows behind the last one.
        left_out: u64,
        /// Its columns.
        columns: Vec<ReportColumn>,
        /// A cell for each column.
        rows: Vec<Vec<Cell>>,
    }

    /// `report`: the tables of a report over a range.
    Report {
        /// Its name.
        report: String,
        /// What it says.
        about: String,
        /// Its tables.
        tables: Vec<ReportTable>,
    }
}

/// What a cell of a table holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Nothing is known.
    Nothing,
    /// Yes or no.
    Truth(bool),
    /// A number; the column's unit says of what.
    Count(u64),
    /// A number that may be negative.
    Number(i64),
    /// A number with a part behind the point.
    Float(f64),
    /// Text, of others perhaps.
    Text(String),
    /// A stretch of time.
    Range(Range),
    /// An interrupt or a softirq.
    Irq(IrqCell),
    /// A task.
    Process(ProcessCell),
}

impl Shape for Cell {
    fn name() -> String {
        "Cell".to_owned()
    }
}

impl Cell {
    /// What TypeScript calls all that a cell may be.
    pub(crate) const SHAPES: &str =
        "null | boolean | number | string | Range | ProcessCell | IrqCell";
}
