//! Files, disks and network as text.

use std::fmt::Write;

use views::reports::{Cell, Table};

use super::bars::{Bar, bars, size};
use super::calendar::Calendar;
use super::text::{LogSoFar, Page, count, distribution, name, ns, us};

pub(super) fn write(page: &Page<'_>, so_far: &mut LogSoFar, out: &mut String) {
    usage(page, out);
    stats(page, out);
    for table in page.tables("top-syscall") {
        requests(table, page, so_far, out);
    }
    for table in page.tables("freq") {
        let of = table.subtitle.as_deref().unwrap_or_default();
        distribution(&format!("{} {of}", table.class.title), table, out);
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
        let label = |row: &Vec<Cell>| name(&row[0]).to_owned();
        sizes(table, &title, "Path", label, out);
    }
    for (table, title) in page.tables("per-process-top-block").zip(["Read", "Write"]) {
        let label = |row: &Vec<Cell>| {
            let process = match name(&row[0]) {
                "" => "unknown",
                name => name,
            };
            format!("{process} (pid={})", pid(&row[0]))
        };
        sizes(table, &format!("Block I/O {title}"), "Process", label, out);
    }
    disks(page, out);
    for (table, title) in page.tables("per-netif-top").zip(["Received", "Sent"]) {
        let title = format!("Network {title} Bytes");
        let label = |row: &Vec<Cell>| name(&row[0]).to_owned();
        sizes(table, &title, "Interface", label, out);
    }
}

/// Bars of the sizes in the second column.
fn sizes(
    table: &Table,
    title: &str,
    header: &str,
    label: impl Fn(&Vec<Cell>) -> String,
    out: &mut String,
) {
    let bar = |row: &Vec<Cell>| Bar {
        value: count(&row[1]) as f64,
        text: size(count(&row[1])),
        label: label(row),
    };
    let rows: Vec<Bar> = table.rows.iter().map(bar).collect();
    bars(title, header, &rows, out);
}

fn per_process(table: &Table, title: &str, out: &mut String) {
    let label = |row: &Vec<Cell>| {
        let process = format!("{} ({})", name(&row[0]), pid(&row[0]));
        let [disk, net, unknown] = [2, 3, 4].map(|place| size(count(&row[place])));
        format!("{process:<25} {disk:>10} {net:>10} {unknown:>10}")
    };
    let header = format!(
        "{:<25} {:<10} {:<10} {:<10}",
        "Process", "Disk", "Net", "Unknown"
    );
    let title = format!("Per-process I/O {title}");
    sizes(table, &title, &header, label, out);
}

fn pid(cell: &Cell) -> String {
    match cell {
        Cell::Process { pid: Some(pid), .. } => pid.to_string(),
        Cell::Process { tid: Some(tid), .. } => format!("unknown (tid={tid})"),
        _ => "unknown".to_owned(),
    }
}

fn disks(page: &Page<'_>, out: &mut String) {
    let label = |row: &Vec<Cell>| name(&row[0]).to_owned();
    for (class, title, unit) in [
        (
            "per-disk-top-sector",
            "Disk Requests Sector Count",
            "sectors",
        ),
        ("per-disk-top-request", "Disk Request Count", "requests"),
    ] {
        let bar = |row: &Vec<Cell>| Bar {
            value: count(&row[1]) as f64,
            text: format!("{} {unit}", count(&row[1])),
            label: label(row),
        };
        let rows: Vec<Bar> = page.rows(class).iter().map(bar).collect();
        bars(title, "Disk", &rows, out);
    }
    let bar = |row: &Vec<Cell>| {
        let ms = ns(&row[1]) / 1_000_000.0;
        Bar {
            value: ms,
            text: format!("{ms:.2} ms"),
            label: label(row),
        }
    };
    let rows: Vec<Bar> = page.rows("per-disk-top-rps").iter().map(bar).collect();
    bars("Disk Request Average Latency", "Disk", &rows, out);
}

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
        let rows = page.rows(class);
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{title} (usec):");
        line([first, "Count", "Min", "Average", "Max", "Stdev"], out);
        let _ = writeln!(out, "{:-<89}", "");
        for row in rows {
            let [min, average, max, deviation] = [2, 3, 4, 5].map(|place| us(&row[place]));
            let count = count(&row[1]).to_string();
            line(
                [name(&row[0]), &count, &min, &average, &max, &deviation],
                out,
            );
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
    for row in &table.rows {
        request(row, page.calendar, out);
        so_far.has_outside |= row[1] == Cell::Bool(true);
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

fn request(row: &[Cell], calendar: Calendar, out: &mut String) {
    let (Cell::Range(begin_ns, end_ns), Cell::Process { tid, .. }) = (&row[0], &row[5]) else {
        return;
    };
    let mark = if row[1] == Cell::Bool(true) { '*' } else { ' ' };
    let range = format!("{}{mark}", calendar.range(*begin_ns, *end_ns));
    let duration = format!("{}{mark}", us(&row[2]));
    let size = match &row[4] {
        Cell::Size(bytes) => size(*bytes),
        _ => "N/A".to_owned(),
    };
    let file = match (&row[6], &row[7]) {
        (Cell::Path(path), Cell::Fd(fd)) => format!("{path} (fd={fd})"),
        (_, Cell::Fd(fd)) => format!("unknown (fd={fd})"),
        _ => "N/A".to_owned(),
    };
    let (call, process, tid) = (name(&row[3]), name(&row[5]), tid.unwrap_or(0));
    let _ = writeln!(
        out,
        "{range:<40} {call:<16} {duration:>16} {size:>11}  {process:<24} {tid:<8} {file:<14}"
    );
}
