//! Tables as pictures: SVG that stands alone or inside a page.

mod bars;
pub(crate) mod canvas;
mod flame;
mod plot;
mod scale;
mod strips;

use views::reports::{Column, Kind, Table};

use canvas::Canvas;

/// A picture and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// An `svg` element.
    pub svg: String,
}

/// The picture of a table; none for one that has too little to show.
pub fn picture(table: &Table) -> Option<Picture> {
    if table.rows.is_empty() {
        return None;
    }
    let title = super::plain_text::title(table);
    let mut canvas = Canvas::new(&title);
    match Shape::of(table)? {
        Shape::Flame => flame::draw(table, &mut canvas),
        Shape::Strips => strips::draw(table, &mut canvas),
        Shape::Histogram => bars::draw_histogram(table, &mut canvas),
        Shape::Plot { range, value } => plot::draw(table, range, value, &mut canvas),
        Shape::Bars { labels, value } => bars::draw(table, labels, value, &mut canvas),
    }
    let svg = canvas.finish();
    Some(Picture { title, svg })
}

/// The picture of a table that comes in parts, with no more of them than it shows.
#[derive(Debug)]
pub struct Drawing {
    table: Table,
}

impl Drawing {
    /// Of the table whose first part this is.
    pub fn new(part: &Table) -> Drawing {
        let mut drawing = Drawing {
            table: Table {
                rows: Vec::new(),
                subtitle: part.subtitle.clone(),
                group: part.group.clone(),
                ..*part
            },
        };
        drawing.add(part);
        drawing
    }

    /// Takes in the next part.
    pub fn add(&mut self, part: &Table) {
        match Shape::of(part) {
            None => {}
            Some(Shape::Plot { range, value }) => {
                self.table.rows.extend_from_slice(&part.rows);
                plot::thin(&mut self.table, range, value);
            }
            Some(_) => self.table.rows.extend_from_slice(&part.rows),
        }
    }

    /// The picture of all parts; none where they have too little to show.
    pub fn picture(&self) -> Option<Picture> {
        picture(&self.table)
    }
}

/// How a table is drawn: its columns say.
enum Shape {
    /// Stacks with their own time.
    Flame,
    /// A strip of time for each text of the first column.
    Strips,
    /// Lower bound, upper bound, count.
    Histogram,
    /// A value over time.
    Plot { range: usize, value: usize },
    /// A bar for each row, called by its first columns.
    Bars { labels: usize, value: usize },
}

impl Shape {
    fn of(table: &Table) -> Option<Shape> {
        let columns = table.class.columns;
        let kinds: Vec<Kind> = columns.iter().map(|column| column.kind).collect();
        let find = |wanted: &[Kind]| kinds.iter().position(|kind| wanted.contains(kind));
        if columns[0].key == "stack" {
            return Some(Shape::Flame);
        }
        if let [Kind::Text, Kind::Range, Kind::Ratio] = kinds[..] {
            return Some(Shape::Strips);
        }
        let is_bound = |column: &Column| column.key.ends_with("_lower");
        if kinds.len() == 3 && is_bound(&columns[0]) {
            return Some(Shape::Histogram);
        }
        if kinds[0] == Kind::Range || kinds[0] == Kind::Time {
            // The greatest of a stretch is what a peak shows in.
            let max = columns
                .iter()
                .position(|column| column.key.starts_with("max_"));
            let value = max.or_else(|| find(&[Kind::Duration, Kind::Size]))?;
            return Some(Shape::Plot { range: 0, value });
        }
        let labels = kinds
            .iter()
            .take_while(|kind| LABELS.contains(kind))
            .count();
        let value = find(&[Kind::Ratio])
            .or_else(|| find(&[Kind::Duration]))
            .or_else(|| find(&[Kind::Size]))
            .or_else(|| find(&[Kind::Number]))?;
        (labels > 0).then_some(Shape::Bars { labels, value })
    }
}

/// What a bar can be called.
const LABELS: &[Kind] = &[
    Kind::Process,
    Kind::Irq,
    Kind::Path,
    Kind::Disk,
    Kind::NetIf,
    Kind::Syscall,
    Kind::Text,
    Kind::Cpu,
];
