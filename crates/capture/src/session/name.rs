//! The names of sessions: parts of paths, and words on command lines.

use event::{Error, ErrorKind, Result};

/// A longer one says no more.
const LENGTH_MAX: usize = 64;

/// The name of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionName(String);

impl SessionName {
    /// Reads a name: letters, digits, dots, dashes and underscores, the first a letter or digit.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what is none, shown with its escapes.
    pub fn parse(text: &str) -> Result<SessionName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins = text
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric);
        if begins && text.len() <= LENGTH_MAX && text.bytes().all(is_plain) {
            return Ok(SessionName(text.to_owned()));
        }
        let shown: String = text.chars().take(LENGTH_MAX + 1).collect();
        Err(
            Error::new(ErrorKind::InvalidInput, "not a name for a session")
                .found(format!("'{}'", shown.escape_debug()))
                .fix(format!(
                    "use 1 to {LENGTH_MAX} letters, digits, '.', '_' or '-', the first a letter or \
                     digit"
                )),
        )
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for SessionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_no_flag_and_no_escape() {
        let check = |text: &str, expect: bool| {
            assert_eq!(SessionName::parse(text).is_ok(), expect, "{text:?}");
        };
        for good in ["a", "night-shift_2", "0.1", &"x".repeat(64)] {
            check(good, true);
        }
        for bad in [
            "",
            ".",
            "..",
            ".a",
            "-a",
            "a/b",
            "/",
            "a b",
            "a\0",
            "\x1b[2J",
            "ä",
            "a\n",
            &"x".repeat(65),
        ] {
            check(bad, false);
        }
        let error = SessionName::parse("\x1b[2J").expect_err("an escape");
        assert_eq!(error.value_found(), Some("'\\u{1b}[2J'"));
    }
}
