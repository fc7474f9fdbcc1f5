//! What the tables of periods are called, and their columns.

use crate::reports::columns::{AVG_DURATION, MAX_DURATION, MIN_DURATION};
use crate::reports::table::{Column, Kind, TableClass};

const PERIODS: &[Column] = &[
    Column::new("begin_ts", "Period begin timestamp", Kind::Time),
    Column::new("end_ts", "Period end timestamp", Kind::Time),
    Column::new("duration", "Period duration", Kind::Duration),
    Column::new("name", "Period name", Kind::Text),
    Column::new("begin_captures", "Begin captures", Kind::Text),
    Column::new("end_captures", "End captures", Kind::Text),
];
pub(super) const LOG: TableClass = TableClass {
    name: "log",
    title: "Period log",
    columns: PERIODS,
};
pub(super) const TOP: TableClass = TableClass {
    name: "top",
    title: "Period top",
    columns: PERIODS,
};
const NAME: Column = Column::new("name", "Period name", Kind::Text);
const PARENT: Column = Column::new("parent", "Parent", Kind::Text);
const STDEV: Column = Column::new(
    "stdev_duration",
    "Period duration standard deviation",
    Kind::Duration,
);
const COUNT: Column = Column::count("count", "Period count", "occurences");
const RUNTIME: Column = Column::new("runtime", "Total runtime", Kind::Duration);
pub(super) const PER_PERIOD: TableClass = TableClass {
    name: "per_period_stats",
    title: "Period statistics",
    columns: &[
        NAME,
        COUNT,
        MIN_DURATION,
        AVG_DURATION,
        MAX_DURATION,
        STDEV,
        RUNTIME,
    ],
};
pub(super) const PARENT_STATS: TableClass = TableClass {
    name: "per_parent_stats",
    title: "Per-parent period duration statistics",
    columns: &[
        NAME,
        PARENT,
        MIN_DURATION,
        AVG_DURATION,
        MAX_DURATION,
        STDEV,
    ],
};
const NUMBERS: &[Column] = &[
    NAME,
    PARENT,
    Column::count("min", "Minimum", "occurences"),
    Column::count("avg", "Average", "occurences"),
    Column::count("max", "Maximum", "occurences"),
    Column::new("stdev", "Standard deviation", Kind::Duration),
];
pub(super) const PARENT_COUNT: TableClass = TableClass {
    name: "per_parent_count",
    title: "Per-parent period count statistics",
    columns: NUMBERS,
};
pub(super) const PARENT_RATIO: TableClass = TableClass {
    name: "per_parent_percentage",
    title: "Per-parent duration ratio",
    columns: NUMBERS,
};
pub(super) const FREQ_DURATION: TableClass = TableClass {
    name: "freq_duration",
    title: "Period duration frequency distribution",
    columns: &[
        Column::new("lower", "Duration (lower bound)", Kind::Duration),
        Column::new("upper", "Duration (upper bound)", Kind::Duration),
        Column::count("count", "Period duration", "us"),
    ],
};
pub(super) const FREQ_COUNT: TableClass = TableClass {
    name: "freq_count",
    title: "Period count frequency distribution",
    columns: &[
        Column::new("lower", "Count (lower bound)", Kind::Number),
        Column::new("upper", "Count (upper bound)", Kind::Number),
        Column::count("count", "Period count", "count"),
    ],
};
pub(super) const FREQ_RATIO: TableClass = TableClass {
    name: "freq_ratio",
    title: "Period usage ratio frequency distribution",
    columns: &[
        Column::new("lower", "Ratio (lower bound)", Kind::Number),
        Column::new("upper", "Ratio (upper bound)", Kind::Number),
        Column::count("count", "Period usage ratio", "%"),
    ],
};
pub(super) const AGGREGATED: TableClass = TableClass {
    name: "aggregated_stats",
    title: "Aggregated log",
    columns: &[
        Column::new("parent_name", "Parent period name", Kind::Text),
        Column::new("parent_begin_ts", "Parent begin timestamp", Kind::Time),
        Column::new("parent_end_ts", "Parent end timestamp", Kind::Time),
        Column::new("child_name", "Child period name", Kind::Text),
        COUNT,
        MIN_DURATION,
        AVG_DURATION,
        MAX_DURATION,
        STDEV,
        RUNTIME,
        Column::new("parent_captures", "Parent captures", Kind::Text),
    ],
};
pub(super) const TREE: TableClass = TableClass {
    name: "tree",
    title: "Period tree",
    columns: &[NAME, Column::new("level", "Level", Kind::Number)],
};

/// All of them that a report of periods may have.
pub(super) const CLASSES: &[&TableClass] = &[
    &LOG,
    &TOP,
    &PER_PERIOD,
    &FREQ_DURATION,
    &FREQ_COUNT,
    &FREQ_RATIO,
    &PARENT_STATS,
    &PARENT_COUNT,
    &PARENT_RATIO,
    &AGGREGATED,
];
