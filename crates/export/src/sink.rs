//! The face that all formats share.

use event::{Result, TimeRange};
use trace::{Damage, EventView, LossCause, Lost};

/// Where the items of a walk go, in the order of the walk.
pub trait Sink {
    /// Of the trace it gets what lies in `range`, and nothing else; all, where nobody says so. Said
    /// before the first item.
    fn covers(&mut self, range: TimeRange) {
        let _ = range;
    }

    /// Takes an event.
    ///
    /// # Errors
    /// When it cannot be written; the output is then given up.
    fn event(&mut self, event: &EventView<'_>) -> Result<()>;

    /// Takes a loss.
    ///
    /// # Errors
    /// As [`Sink::event`].
    fn lost(&mut self, lost: &Lost) -> Result<()>;

    /// Takes bytes that could not be understood; most formats have no word for them.
    ///
    /// # Errors
    /// As [`Sink::event`].
    fn damage(&mut self, damage: &Damage) -> Result<()> {
        let _ = damage;
        Ok(())
    }

    /// Writes what is left and gives the output its name. A sink that is dropped before leaves
    /// nothing behind.
    ///
    /// # Errors
    /// As [`Sink::event`]; [`event::ErrorKind::AlreadyExists`] when somebody made the output
    /// meanwhile.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Why events are missing, in the word that all formats share.
pub(crate) fn cause_word(cause: LossCause) -> &'static str {
    match cause {
        LossCause::Discarded => "discarded",
        LossCause::Overrun => "overrun",
        _ => "unknown",
    }
}
