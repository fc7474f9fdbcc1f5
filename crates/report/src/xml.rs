//! Text inside of XML and HTML.

use std::fmt::Display;

/// Text that cannot be taken for markup.
pub(crate) fn escaped(text: impl Display) -> String {
    let mut out = String::new();
    for char in text.to_string().chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no way to write the others.
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            char => out.push(char),
        }
    }
    out
}

/// The same line by line: the ends of lines stay.
pub(crate) fn escaped_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(escaped).collect();
    lines.join("\n")
}
