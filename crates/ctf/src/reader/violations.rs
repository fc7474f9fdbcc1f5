//! Where metadata breaks the standard and is read all the same.

use super::lexer::Spot;

/// More of them are counted only: each is looked up in the text.
const KEPT_MAX: usize = 100;

/// One place of the metadata that breaks the standard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Of the metadata's text, from one on.
    pub line: usize,
    /// What is wrong there, and what the standard asks for.
    pub what: String,
}

/// All of them, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    /// The first hundred.
    pub first: Vec<Violation>,
    /// How many there are.
    pub count: u64,
}

/// Those that are found while the text is read.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Where in the text, and what.
    kept: Vec<(usize, String)>,
    count: u64,
}

impl Found {
    pub fn add(&mut self, at: usize, what: impl Into<String>) {
        self.count += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push((at, what.into()));
        }
    }

    /// With their lines.
    pub fn placed(self, spot: impl Fn(usize) -> Spot) -> Violations {
        let mut kept = self.kept;
        kept.sort_by_key(|(at, _)| *at);
        let place = |(at, what)| Violation {
            line: spot(at).line,
            what,
        };
        Violations {
            first: kept.into_iter().map(place).collect(),
            count: self.count,
        }
    }
}
