//! All reports of a pass as one page that needs nothing else: tables with their pictures.

use std::fmt::Write as _;
use std::io::{self, Read, Seek, Write};

use views::reports::{Pass, Table, Tick};

use super::calendar::Calendar;
use super::grid::Grid;
use super::picture::{Drawing, Picture, picture};
use super::plain_text::title;
use crate::xml::escaped;

/// Rows of a table on the page; the text and the JSON have all.
const ROWS_MAX: usize = 500;

/// A table of so many rows without a picture is open.
const OPEN_ROWS_MAX: usize = 20;

/// The page, which grows with what is found. What stands at its head is known last.
pub struct ReportHtml<'a, S> {
    /// Those of the reports.
    names: &'a [&'a str],
    calendar: Calendar,
    contents: String,
    windows: usize,
    body: S,
    /// The table that goes on.
    growing: Option<Growing>,
}

impl<'a, S: Read + Write + Seek> ReportHtml<'a, S> {
    /// `names` are those of the reports; the page below its head is kept in `body` until all is
    /// there.
    pub fn new(names: &'a [&'a str], calendar: Calendar, body: S) -> ReportHtml<'a, S> {
        ReportHtml {
            names,
            calendar,
            contents: String::new(),
            windows: 0,
            body,
            growing: None,
        }
    }

    /// Takes in what was found.
    ///
    /// # Errors
    /// As those of the body.
    pub fn tick(&mut self, tick: &Tick) -> io::Result<()> {
        let mut out = String::new();
        if !tick.continues {
            self.head(tick, &mut out);
        }
        let last = tick.tables.len().saturating_sub(1);
        for (place, table) in tick.tables.iter().enumerate() {
            let goes_on = tick.goes_on && place == last;
            match self.growing.take() {
                None if !goes_on => {
                    let count = table.rows.len();
                    write_table(table, count, picture(table), self.calendar, &mut out);
                }
                None => self.growing = Some(Growing::new(table)),
                Some(mut growing) => {
                    growing.add(table);
                    match goes_on {
                        true => self.growing = Some(growing),
                        false => growing.write(self.calendar, &mut out),
                    }
                }
            }
        }
        self.body.write_all(out.as_bytes())
    }

    fn head(&mut self, tick: &Tick, out: &mut String) {
        let name = self.names.get(tick.report).copied().unwrap_or_default();
        let (name, place) = (escaped(name), self.windows);
        self.windows += 1;
        let _ = write!(self.contents, "<a href=\"#t{place}\">{name}</a> ");
        let calendar = self.calendar.with_dates();
        let range = calendar.range(tick.begin_ns, tick.end_ns);
        let _ = writeln!(out, "<h2 id=\"t{place}\">{name}</h2>\n<p>{range}</p>");
        if tick.tables.iter().all(|table| table.rows.is_empty()) {
            out.push_str("<p>Nothing.</p>\n");
        }
    }

    /// Writes the page; `traces` are what was read.
    ///
    /// # Errors
    /// As those of `out` and of the body.
    pub fn finish(mut self, traces: &str, pass: &Pass, mut out: impl Write) -> io::Result<()> {
        let traces = escaped(traces);
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta \
             name=\"viewport\" content=\"width=device-width\">\n<title>{traces}</title>\n<style>\
             {STYLE}</style></head><body>\n<h1>{traces}</h1>\n<p>{} events{}</p>\n\
             <nav>{}</nav>\n",
            pass.events,
            losses(pass),
            self.contents
        )?;
        self.body.rewind()?;
        io::copy(&mut self.body, &mut out)?;
        out.write_all(b"</body></html>\n")?;
        out.flush()
    }
}

/// A table that comes in parts: its first rows, how many there are, its picture.
struct Growing {
    first: Table,
    count: usize,
    drawing: Drawing,
}

impl Growing {
    fn new(part: &Table) -> Growing {
        let mut first = part.clone();
        first.rows.truncate(ROWS_MAX);
        Growing {
            first,
            count: part.rows.len(),
            drawing: Drawing::new(part),
        }
    }

    fn add(&mut self, part: &Table) {
        let room = ROWS_MAX.saturating_sub(self.first.rows.len());
        let rows = part.rows.iter().take(room).cloned();
        self.first.rows.extend(rows);
        self.count += part.rows.len();
        self.drawing.add(part);
    }

    fn write(&self, calendar: Calendar, out: &mut String) {
        let picture = self.drawing.picture();
        write_table(&self.first, self.count, picture, calendar, out);
    }
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

/// The first rows of a table that has `count`.
fn write_table(
    table: &Table,
    count: usize,
    picture: Option<Picture>,
    calendar: Calendar,
    out: &mut String,
) {
    if table.rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", escaped(title(table)));
    // What no picture shows is seen at once, unless it is long.
    let open = match &picture {
        None if count <= OPEN_ROWS_MAX => " open",
        _ => "",
    };
    if let Some(picture) = picture {
        let _ = writeln!(out, "<figure>{}</figure>", picture.svg);
    }
    let grid = Grid::of(table, calendar);
    let _ = write!(out, "<details{open}><summary>table</summary><table>\n<tr>");
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
    if count > ROWS_MAX {
        let rest = count - ROWS_MAX;
        let _ = writeln!(
            out,
            "<p>{rest} of {count} rows are left out; without <code>--html</code>, or with \
             <code>--json</code>, all are shown.</p>"
        );
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use views::reports::{Cell, Column, Kind, TableClass};

    use super::*;

    const fn column(key: &'static str, kind: Kind) -> Column {
        Column {
            key,
            title: key,
            kind,
            unit: None,
        }
    }
    const LOG: TableClass = TableClass {
        name: "log",
        title: "All",
        columns: &[column("at", Kind::Time), column("took", Kind::Duration)],
    };
    const FACTS: TableClass = TableClass {
        name: "facts",
        title: "Facts",
        columns: &[column("known", Kind::Bool)],
    };

    fn table(class: &'static TableClass, rows: Vec<Vec<Cell>>) -> Table {
        Table {
            class,
            subtitle: None,
            group: None,
            begin_ns: 0,
            end_ns: 10_000,
            rows,
        }
    }

    #[test]
    fn a_long_log_is_drawn_whole_and_listed_in_part() {
        let part = |from: i64| {
            let rows = (from..from + 400).map(|ns| vec![Cell::Time(ns), Cell::Duration(ns)]);
            table(&LOG, rows.collect())
        };
        let tick = |tables, continues, goes_on| Tick {
            report: 0,
            begin_ns: 0,
            end_ns: 10_000,
            tables,
            continues,
            goes_on,
        };
        let facts = table(&FACTS, vec![vec![Cell::Bool(true)]]);
        let calendar = Calendar::default();
        let mut page = ReportHtml::new(&["any"], calendar, Cursor::new(Vec::new()));
        for tick in [
            tick(vec![facts, part(0)], false, true),
            tick(vec![part(400)], true, true),
            tick(vec![part(800)], true, false),
        ] {
            page.tick(&tick).expect("memory takes all");
        }
        let mut out = Vec::new();
        page.finish("a trace", &Pass::default(), &mut out)
            .expect("memory takes all");
        let text = String::from_utf8(out).expect("a page is UTF-8");
        assert_eq!(text.matches("<h3>").count(), 2);
        assert!(text.contains("<p>700 of 1200 rows are left out;"), "{text}");
        // The picture is that of the table in one part.
        let rows = [0, 400, 800].into_iter().flat_map(|from| part(from).rows);
        let whole = picture(&table(&LOG, rows.collect())).expect("a plot");
        assert!(text.contains(&whole.svg));
        // Only what has no picture is open.
        assert_eq!(text.matches("<details open>").count(), 1);
    }
}
