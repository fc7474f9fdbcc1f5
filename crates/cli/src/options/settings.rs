//! Files of settings in TOML; what makes no sense in one is told with its line and column.

use std::path::Path;

use event::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;

/// The settings in a file; `manual` is the page that lists what can be set.
pub(super) fn settings<T: DeserializeOwned>(path: &Path, manual: &str) -> Result<T> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|cause| {
        Error::io(format!("cannot read the settings {name}"), cause).fix(format!(
            "name a file that is there; {manual} lists what can be set in it"
        ))
    })?;
    let fix = format!("{manual} lists what can be set");
    parse(&text, &format!("the settings {name} make"), &fix)
}

/// Reads TOML; `subject` ends with the verb, as in "the settings x make".
pub(super) fn parse<T: DeserializeOwned>(text: &str, subject: &str, fix: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let (line, column) = place(text, error.span().map_or(0, |span| span.start));
        let what = format!("{subject} no sense in line {line}, column {column}");
        Error::new(ErrorKind::InvalidInput, what)
            .found(error.message().to_owned())
            .fix(fix)
    })
}

/// The line and the column of a byte, both from 1 on.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    let before = &text[..byte];
    let line = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[begin..].chars().count() + 1)
}
