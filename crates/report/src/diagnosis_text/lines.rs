//! Lines of a short answer: folded where the terminal ends, commands with their reasons.

use diagnosis::LateActivation;

use super::style::TextStyle;

/// Where commands begin, behind their labels.
const COMMAND_COLUMN: usize = 9;
/// A command and its reason share a line up to this width where there is no terminal.
const LINE_COLUMNS: usize = 100;

/// The three parts of a response.
pub(super) fn parts_text(late: &LateActivation, lines: &mut Vec<String>) {
    let Some(parts) = late.parts() else { return };
    let (before, own, put_off) = (parts.before, parts.own_work, parts.put_off);
    let begin = match parts.own_before.as_ns() * 2 >= before.as_ns().max(1) {
        true => {
            let at_work = parts.own_before;
            format!("before this work {before}, still at what it did before for {at_work} of it")
        }
        false => format!("before it ran {before}"),
    };
    lines.push(format!(
        "  {begin}; its own work {own}; put off in between {put_off}"
    ));
}

/// The text in lines of at most `columns`, those behind the first indented.
pub(super) fn folded(text: &str, indent: usize, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut width = 0;
    let head = text.len() - text.trim_start().len();
    out.push_str(&text[..head]);
    width += head;
    let mut is_first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !is_first && width + 1 + length > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            width = indent;
        } else if !is_first {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += length;
        is_first = false;
    }
    out
}

/// `  do:    COMMAND   # because`, the reason below where the line would be too long. What is
/// pasted into a shell does what the command does.
pub(super) fn labelled(label: &str, command: &str, because: &str, style: &TextStyle) -> String {
    let label = format!("  {label}:");
    let head = format!("{label:<COMMAND_COLUMN$}{command}");
    if because.is_empty() {
        return head;
    }
    let columns = style.columns.unwrap_or(LINE_COLUMNS);
    let line = format!("{head}   # {because}");
    if line.chars().count() <= columns {
        return line;
    }
    let below = format!("{:COMMAND_COLUMN$}# {because}", "");
    format!("{head}\n{}", folded_comment(&below, style.columns))
}

/// A comment of a shell, folded into several.
fn folded_comment(text: &str, columns: Option<usize>) -> String {
    let folded = folded(text, COMMAND_COLUMN, columns);
    let indent = " ".repeat(COMMAND_COLUMN);
    let mut lines = folded.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let rest = lines.map(|line| format!("\n{indent}# {}", line.trim_start()));
    first + &rest.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_folded_where_words_end_and_only_on_a_terminal() {
        let check = |text: &str, columns: Option<usize>, expect: &str| {
            assert_eq!(folded(text, 2, columns), expect, "{text}");
        };
        check("one two three", None, "one two three");
        check("one two three", Some(7), "one two\n  three");
        check("  one two", Some(80), "  one two");
        check("unbreakable", Some(3), "unbreakable");
        check("", Some(3), "");
    }

    #[test]
    fn a_reason_is_a_comment_of_the_shell_on_each_line_of_it() {
        let check = |columns: Option<usize>, expect: &str| {
            let style = TextStyle {
                columns,
                ..TextStyle::default()
            };
            let text = labelled("do", "taskset -pc 0 7", "hog shares CPU 1", &style);
            assert_eq!(text, expect);
        };
        check(None, "  do:    taskset -pc 0 7   # hog shares CPU 1");
        check(
            Some(30),
            "  do:    taskset -pc 0 7\n         # hog shares CPU 1",
        );
        check(
            Some(24),
            "  do:    taskset -pc 0 7\n         # hog shares\n         # CPU 1",
        );
    }
}
