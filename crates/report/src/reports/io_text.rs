//! Files, disks and network as text.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::bars::{Bar, bars, distribution, size};
use super::calendar::Calendar;
use super::cells::{count, name, ns, us};
use super::page::{LogSoFar, Page};

pub(super) fn write(page: &Page<'_>, so_far: &mut LogSoFar, out: &mut String) {
    usage(page, out);
    stats(page, out);
    for table in page.tables("top-syscall") {
        requests(table, page, so_far, out);
    }
    for table in page.tables("freq") {
        let of = table.subtitle.as_deref().unwrap_or_default();
        distribution(&format!("{} {of}", table.class.title), "µs", table, out);
    }
    for table in page.tables("log") {
        requests(table, page, so_far, out);
    }
}

fn usage(page: &Page<'_>, out: &mut String) {
    for (table, title) in page.tables("per-process-top").zip(["Read", "Write"]) {
        per_process(table, title, out);
    }
    for (table, title) in page.tables("per-file-top").zip(["Read", "Write"]) {
        let title = format!("Per-file I/O {title}");
        sizes(table, (&title, "Path"), "path", called, out);
    }
    for (table, title) in page.tables("per-process-top-block").zip(["Read", "Write"]) {
        let label = |cell: &Cell| {
            let process = match name(cell) {
                "" => "unknown",
                name => name,
            };
            format!("{process} (pid={})", pid(cell))
        };
        let title = format!("Block I/O {title}");
        sizes(table, (&title, "Process"), "process", label, out);
    }
    disks(page, out);
    for (table, title) in page.tables("per-netif-top").zip(["Received", "Sent"]) {
        let title = format!("Network {title} Bytes");
        sizes(table, (&title, "Interface"), "netif", called, out);
    }
}

fn called(cell: &Cell) -> String {
    name(cell).to_owned()
}

/// Bars of sizes, each called by the cell with this key.
fn sizes(
    table: &Table,
    (title, header): (&str, &str),
    key: &str,
    label: impl Fn(&Cell) -> String,
    out: &mut String,
) {
    let cells = table.cells([key, "size"]);
    let rows: Vec<Bar> = cells.map(|[of, bytes]| sized(bytes, label(of))).collect();
    bars(title, header, &rows, out);
}

fn sized(bytes: &Cell, label: String) -> Bar {
    Bar {
        value: count(bytes) as f64,
        text: size(count(bytes)),
        label,
    }
}

fn per_process(table: &Table, title: &str, out: &mut String) {
    let keys = ["process", "size", "disk_size", "net_size", "unknown_size"];
    let bar = |[process, bytes, disk, net, unknown]: [&Cell; 5]| {
        let process = format!("{} ({})", name(process), pid(process));
        let [disk, net, unknown] = [disk, net, unknown].map(|bytes| size(count(bytes)));
        let label = format!("{process:<25} {disk:>10} {net:>10} {unknown:>10}");
        sized(bytes, label)
    };
    let rows: Vec<Bar> = table.cells(keys).map(bar).collect();
    let header = format!(
        "{:<25} {:<10} {:<10} {:<10}",
        "Process", "Disk", "Net", "Unknown"
    );
    bars(&format!("Per-process I/O {title}"), &header, &rows, out);
}

fn pid(cell: &Cell) -> String {
    match cell {
        Cell::Process { pid: Some(pid), .. } => pid.to_string(),
        Cell::Process { tid: Some(tid), .. } => format!("unknown (tid={tid})"),
        _ => "unknown".to_owned(),
    }
}

fn disks(page: &Page<'_>, out: &mut String) {
    for (class, title, unit) in [
        (
            "per-disk-top-sector",
            "Disk Requests Sector Count",
            "sectors",
        ),
        ("per-disk-top-request", "Disk Request Count", "requests"),
    ] {
        let bar = |[disk, requests]: [&Cell; 2]| Bar {
            value: count(requests) as f64,
            text: format!("{} {unit}", count(requests)),
            label: called(disk),
        };
        let rows: Vec<Bar> = page.cells(class, ["disk", "count"]).map(bar).collect();
        bars(title, "Disk", &rows, out);
    }
    let bar = |[disk, mean]: [&Cell; 2]| {
        let ms = ns(mean) / 1_000_000.0;
        Bar {
            value: ms,
            text: format!("{ms:.2} ms"),
            label: called(disk),
        }
    };
    let means = page.cells("per-disk-top-rps", ["disk", "rtps"]);
    let rows: Vec<Bar> = means.map(bar).collect();
    bars("Disk Request Average Latency", "Disk", &rows, out);
}

const STATS: [&str; 6] = [
    "obj",
    "count",
    "min_latency",
    "avg_latency",
    "max_latency",
    "stdev_latency",
];

fn stats(page: &Page<'_>, out: &mut String) {
    let line = |cells: [&str; 6], out: &mut String| {
        let [what, count, min, average, max, deviation] = cells;
        let _ = writeln!(
            out,
            "{what:<14} {count:>14} {min:>14} {average:>14} {max:>14} {deviation:>14}"
        );
    };
    for (class, title, first) in [
        (
            "syscall-latency-stats",
            "Syscalls latency statistics",
            "Type",
        ),
        ("disk-latency-stats", "Disk latency statistics", "Name"),
    ] {
        let mut rows = page.cells(class, STATS).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "\n{title} (usec):");
        line([first, "Count", "Min", "Average", "Max", "Stdev"], out);
        let _ = writeln!(out, "{:-<89}", "");
        for [of, requests, min, average, max, deviation] in rows {
            let [min, average, max, deviation] = [min, average, max, deviation].map(us);
            let count = count(requests).to_string();
            line([name(of), &count, &min, &average, &max, &deviation], out);
        }
    }
}

fn requests(table: &Table, page: &Page<'_>, so_far: &mut LogSoFar, out: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    if page.begins(table) {
        requests_head(table, out);
        so_far.has_outside = false;
    }
    for row in table.cells(REQUEST) {
        so_far.has_outside |= request(row, page.calendar, out);
    }
    if page.ends(table) && so_far.has_outside {
        let note = "*: Syscalls started and/or completed outside of the range specified";
        let _ = writeln!(out, "{note}");
    }
}

fn requests_head(table: &Table, out: &mut String) {
    let of = table.subtitle.as_deref().unwrap_or("None");
    let _ = writeln!(out, "\n{} {of} (usec)", table.class.title);
    let _ = writeln!(
        out,
        "{:<20} {:<20} {:<16} {:<23} {:<5} {:<24} {:<8} {:<14}",
        "Begin", "End", "Name", "Duration (usec)", "Size", "Proc", "PID", "Filename"
    );
}

const REQUEST: [&str; 8] = [
    "time_range",
    "out_of_range",
    "duration",
    "syscall",
    "size",
    "process",
    "path",
    "fd",
];

/// Writes a request; whether it lies outside of the range that was asked for.
fn request(row: [&Cell; 8], calendar: Calendar, out: &mut String) -> bool {
    let [range, outside, duration, call, bytes, process, path, fd] = row;
    let is_outside = *outside == Cell::Bool(true);
    let (Cell::Range(begin_ns, end_ns), Cell::Process { tid, .. }) = (range, process) else {
        return is_outside;
    };
    let mark = if is_outside { '*' } else { ' ' };
    let range = format!("{}{mark}", calendar.range(*begin_ns, *end_ns));
    let duration = format!("{}{mark}", us(duration));
    let size = match bytes {
        Cell::Size(bytes) => size(*bytes),
        _ => "N/A".to_owned(),
    };
    let file = match (path, fd) {
        (Cell::Path(path), Cell::Fd(fd)) => format!("{path} (fd={fd})"),
        (_, Cell::Fd(fd)) => format!("unknown (fd={fd})"),
        _ => "N/A".to_owned(),
    };
    let (call, process, tid) = (name(call), name(process), tid.unwrap_or(0));
    let _ = writeln!(
        out,
        "{range:<40} {call:<16} {duration:>16} {size:>11}  {process:<24} {tid:<8} {file:<14}"
    );
    is_outside
}
