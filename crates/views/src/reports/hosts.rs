//! Packets that crossed between hosts, and how far apart the hosts' clocks are.

use super::columns::ERROR_AT_MOST;
use super::kind::{Answers, Lami, PLAIN, ReportKind};
use super::options::{ReportOptions, Views};
use super::table::{Cell, Column, Kind, Span, Table, TableClass};
use crate::hosts::{Crossing, Hosts, Link};

const CLOCKS: TableClass = TableClass {
    name: "clocks",
    title: "Clocks of hosts, by the packets between them",
    columns: &[
        Column::new("host_a", "Host A", Kind::Text),
        Column::new("host_b", "Host B", Kind::Text),
        Column::count("a_to_b", "A to B", "packets"),
        Column::count("b_to_a", "B to A", "packets"),
        Column::count("offset_begin", "B ahead of A at the begin", "ns"),
        Column::count("offset_end", "B ahead of A at the end", "ns"),
        Column::count("drift", "B's drift", "ns/s"),
        ERROR_AT_MOST,
        Column::new("problem", "Problem", Kind::Text),
    ],
};
const PACKETS: TableClass = TableClass {
    name: "packets",
    title: "Packets that were longest on their way",
    columns: &[
        Column::new("sent", "Sent", Kind::Time),
        Column::new("from", "From", Kind::Text),
        Column::new("to", "To", Kind::Text),
        Column::new("segment", "Packet", Kind::Text),
        Column::new("delay", "Delay", Kind::Duration),
        ERROR_AT_MOST,
    ],
};
const COUNTS: TableClass = TableClass {
    name: "counts",
    title: "TCP segments and UDP datagrams",
    columns: &[
        Column::count("crossed", "Seen on two hosts", "packets"),
        Column::count("alone", "Seen on one host alone", "packets"),
        Column::count(
            "ambiguous",
            "Left out: several have the same headers",
            "packets",
        ),
        Column::count("left_out", "Left out: no room", "packets"),
    ],
};
/// The report.
pub(super) static KIND: ReportKind = ReportKind {
    name: "hosts",
    reports: &[(
        "hosts",
        Views::ALWAYS,
        "packets between hosts, and how far apart their clocks are",
    )],
    classes: &[&CLOCKS, &COUNTS, &PACKETS],
    // Who asks for hosts is refused without their packets.
    needs: &[],
    lami: Lami {
        title: "Hosts",
        description: "Packets between hosts, and how far apart their clocks are",
        tags: &["net", "clock", "stats"],
    },
    answers: Answers::Packets,
    ..PLAIN
};

/// The tables of what was found in `span`.
pub(super) fn tables(hosts: &Hosts, options: &ReportOptions, span: Span) -> Vec<Table> {
    let mut clocks = span.table(&CLOCKS);
    clocks.rows = hosts
        .links
        .iter()
        .map(|link| clock_row(hosts, link))
        .collect();
    let mut counts = span.table(&COUNTS);
    let crossed = hosts.crossings.len() as u64;
    let cells = [crossed, hosts.alone, hosts.ambiguous, hosts.left_out];
    counts.rows.push(cells.map(Cell::Count).to_vec());
    let mut packets = span.table(&PACKETS);
    packets.rows = longest(hosts, options);
    vec![clocks, counts, packets]
}

fn name(hosts: &Hosts, host: usize) -> Cell {
    Cell::Text(hosts.names[host].clone())
}

fn clock_row(hosts: &Hosts, link: &Link) -> Vec<Cell> {
    let mut row = vec![name(hosts, link.a), name(hosts, link.b)];
    row.extend(link.packets.map(Cell::Count));
    row.extend(match &link.offset {
        Ok(offset) => [
            Cell::Number(offset.at_begin_ns),
            Cell::Number(offset.at_end_ns),
            Cell::Float(offset.drift_ns_per_s()),
            Cell::Duration(offset.error_ns),
            Cell::Empty,
        ],
        Err(problem) => [
            Cell::Unknown,
            Cell::Unknown,
            Cell::Unknown,
            Cell::Unknown,
            Cell::Text(problem.to_string()),
        ],
    });
    row
}

/// The packets that were longest on their way, by the clocks put right.
fn longest(hosts: &Hosts, options: &ReportOptions) -> Vec<Vec<Cell>> {
    type Delayed<'a> = (&'a Crossing, (i64, i64));
    let delayed = |one| Some((one, hosts.delay_ns(one)?));
    let mut known: Vec<Delayed<'_>> = hosts.crossings.iter().filter_map(delayed).collect();
    known.sort_by_key(|(_, (delay_ns, _))| std::cmp::Reverse(*delay_ns));
    if options.limit > 0 {
        known.truncate(options.limit);
    }
    let row = |(one, (delay_ns, error_ns)): &Delayed<'_>| {
        vec![
            Cell::Time(one.sent_ns),
            name(hosts, one.from),
            name(hosts, one.to),
            Cell::Text(one.key.to_string()),
            Cell::Duration(*delay_ns),
            Cell::Duration(*error_ns),
        ]
    };
    known.iter().map(row).collect()
}
