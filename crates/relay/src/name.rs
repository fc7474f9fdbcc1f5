//! Names from the wire: of a fixed alphabet, or refused.

use std::path::{Path, PathBuf};

/// No name is longer, and no path has more of them.
const NAME_BYTES_MAX: usize = 200;
const NAMES_MAX: usize = 8;

/// Whether a word can be the name of a host, of a trace or of a file of one: letters, digits, `-`,
/// `_` and `.`, which does not begin it.
pub fn is_name(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !word.is_empty()
        && word.len() <= NAME_BYTES_MAX
        && !word.starts_with('.')
        && word.bytes().all(is_plain)
}

/// The path of a file below its trace, when it is one of names alone.
pub(crate) fn path(text: &str) -> Option<PathBuf> {
    let names: Vec<&str> = text.split('/').collect();
    let is_path = names.len() <= NAMES_MAX && names.iter().all(|name| is_name(name));
    is_path.then(|| names.iter().collect())
}

/// How a file below its trace is called on the wire; none when it cannot be.
pub(crate) fn text(below: &Path) -> Option<String> {
    let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
    let text = names?.join("/");
    path(&text).map(|_| text)
}

/// This host's name in that alphabet.
pub fn host_name() -> String {
    let uname = rustix::system::uname();
    plain(&uname.nodename().to_string_lossy())
}

/// A word in the alphabet of names.
pub fn plain(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain = word.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.take(NAME_BYTES_MAX).collect();
    match plain.trim_start_matches('.') {
        "" => "unnamed".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_from_the_wire_stays_below_its_trace() {
        let check = |text: &str, expect: bool| assert_eq!(path(text).is_some(), expect, "{text:?}");
        check("kernel/channel0_0", true);
        check("ust/pid/npt-1-2/index/channel0_0.idx", true);
        for hostile in [
            "",
            "/etc/passwd",
            "..",
            "kernel/../../x",
            "kernel//x",
            "kernel/",
            ".written-until",
            "kernel/.hidden",
            "a b",
            "a\\b",
            "a\0b",
            "é",
            "1/2/3/4/5/6/7/8/9",
        ] {
            check(hostile, false);
        }
        check(&"n".repeat(200), true);
        check(&"n".repeat(201), false);
    }

    #[test]
    fn every_word_has_a_name_that_is_allowed() {
        for word in ["", "..", "host", "a b/c", "ü", "...x", &"x".repeat(300)] {
            assert!(is_name(&plain(word)), "{word:?}");
        }
        assert!(is_name(&host_name()));
    }
}
