//! Cells of tables, as the page has them.

use timeline::Index;
use views::reports::{Cell as Found, Kind};

use crate::answers::{Cell, IrqCell, ProcessCell, Range};

/// What the numbers of a kind of columns are.
pub(crate) fn unit(kind: Kind) -> &'static str {
    match kind {
        Kind::Duration => "ns",
        Kind::Time => "time",
        Kind::Size => "bytes",
        Kind::Ratio => "share",
        _ => "",
    }
}

/// A cell; times are after the trace's first event.
pub(crate) fn told(cell: &Found, index: &Index) -> Cell {
    let after = |wall_ns: i64| wall_ns.saturating_sub(index.begin_ns);
    match cell {
        Found::Bool(truth) => Cell::Truth(*truth),
        Found::Count(count) | Found::Size(count) => Cell::Count(*count),
        Found::Number(number) | Found::Duration(number) | Found::Fd(number) => {
            Cell::Number(*number)
        }
        Found::Time(wall_ns) => Cell::Number(after(*wall_ns)),
        Found::Float(number) | Found::Ratio(number) => Cell::Float(*number),
        Found::DurationFloat(ns) => Cell::Number(ns.round() as i64),
        Found::Text(text)
        | Found::Syscall(text)
        | Found::Path(text)
        | Found::Disk(text)
        | Found::NetIf(text) => Cell::Text(text.clone()),
        Found::Range(begin_ns, end_ns) => Cell::Range(Range {
            begin_ns: after(*begin_ns),
            end_ns: after(*end_ns),
        }),
        Found::Process { name, tid, pid } => Cell::Process(ProcessCell {
            name: name.clone(),
            tid: *tid,
            pid: *pid,
        }),
        Found::Irq { hard, nr, name } => Cell::Irq(IrqCell {
            hard: *hard,
            nr: *nr,
            name: name.clone(),
        }),
        Found::Cpu(cpu) => Cell::Count(u64::from(*cpu)),
        _ => Cell::Nothing,
    }
}
