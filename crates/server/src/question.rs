//! What a client asks: a path and words behind it. All of it is hostile.

use std::collections::BTreeMap;

use event::{Error, ErrorKind, Result};

/// The words behind the path of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(BTreeMap<String, String>);

impl Words {
    /// Reads `a=1&b=x%20y`; of a word that comes twice the last counts.
    pub fn parse(query: &str) -> Words {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        };
        Words(pairs.map(pair).collect())
    }

    /// A word; empty when it was not said.
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// A number; `default` when it was not said.
    pub fn number(&self, key: &str, default: i64) -> Result<i64> {
        match self.text(key) {
            "" => Ok(default),
            text => text.parse().map_err(|_| refuse(key, text)),
        }
    }

    /// A number that has to be said, from zero to `most`.
    pub fn needed(&self, key: &str, most: i64) -> Result<usize> {
        match self.text(key) {
            "" => Err(refuse(key, "")),
            _ => self.count(key, 0, most),
        }
    }

    /// One of the words that there are; the first when none was said.
    pub fn one_of<'a>(&self, key: &str, known: &[&'a str]) -> Result<&'a str> {
        let text = self.text(key);
        let found = match text {
            "" => known.first(),
            text => known.iter().find(|one| **one == text),
        };
        let names: Vec<&str> = known
            .iter()
            .filter(|one| !one.is_empty())
            .copied()
            .collect();
        found.copied().ok_or_else(|| {
            invalid(format!("'{key}' has no such word"), text)
                .fix(format!("give one of: {}", names.join(", ")))
        })
    }

    /// What stands between the commas of a word, each as `read` takes it, `most` of them.
    pub fn list<T>(
        &self,
        key: &str,
        most: usize,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>> {
        let parts = self.text(key).split(',').filter(|part| !part.is_empty());
        let part = |part| {
            let refused = || {
                invalid(format!("one of '{key}' is none"), part)
                    .fix("give them as /api/v1/tracks does, with commas between")
            };
            read(part).ok_or_else(refused)
        };
        parts.take(most).map(part).collect()
    }

    /// A number from zero to `most`, greater ones taken for that.
    pub fn count(&self, key: &str, default: i64, most: i64) -> Result<usize> {
        let number = self.number(key, default)?;
        match usize::try_from(number.min(most)) {
            Ok(count) => Ok(count),
            Err(_) => Err(refuse(key, &number.to_string())),
        }
    }
}

fn refuse(key: &str, found: &str) -> Error {
    invalid(format!("'{key}' is no number that fits"), found)
        .fix("give an integer; docs/view.md has the API")
}

fn invalid(what: String, found: &str) -> Error {
    let found: String = found.chars().take(80).collect();
    Error::new(ErrorKind::InvalidInput, what).found(format!("'{found}'"))
}

/// Percent-encoding undone; bytes that are not UTF-8 are replaced.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(if *byte == b'+' { b' ' } else { *byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_whatever_they_are() {
        let check = |query: &str, key: &str, expect: &str| {
            assert_eq!(Words::parse(query).text(key), expect, "{query}");
        };
        check("a=1&b=2", "b", "2");
        check("a=x%20y+z", "a", "x y z");
        check("a=%", "a", "%");
        check("a=%zz%4", "a", "%zz%4");
        check("a=%ff", "a", "\u{fffd}");
        check("a=1&a=2", "a", "2");
        check("&&=&a", "a", "");
        check("", "a", "");
    }

    #[test]
    fn numbers_are_bounded() {
        let words = Words::parse("a=5&b=-1&c=99999999999999999999&d=1e3");
        assert_eq!(words.count("a", 0, 3).ok(), Some(3));
        assert_eq!(words.count("none", 7, 9).ok(), Some(7));
        assert!(words.count("b", 0, 3).is_err());
        assert!(words.number("c", 0).is_err());
        assert!(words.number("d", 0).is_err());
        assert_eq!(words.needed("a", 9).ok(), Some(5));
        assert!(words.needed("none", 9).is_err());
    }

    #[test]
    fn a_word_that_there_is_not_is_refused_with_those_that_there_are() {
        let check = |query: &str, expect: &str| {
            let found = Words::parse(query).one_of("kind", &["cpu", "thread"]);
            let found = found.unwrap_or_else(|error| panic!("{query}: {error:#}"));
            assert_eq!(found, expect, "{query}");
        };
        check("", "cpu");
        check("kind=", "cpu");
        check("kind=thread", "thread");
        let error = Words::parse("kind=foo").one_of("kind", &["", "cpu", "thread"]);
        let error = format!("{:#}", error.expect_err("it is no kind"));
        assert!(error.contains("'foo'"), "{error}");
        assert!(error.contains("give one of: cpu, thread"), "{error}");
    }

    #[test]
    fn of_a_list_each_part_is_read_or_all_is_refused() {
        let list = |text: &str| {
            let words = Words::parse(&format!("ids={text}"));
            words.list("ids", 3, |id| id.parse::<u32>().ok()).ok()
        };
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("1,,2,"), Some(vec![1, 2]));
        assert_eq!(list("1,2,3,4"), Some(vec![1, 2, 3]));
        assert_eq!(list("1,x"), None);
    }
}
