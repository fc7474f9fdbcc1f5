//! All reports of a pass as one page that needs nothing else: tables with their pictures.

use std::fmt::Write;

use analysis::reports::{Pass, Table, Tick};

use super::calendar::Calendar;
use super::grid::Grid;
use super::picture::picture;
use super::plain_text::title;
use crate::xml::escaped;

/// Rows of a table on the page; the text and the JSON have all.
const ROWS_MAX: usize = 500;

/// The page. `names` are those of the reports, `traces` what was read.
pub fn report_html(
    names: &[&str],
    traces: &str,
    ticks: &[Tick],
    pass: &Pass,
    calendar: Calendar,
) -> String {
    let mut out = String::new();
    let traces = escaped(traces);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width\">\n<title>{traces}</title>\n<style>\
         {STYLE}</style></head><body>\n<h1>{traces}</h1>\n<p>{} events{}</p>\n",
        pass.events,
        losses(pass)
    );
    contents(names, ticks, &mut out);
    for (place, tick) in ticks.iter().enumerate() {
        let name = names.get(tick.report).copied().unwrap_or_default();
        let range = calendar.with_dates().range(tick.begin_ns, tick.end_ns);
        let _ = writeln!(
            out,
            "<h2 id=\"t{place}\">{}</h2>\n<p>{range}</p>",
            escaped(name)
        );
        if tick.tables.iter().all(|table| table.rows.is_empty()) {
            out.push_str("<p>Nothing.</p>\n");
        }
        tick.tables
            .iter()
            .for_each(|table| write_table(table, calendar, &mut out));
    }
    out.push_str("</body></html>\n");
    out
}

fn losses(pass: &Pass) -> String {
    match (pass.holes, pass.damages) {
        (0, 0) => String::new(),
        (holes, damages) => format!(
            "; <b>{} lost in {holes} places, {damages} places could not be read</b>: counts are \
             lower bounds",
            pass.lost
        ),
    }
}

fn contents(names: &[&str], ticks: &[Tick], out: &mut String) {
    out.push_str("<nav>");
    for (place, tick) in ticks.iter().enumerate() {
        let name = names.get(tick.report).copied().unwrap_or_default();
        let _ = write!(out, "<a href=\"#t{place}\">{}</a> ", escaped(name));
    }
    out.push_str("</nav>\n");
}

fn write_table(table: &Table, calendar: Calendar, out: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", escaped(title(table)));
    if let Some(picture) = picture(table) {
        let _ = writeln!(out, "<figure>{}</figure>", picture.svg);
    }
    let grid = Grid::of(table, calendar);
    out.push_str("<details><summary>table</summary><table>\n<tr>");
    for (head, _) in &grid.heads {
        let _ = write!(out, "<th>{}</th>", escaped(head));
    }
    out.push_str("</tr>\n");
    for row in grid.rows.iter().take(ROWS_MAX) {
        out.push_str("<tr>");
        for ((_, is_number), cell) in grid.heads.iter().zip(row) {
            let class = if *is_number { " class=\"n\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    if table.rows.len() > ROWS_MAX {
        let rest = table.rows.len() - ROWS_MAX;
        let _ = writeln!(out, "<p>{rest} more rows are in the text and the JSON.</p>");
    }
    out.push_str("</details>\n");
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.3rem}h2{margin-top:3rem;border-bottom:1px solid #8888}h3{font-size:1rem}\
figure{margin:0;overflow-x:auto}svg{max-width:100%;height:auto}\
table{border-collapse:collapse;font-size:.85rem}th,td{padding:.15rem .6rem;text-align:left;\
border-bottom:1px solid #8884;white-space:nowrap}td.n{text-align:right;\
font-variant-numeric:tabular-nums}details{overflow-x:auto;margin:.5rem 0}\
nav a{margin-right:.8rem}";
