//! How a text is made, and what its colours mean.

use event::Duration;

/// How a text is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Colours, each with a meaning: red for the culprit, yellow for doubt, bold for the verdict.
    pub color: bool,
    /// The trace as the user named it, for the commands that come next.
    pub trace: Option<String>,
    /// All of it: steps, ledger, stacks, all advice, what speaks against other causes.
    pub verbose: bool,
    /// The command that shows all of it, for the short answer.
    pub more: Option<String>,
    /// Wall clock minus the trace's clock, where the trace knows it.
    pub wall_offset: Option<Duration>,
    /// Times of day in UTC, not in the zone of this machine.
    pub utc: bool,
    /// Columns of the terminal, where there is one: tables are cut to it, sentences are not.
    pub columns: Option<usize>,
}

/// What a colour means.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    Verdict,
    Culprit,
    Doubt,
    Plain,
}

impl TextStyle {
    pub(super) fn paint(&self, meaning: Meaning, text: &str) -> String {
        let code = match meaning {
            Meaning::Verdict => "1",
            Meaning::Culprit => "31",
            Meaning::Doubt => "33",
            Meaning::Plain => "",
        };
        if !self.color || code.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
