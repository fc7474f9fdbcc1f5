//! The words of a command as a shell would cut them, as far as advice needs it.

/// The words; none when a quote is open at the end.
pub(super) fn words(command: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // A comment.
            (None, '#') if word.is_none() => break,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// What stands between two texts that begin and end a command, and what follows.
pub(super) fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let rest = text.trim_start().strip_prefix(begin)?;
    rest.split_once(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_cut_as_a_shell_cuts_it() {
        let check = |command: &str, expect: Option<&[&str]>| {
            let found = words(command);
            let found = found
                .as_ref()
                .map(|words| words.iter().map(String::as_str).collect());
            assert_eq!(found, expect.map(<[&str]>::to_vec), "{command}");
        };
        check("taskset -pc 0 7", Some(&["taskset", "-pc", "0", "7"]));
        check("echo 'a b' > /x", Some(&["echo", "a b", ">", "/x"]));
        check("dmesg -n 1   # quiet", Some(&["dmesg", "-n", "1"]));
        check("a#b ''", Some(&["a#b", ""]));
        check("  ", Some(&[]));
        check("echo 'a", None);
    }
}
