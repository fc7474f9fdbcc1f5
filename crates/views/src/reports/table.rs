//! What a report finds: tables of typed cells, which say what they mean but not how they look.

use crate::periods::Captured;

/// The meaning of a cell, in the words of LAMI 1.0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// There is nothing to say.
    Empty,
    /// There is something, but nobody knows it.
    Unknown,
    /// A truth value.
    Bool(bool),
    /// A count.
    Count(u64),
    /// A number that may be negative, such as a priority.
    Number(i64),
    /// A number that counts nothing.
    Float(f64),
    /// A text.
    Text(String),
    /// A share, 1 for all.
    Ratio(f64),
    /// An instant, in nanoseconds since 1970 (UTC).
    Time(i64),
    /// A duration, in nanoseconds.
    Duration(i64),
    /// A duration that was computed, in nanoseconds.
    DurationFloat(f64),
    /// A size, in bytes.
    Size(u64),
    /// From an instant to another, in nanoseconds since 1970 (UTC).
    Range(i64, i64),
    /// A system call.
    Syscall(String),
    /// A thread or process.
    Process {
        /// Its name.
        name: Option<String>,
        /// Its thread group.
        pid: Option<i32>,
        /// Its thread id.
        tid: Option<i32>,
    },
    /// A path, or what a file is called that has none.
    Path(String),
    /// A file descriptor.
    Fd(i64),
    /// An interrupt.
    Irq {
        /// Whether it is a hardware interrupt.
        hard: bool,
        /// Its number, or the vector of a softirq.
        nr: i64,
        /// Its name.
        name: String,
    },
    /// A CPU.
    Cpu(u32),
    /// A disk.
    Disk(String),
    /// A network interface.
    NetIf(String),
    /// What was kept of a period.
    Captures(Captured),
    /// How often a call ended with each result, in the order of their appearance.
    Results(Vec<(String, u64)>),
}

impl Cell {
    /// A duration that may be missing.
    pub(crate) fn duration_or_unknown(ns: Option<f64>) -> Cell {
        ns.map_or(Cell::Unknown, Cell::DurationFloat)
    }
}

/// The kind of a column's cells: LAMI's name of their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Cell::Bool`].
    Bool,
    /// [`Cell::Count`], [`Cell::Number`] or [`Cell::Float`].
    Number,
    /// [`Cell::Text`] or [`Cell::Results`].
    Text,
    /// [`Cell::Ratio`].
    Ratio,
    /// [`Cell::Time`].
    Time,
    /// [`Cell::Duration`].
    Duration,
    /// [`Cell::Size`].
    Size,
    /// [`Cell::Range`].
    Range,
    /// [`Cell::Syscall`].
    Syscall,
    /// [`Cell::Process`].
    Process,
    /// [`Cell::Path`].
    Path,
    /// [`Cell::Fd`].
    Fd,
    /// [`Cell::Irq`].
    Irq,
    /// [`Cell::Cpu`].
    Cpu,
    /// [`Cell::Disk`].
    Disk,
    /// [`Cell::NetIf`].
    NetIf,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs.
    pub key: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What its cells are.
    pub kind: Kind,
    /// What they count.
    pub unit: Option<&'static str>,
}

impl Column {
    pub(crate) const fn new(key: &'static str, title: &'static str, kind: Kind) -> Column {
        let unit = None;
        Column {
            key,
            title,
            kind,
            unit,
        }
    }

    /// A column of numbers with their unit.
    pub(crate) const fn count(
        key: &'static str,
        title: &'static str,
        unit: &'static str,
    ) -> Column {
        Column {
            key,
            title,
            kind: Kind::Number,
            unit: Some(unit),
        }
    }
}

/// The name of the class of tables that tell the time of which nobody knows who had a CPU.
pub(super) const UNKNOWN_TIME: &str = "unknown";

/// What all tables of one kind share.
#[derive(Debug, PartialEq, Eq)]
pub struct TableClass {
    /// Its name, one of a kind within its report.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

impl TableClass {
    /// Where the column with this key stands in each row.
    pub fn place(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it holds.
    pub class: &'static TableClass,
    /// What sets it apart from others of its class.
    pub subtitle: Option<String>,
    /// The group that it speaks of, where a report has several.
    pub group: Option<String>,
    /// Its first instant, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Its last instant.
    pub end_ns: i64,
    /// Rows, each with a cell per column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Whether it tells the time of which nobody knows who had a CPU. It stands behind the tables
    /// of every report where there is such time.
    pub fn is_unknown_time(&self) -> bool {
        self.class.name == UNKNOWN_TIME
    }

    /// The rows, of each the cells with these keys, in this order. A cell that is not there is
    /// [`Cell::Empty`].
    pub fn cells<const N: usize>(
        &self,
        keys: [&str; N],
    ) -> impl Iterator<Item = [&Cell; N]> + use<'_, N> {
        let places = keys.map(|key| self.class.place(key));
        let rows = self.rows.iter();
        rows.map(move |row| {
            places.map(|place| {
                let cell = place.and_then(|place| row.get(place));
                cell.unwrap_or(&Cell::Empty)
            })
        })
    }
}

/// The window that a table speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Span {
    pub fn duration_ns(self) -> i64 {
        self.end_ns - self.begin_ns
    }

    /// An empty table over the window.
    pub fn table(self, class: &'static TableClass) -> Table {
        Table {
            class,
            subtitle: None,
            group: None,
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
            rows: Vec::new(),
        }
    }

    /// The same with a subtitle.
    pub fn subtable(self, class: &'static TableClass, subtitle: impl Into<String>) -> Table {
        Table {
            subtitle: Some(subtitle.into()),
            ..self.table(class)
        }
    }
}
