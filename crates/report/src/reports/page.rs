//! The tables of one tick, as forms of text look at them.

use views::reports::{Cell, Table, Tick, Views};

use super::calendar::Calendar;

/// The tables of one tick.
pub(super) struct Page<'a> {
    pub tick: &'a Tick,
    pub calendar: Calendar,
    /// Which of them were asked for.
    pub views: Views,
}

/// What the next part of a log has to know of those before.
#[derive(Debug, Default)]
pub(super) struct LogSoFar {
    /// How wide its columns are, where that hangs on what they hold.
    pub widths: Vec<usize>,
    /// Whether some of it lies outside of the range that was asked for.
    pub has_outside: bool,
}

impl<'a> Page<'a> {
    /// Whether a table begins here, and does not only go on.
    pub fn begins(&self, table: &Table) -> bool {
        let is = |first: &Table| std::ptr::eq(first, table);
        !(self.tick.continues && self.tick.tables.first().is_some_and(is))
    }

    /// Whether a table ends here.
    pub fn ends(&self, table: &Table) -> bool {
        let is = |last: &Table| std::ptr::eq(last, table);
        !(self.tick.goes_on && self.tick.tables.last().is_some_and(is))
    }

    /// All tables of a class.
    pub fn tables(&self, class: &'a str) -> impl Iterator<Item = &'a Table> {
        let of_class = move |table: &&Table| table.class.name == class;
        self.tick.tables.iter().filter(of_class)
    }

    /// The rows of the first table of a class: of each the cells with these keys.
    pub fn cells<const N: usize>(
        &self,
        class: &'a str,
        keys: [&str; N],
    ) -> impl Iterator<Item = [&'a Cell; N]> + use<'a, N> {
        let first = self.tables(class).next();
        let cells = first.map(|table| table.cells(keys));
        cells.into_iter().flatten()
    }
}
