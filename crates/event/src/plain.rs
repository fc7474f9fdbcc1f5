//! Texts that others wrote, made fit to show.

/// A text that anybody may have written, such as a task's name, for terminals and tables: `?`
/// stands for each control character, and for those that turn the direction of what follows. A
/// terminal would obey them, whoever looks. Bytes that are not UTF-8 are replaced.
pub fn plain_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.contains(is_unfit) {
        true => text.replace(is_unfit, "?"),
        false => text.into_owned(),
    }
}

fn is_unfit(c: char) -> bool {
    let turns = ['\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'].contains(&c);
    let embeds = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || embeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_a_question_mark_and_all_else_stays() {
        let check = |bytes: &[u8], expect: &str| assert_eq!(plain_text(bytes), expect);
        check(b"kworker/0:1H", "kworker/0:1H");
        check("größer \u{1f980}".as_bytes(), "größer \u{1f980}");
        check(b"\x1b]0;pwn\x07\x1b[2Jx", "?]0;pwn??[2Jx");
        check(b"a\nb\tc\x7f", "a?b?c?");
        check("\u{9b}31m\u{202e}gnp".as_bytes(), "?31m?gnp");
        check(b"\xff\xfe", "\u{fffd}\u{fffd}");
    }
}
