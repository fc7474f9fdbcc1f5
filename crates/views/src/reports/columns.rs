//! Columns that tables of several reports have: the same key, title and meaning in each.

use super::table::{Column, Kind};

pub(super) const CALLS: Column = Column::count("count", "Call count", "calls");
pub(super) const TIMES: Column = Column::count("count", "Times", "times");
pub(super) const MEAN: Column = Column::new("avg", "Mean", Kind::Duration);
pub(super) const MIN_DURATION: Column =
    Column::new("min_duration", "Minimum duration", Kind::Duration);
pub(super) const AVG_DURATION: Column =
    Column::new("avg_duration", "Average duration", Kind::Duration);
pub(super) const MAX_DURATION: Column =
    Column::new("max_duration", "Maximum duration", Kind::Duration);
pub(super) const CPU_ID: Column = Column::new("cpu", "CPU", Kind::Cpu);
pub(super) const DURATION: Column = Column::new("duration", "Duration", Kind::Duration);
pub(super) const DURATION_LOWER: Column =
    Column::new("duration_lower", "Duration (lower bound)", Kind::Duration);
pub(super) const DURATION_UPPER: Column =
    Column::new("duration_upper", "Duration (upper bound)", Kind::Duration);
pub(super) const ERROR_AT_MOST: Column = Column::new("error", "Error at most", Kind::Duration);
pub(super) const INTERRUPT: Column = Column::new("irq", "Interrupt", Kind::Irq);
pub(super) const LONGEST: Column = Column::new("longest", "Longest", Kind::Duration);
pub(super) const LONGEST_RANGE: Column =
    Column::new("longest_range", "Longest, from and to", Kind::Range);
pub(super) const PRIO_LIST: Column =
    Column::new("prio_list", "Chronological priorities", Kind::Text);
pub(super) const PROCESS: Column = Column::new("process", "Process", Kind::Process);
pub(super) const THREAD: Column = Column::new("process", "Thread", Kind::Process);
pub(super) const SHARE: Column = Column::new("share", "Share", Kind::Ratio);
pub(super) const SYSCALL: Column = Column::new("syscall", "System call", Kind::Syscall);
pub(super) const FROM_TO: Column = Column::new("time_range", "From and to", Kind::Range);
pub(super) const TIME_RANGE: Column = Column::new("time_range", "Time range", Kind::Range);
pub(super) const TOTAL: Column = Column::new("total", "In all", Kind::Duration);
pub(super) const WHAT: Column = Column::new("what", "What", Kind::Text);
pub(super) const WOKEN_BY: Column = Column::new("woken_by", "Woken by", Kind::Text);
