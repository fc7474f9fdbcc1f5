//! Finds the functions of a file that rustfmt has formatted: a function ends at the first line
//! that is a closing brace with the indentation of its `fn`.

/// A function: its name, where it starts (from 0) and how many lines it has.
#[derive(Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: String,
    /// Index of the line with `fn`.
    pub first_line: usize,
    /// From `fn` to the closing brace, both counted.
    pub lines: usize,
}

/// Words that may stand before `fn`.
const QUALIFIERS: &[&str] = &["pub", "const", "async", "unsafe", "extern", "default"];

/// All functions of `text`, inner ones too.
pub fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indentation = line.len() - line.trim_start().len();
        let closing = format!("{}}}", &line[..indentation]);
        let is_end = |line: &str| line == closing || line.trim_end().ends_with(';');
        // A declaration without a body, or a body on the same line, ends where it starts.
        if line.trim_end().ends_with(['}', ';']) {
            continue;
        }
        let body = &lines[at + 1..];
        let opens_later = body.iter().position(|line| line.trim_end().ends_with('{'));
        let first_end = body.iter().position(|line| is_end(line));
        if !line.trim_end().ends_with('{') && opens_later > first_end {
            continue;
        }
        if let Some(end) = body.iter().position(|line| *line == closing) {
            found.push(Function {
                name,
                first_line: at,
                lines: end + 2,
            });
        }
    }
    found
}

/// The name of the function that `line` begins, if it begins one.
fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    loop {
        let word = words.next()?;
        if word == "fn" {
            let rest = words.next()?;
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            return Some(rest[..end].to_owned());
        }
        let qualifier = word.split('(').next().unwrap_or(word);
        if !QUALIFIERS.contains(&qualifier) && !word.starts_with('"') {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[(&str, usize)]) {
        let found = functions(text);
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.lines)).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn a_function_is_counted_from_its_head_to_its_brace() {
        check("fn a() {\n    b();\n}\n", &[("a", 3)]);
        check(
            "pub(crate) const fn a(\n    x: u8,\n) -> u8 {\n    x\n}\n",
            &[("a", 5)],
        );
        check(
            "impl A {\n    pub fn a(&self) {\n        b();\n    }\n}\n",
            &[("a", 3)],
        );
        check("unsafe extern \"C\" fn a() {\n}\n", &[("a", 2)]);
    }

    #[test]
    fn what_is_no_function_body_is_not_counted() {
        check("trait A {\n    fn a(&self);\n    fn b() {}\n}\n", &[]);
        check("let fn_name = 1;\n// fn in a comment\n", &[]);
        check(
            "trait A {\n    fn a(\n        x: u8,\n    ) -> u8;\n}\nfn c() {\n}\n",
            &[("c", 2)],
        );
    }
}
