//! A walk that owns what it reads: the trace stays open as long as somebody walks over it.

use std::sync::Arc;

use event::{Error, Instant, Result, TimeRange};
use expr::{Expr, Filter, IsMeant, Program};
use trace::{Cursor, Damage, EventView, Item, Lost, Trace};

use crate::Selection;

self_cell::self_cell!(
    struct Owned {
        owner: Arc<Trace>,
        #[covariant]
        dependent: Cursor,
    }
);

/// One step of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// [`Walk::event`] is the next event.
    Event,
    /// Events are missing here.
    Lost(Lost),
    /// Bytes that could not be understood.
    Damage(Damage),
    /// There is nothing more.
    End,
}

/// Walks the selected items of a trace in time order.
pub struct Walk {
    cursor: Owned,
    selection: Selection,
    filter: Option<Filter>,
    /// Whether the cursor stands on an event that was handed out.
    on_event: bool,
}

impl Walk {
    /// A walk before the first selected item.
    ///
    /// # Errors
    /// For a filter that this trace's classes refuse, an empty range, a CPU that is not there.
    pub fn new(trace: &Arc<Trace>, selection: Selection) -> Result<Walk> {
        selection.check(trace)?;
        let filter = filter(trace, &selection)?;
        Ok(Walk {
            cursor: cursor(trace, selection.range, filter.as_ref()),
            filter,
            selection,
            on_event: false,
        })
    }

    /// The trace.
    pub fn trace(&self) -> &Arc<Trace> {
        self.cursor.borrow_owner()
    }

    /// The filter's program, when there is one.
    pub fn program(&self) -> Option<&Program> {
        self.filter.as_ref().map(Filter::program)
    }

    /// What looks like a mistake in the filter, though it has a meaning.
    pub fn notes(&self) -> &[Error] {
        self.program().map_or(&[], Program::notes)
    }

    /// Goes to the next item. Losses are items of every walk, whatever CPU or filter was chosen:
    /// what is missing might have matched.
    ///
    /// # Errors
    /// Only when the operating system refuses to read.
    #[inline]
    pub fn advance(&mut self) -> Result<Step> {
        self.advance_while(|_| false)
    }

    /// Hands selected events to `wants_more` until it says no: then the walk stands on that event.
    /// Otherwise it ends at what is no event.
    ///
    /// # Errors
    /// As [`Walk::advance`].
    #[inline]
    pub fn advance_while(
        &mut self,
        mut wants_more: impl FnMut(&EventView<'_>) -> bool,
    ) -> Result<Step> {
        let (selection, filter) = (&self.selection, &mut self.filter);
        let mut step = Step::End;
        let walked = self.cursor.with_dependent_mut(|_, cursor| {
            cursor.each_while(|item| {
                step = match item {
                    Item::Event(event) => {
                        // The filter sees every CPU: it learns from all of them which task runs.
                        let matches = filter.as_mut().is_none_or(|f| f.matches(event));
                        let is_selected = matches && selection.wants_cpu(event.cpu());
                        if !is_selected || wants_more(event) {
                            return true;
                        }
                        Step::Event
                    }
                    Item::Lost(lost) => {
                        if let Some(filter) = filter {
                            filter.lost(lost.cpu);
                        }
                        Step::Lost(*lost)
                    }
                    Item::Damage(damage) => Step::Damage(damage.clone()),
                };
                false
            })
        });
        self.on_event = walked.is_ok() && step == Step::Event;
        walked.map(|()| step)
    }

    /// The event that the walk stands on; none before the first, at a loss and at the end.
    #[inline]
    pub fn event(&self) -> Option<EventView<'_>> {
        match self.on_event {
            true => self.cursor.borrow_dependent().event(),
            false => None,
        }
    }

    /// Goes on with the first selected item at or after `time`, forward or back, without reading
    /// what lies before.
    ///
    /// # Errors
    /// As [`Walk::new`], for nothing that it had not refused there.
    pub fn seek(&mut self, time: Instant) -> Result<()> {
        let trace = self.trace().clone();
        let range = TimeRange {
            begin: time.max(self.selection.range.begin),
            end: self.selection.range.end,
        };
        // It must learn anew which task runs where.
        self.filter = filter(&trace, &self.selection)?;
        self.cursor = cursor(&trace, range, self.filter.as_ref());
        self.on_event = false;
        Ok(())
    }
}

fn cursor(trace: &Arc<Trace>, range: TimeRange, filter: Option<&Filter>) -> Owned {
    Owned::new(trace.clone(), |trace| match filter {
        Some(filter) => trace.cursor_of(range, |class| filter.wants(class)),
        None => trace.cursor(range),
    })
}

fn filter(trace: &Trace, selection: &Selection) -> Result<Option<Filter>> {
    let ranges = |meant: &IsMeant<'_>| trace.symbols().ranges(meant);
    let compile = |expr: &Expr| Filter::new(&expr.naming_functions(ranges), trace.classes());
    selection.filter.as_ref().map(compile).transpose()
}
