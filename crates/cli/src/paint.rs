//! Colour by meaning only: bad, doubtful, good. Nothing else is ever coloured.

use std::io::IsTerminal;

use clap::ValueEnum;

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// When stdout is a terminal that can, and NO_COLOR is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Whether a stream is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Never coloured.
    #[cfg(test)]
    pub const OFF: Paint = Paint { on: false };

    /// For stdout: follows `--color`, then `NO_COLOR` and `TERM`, then whether it is a terminal.
    pub fn choose(color: Color) -> Self {
        Paint::of(color, std::io::stdout().is_terminal())
    }

    /// The same for stderr.
    pub fn of_stderr(color: Color) -> Self {
        Paint::of(color, std::io::stderr().is_terminal())
    }

    fn of(color: Color, is_terminal: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && !dumb && !no_color,
        };
        Paint { on }
    }

    /// Whether there are colours.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// Something stops, or is over its budget.
    pub fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// Something is doubtful, or near its budget.
    pub fn doubtful(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// Something is as it should be.
    pub fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
