//! Places in a text, and errors that point at them.

use event::{Error, ErrorKind};

/// A range of bytes of the parsed text. All spans are equal to each other: where something was
/// written is no part of what it means, so that trees compare by meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Span {
    /// From here to the end of `other`.
    pub(crate) fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end,
        }
    }
}

/// What is wrong at a place, and what to write instead.
#[derive(Debug)]
pub(crate) struct Fault {
    pub span: Span,
    pub what: String,
    pub fix: String,
}

/// Inside the parser.
pub(crate) type Parsed<T> = std::result::Result<T, Fault>;

impl Fault {
    pub fn new(span: Span, what: impl Into<String>, fix: impl Into<String>) -> Fault {
        Fault {
            span,
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// As the error that people see; `kind` is what the text should have been.
    pub fn into_error(self, kind: &str, text: &str) -> Error {
        let what = format!("the {kind} cannot be read: {}", self.what);
        Error::new(ErrorKind::InvalidInput, what)
            .found(pointed(text, self.span))
            .fix(self.fix)
    }
}

/// More columns of a long text around the place do not help.
const COLUMNS_BEFORE: usize = 50;
const COLUMNS_AFTER: usize = 25;

/// `column N`, the text on a line of its own, and carets below the place.
pub(crate) fn pointed(text: &str, span: Span) -> String {
    let start = floor_boundary(text, span.start as usize);
    let end = floor_boundary(text, span.end as usize).max(start);
    let column = text[..start].chars().count();
    let width = text[start..end].chars().count().max(1);
    let first = column.saturating_sub(COLUMNS_BEFORE);
    let shown_width = width.min(COLUMNS_AFTER);
    // One column for each character, or the carets would stand elsewhere.
    let one_column = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = text
        .chars()
        .skip(first)
        .take(column - first + shown_width + COLUMNS_AFTER)
        .map(one_column)
        .collect();
    let before = if first > 0 { "…" } else { "" };
    let indent = " ".repeat(column - first + before.chars().count());
    let carets = "^".repeat(shown_width);
    let number = column + 1;
    format!("at column {number}\n    {before}{shown}\n    {indent}{carets}")
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_stand_below_the_place_whatever_is_before_it() {
        let check = |text: &str, start, end, expect: &str| {
            assert_eq!(pointed(text, Span { start, end }), expect);
        };
        check("a == b", 2, 4, "at column 3\n    a == b\n      ^^");
        check("a ==", 4, 4, "at column 5\n    a ==\n        ^");
        check("é\tx", 3, 4, "at column 3\n    é x\n      ^");
        check("", 9, 12, "at column 1\n    \n    ^");
        let long = "x".repeat(100);
        let found = pointed(&long, Span { start: 90, end: 91 });
        assert!(
            found.lines().all(|line| line.chars().count() < 90),
            "{found}"
        );
        assert!(found.contains('…'), "{found}");
    }
}
