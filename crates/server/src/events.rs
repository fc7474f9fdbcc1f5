//! Rows of the table of events: any part of it, filtered or not.

use event::{Error, ErrorKind, Instant, Result, TimeRange};
use expr::{Expr, Filter};
use report::{EventBodies, EventLines, EventNames, EventOrigin, EventTextOptions};
use timeline::Index;
use trace::{Cursor, EventView, Item};

use crate::answers::{EventRow, Events, Marks, RowAt};
use crate::columns::Columns;
use crate::matches::Matches;
use crate::view::View;

/// Rows of one answer.
pub(crate) const ROWS_MAX: i64 = 1000;
/// Events that match, at most; behind them a filter is taken to match no more, and says so.
const MATCHES_MAX: usize = 4_000_000;
/// A filter's length.
const FILTER_BYTES_MAX: usize = 4096;
/// Of an event's text so much is sent.
const TEXT_BYTES_MAX: usize = 2048;
/// From one match to the next this far: walk on; farther: seek.
const WALK_ON_EVENTS: u64 = 16_384;

/// Rows that are asked for: all events, or those that match.
enum Rows<'a> {
    All(u64),
    Matching(&'a Matches),
}

impl Rows<'_> {
    fn total(&self) -> u64 {
        match self {
            Rows::All(events) => *events,
            Rows::Matching(matches) => matches.rows.len() as u64,
        }
    }

    fn event(&self, row: u64) -> Option<u64> {
        match self {
            Rows::All(events) => (row < *events).then_some(row),
            Rows::Matching(matches) => {
                let event = matches.rows.get(usize::try_from(row).ok()?)?;
                Some(u64::from(*event))
            }
        }
    }
}

impl View {
    /// Rows of the table from `first` on.
    pub(crate) fn events(
        &self,
        filter: &str,
        mut columns: Columns<'_>,
        first: u64,
        count: usize,
    ) -> Result<Events> {
        let index = self.index();
        let matches = self.matching(filter)?;
        let rows = match &matches {
            Some(matches) => Rows::Matching(matches),
            None => Rows::All(index.events),
        };
        let wanted = (first..first.saturating_add(count as u64)).map_while(|row| {
            let event = rows.event(row)?;
            Some((row, event))
        });
        let mut found = Vec::new();
        let mut walk: Option<Walk<'_>> = None;
        for (row, event) in wanted {
            let near = walk
                .take()
                .filter(|walk| walk.next <= event && event - walk.next <= WALK_ON_EVENTS);
            let Some(mut here) = near.or_else(|| Walk::to(self, &index, event)) else {
                break;
            };
            let Some(value) = here.read(self, &index, event, &mut columns)? else {
                break;
            };
            found.push(EventRow { row, ..value });
            walk = Some(here);
        }
        Ok(Events {
            total: rows.total(),
            cut: matches.as_ref().is_some_and(|matches| matches.cut),
            rows: found,
        })
    }

    /// The first row at an instant or later, and how many rows there are.
    pub(crate) fn row_at(&self, filter: &str, at_ns: i64) -> Result<RowAt> {
        let index = self.index();
        let (mut event, from_ns, skip) = index.checkpoint_before(at_ns);
        let mut cursor = self.cursor_from(from_ns);
        let mut passed = 0;
        while let Some(item) = cursor.next()? {
            let Item::Event(view) = item else { continue };
            passed += 1;
            if passed <= skip {
                continue;
            }
            if self.trace.wall_ns(view.time()) >= at_ns || event >= index.events {
                break;
            }
            event += 1;
        }
        let matches = self.matching(filter)?;
        let (row, total) = match &matches {
            Some(matches) => {
                let row = matches.rows.partition_point(|row| u64::from(*row) < event);
                (row as u64, matches.rows.len() as u64)
            }
            None => (event, index.events),
        };
        Ok(RowAt { row, total })
    }

    /// How many events match a filter in each column of a range; none for the empty filter.
    pub(crate) fn marks_of(
        &self,
        filter: &str,
        range: (i64, i64),
        columns: usize,
    ) -> Result<Marks> {
        let matches = self.matching(filter)?;
        let counts = matches.as_ref().map(|found| found.counts(range, columns));
        Ok(Marks {
            total: matches.as_ref().map_or(0, |found| found.rows.len()),
            cut: matches.as_ref().is_some_and(|found| found.cut),
            counts: counts.unwrap_or_default(),
        })
    }

    fn cursor_from(&self, wall_ns: i64) -> Cursor<'_> {
        let offset_ns = self.trace.info().wall_offset.as_ns();
        self.trace.cursor(TimeRange {
            begin: Instant::from_ns(wall_ns.saturating_sub(offset_ns)),
            end: Instant::MAX,
        })
    }

    /// The events that match; none for the empty filter.
    fn matching(&self, filter: &str) -> Result<Option<std::sync::Arc<Matches>>> {
        if filter.is_empty() {
            return Ok(None);
        }
        bounded(filter)?;
        let made = self.matches.get(filter, || self.find_matches(filter))?;
        Ok(Some(made))
    }

    fn find_matches(&self, text: &str) -> Result<Matches> {
        let expr = Expr::parse(text)?;
        let expr = expr.naming_functions(|meant| self.trace.symbols().ranges(meant));
        let mut filter = Filter::new(&expr, self.trace.classes())?;
        let mut matches = Matches {
            rows: Vec::new(),
            times_ns: Vec::new(),
            cut: false,
        };
        let mut cursor = self.trace.cursor(TimeRange::ALL);
        let mut row = 0u64;
        while let Some(item) = cursor.next()? {
            match item {
                Item::Event(event) => {
                    let is_meant = filter.wants(event.class()) && filter.matches(&event);
                    if let (true, Ok(row)) = (is_meant, u32::try_from(row)) {
                        matches.rows.push(row);
                        matches.times_ns.push(self.trace.wall_ns(event.time()));
                    }
                    row += 1;
                }
                Item::Lost(lost) => filter.lost(lost.cpu),
                Item::Damage(_) => {}
            }
            if matches.rows.len() >= MATCHES_MAX || row > u64::from(u32::MAX) {
                matches.cut = true;
                break;
            }
        }
        Ok(matches)
    }
}

/// Refuses a filter that is too long to be one.
pub(crate) fn bounded(filter: &str) -> Result<()> {
    if filter.len() <= FILTER_BYTES_MAX {
        return Ok(());
    }
    let error = Error::new(ErrorKind::InvalidInput, "the filter is too long");
    let found = format!("{} bytes", filter.len());
    Err(error
        .found(found)
        .fix(format!("keep it below {FILTER_BYTES_MAX}")))
}

/// A walk on its way from row to row.
struct Walk<'a> {
    cursor: Cursor<'a>,
    bodies: EventBodies<'a>,
    /// The row of the event that comes next.
    next: u64,
}

impl<'a> Walk<'a> {
    /// A walk that begins at the checkpoint before an event.
    fn to(view: &'a View, index: &Index, event: u64) -> Option<Walk<'a>> {
        let (from_ns, skip) = index.place_of(event)?;
        let options = EventTextOptions {
            origin: EventOrigin::NONE,
            names: EventNames::default(),
            ..EventTextOptions::default()
        };
        Some(Walk {
            cursor: view.cursor_from(from_ns),
            bodies: EventBodies::new(&view.trace, options),
            next: event.checked_sub(skip)?,
        })
    }

    fn read(
        &mut self,
        view: &View,
        index: &Index,
        wanted: u64,
        columns: &mut Columns<'_>,
    ) -> Result<Option<EventRow>> {
        while let Some(item) = self.cursor.next()? {
            let Item::Event(event) = item else { continue };
            self.next += 1;
            if self.next > wanted {
                let cells = columns.cells(&event).into_iter();
                let cells = cells.map(|cell| cell.map(|cell| cut(&cell))).collect();
                let found = row(view, index, &mut self.bodies, &event);
                return Ok(Some(EventRow { cells, ..found }));
            }
        }
        Ok(None)
    }
}

fn row(
    view: &View,
    index: &Index,
    bodies: &mut EventBodies<'_>,
    event: &EventView<'_>,
) -> EventRow {
    let class = view.trace.classes().get(event.class().0 as usize);
    let name = class.map_or("", |class| &*class.name);
    let mut lines = EventLines::default();
    bodies.write(event, &mut lines);
    let text = String::from_utf8_lossy(lines.text()).into_owned();
    let text = text.trim_end();
    let text = text.strip_prefix(name).unwrap_or(text);
    let text = text.strip_prefix(':').unwrap_or(text).trim_start();
    let wall_ns = view.trace.wall_ns(event.time());
    EventRow {
        row: 0,
        time_ns: wall_ns.saturating_sub(index.begin_ns),
        cpu: event.cpu().map(|cpu| cpu.0),
        name: cut(name),
        text: cut(text),
        cells: Vec::new(),
    }
}

/// What is too long is cut, and says so.
fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes)", &text[..end], text.len())
}
