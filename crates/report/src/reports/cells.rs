//! What a cell is in a text.

use views::reports::Cell;

/// A number of nanoseconds; zero when the cell is no duration.
pub(super) fn ns(cell: &Cell) -> f64 {
    match cell {
        Cell::Duration(ns) => *ns as f64,
        Cell::DurationFloat(ns) => *ns,
        _ => 0.0,
    }
}

/// Microseconds with three digits, `?` when nobody knows.
pub(super) fn us(cell: &Cell) -> String {
    match cell {
        Cell::Unknown => "?".to_owned(),
        cell => format!("{:.3}", ns(cell) / 1000.0),
    }
}

/// A count; zero when the cell is none.
pub(super) fn count(cell: &Cell) -> u64 {
    match cell {
        Cell::Count(count) | Cell::Size(count) => *count,
        _ => 0,
    }
}

/// The text of a cell that has a name.
pub(super) fn name(cell: &Cell) -> &str {
    match cell {
        Cell::Text(name)
        | Cell::Syscall(name)
        | Cell::Path(name)
        | Cell::Disk(name)
        | Cell::NetIf(name) => name,
        Cell::Process {
            name: Some(name), ..
        } => name,
        _ => "",
    }
}

/// As in `{'success': 8, 'EAGAIN': 2}`. Each count is one too high, as in lttng-analyses 0.6.1:
/// this is for those who compare.
pub(super) fn results(results: &[(String, u64)]) -> String {
    let one = |(name, count): &(String, u64)| format!("'{name}': {}", count + 1);
    let all: Vec<String> = results.iter().map(one).collect();
    format!("{{{}}}", all.join(", "))
}

/// `NAME (TID)`.
pub(super) fn thread(cell: &Cell) -> String {
    match cell {
        Cell::Process { tid: Some(tid), .. } => format!("{} ({tid})", name(cell)),
        _ => "Unknown (N/A)".to_owned(),
    }
}

/// A CPU's number; zero when the cell is none.
pub(super) fn cpu(cell: &Cell) -> u32 {
    match cell {
        Cell::Cpu(cpu) => *cpu,
        _ => 0,
    }
}

/// A share in percent; zero when the cell is none.
pub(super) fn percent(cell: &Cell) -> f64 {
    match cell {
        Cell::Ratio(share) => share * 100.0,
        _ => 0.0,
    }
}
