//! A small model of the kernel's own filter (`Documentation/trace/events.rst`): what the text in an
//! event's `filter` file says of a record.

/// What a record has of a field.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer: its bits, how many, and whether the highest is a sign.
    Integer(u64, u32, bool),
    /// All bytes of a room, or of a text whose length varies with its zero byte.
    Text(Vec<u8>),
}

/// Whether the kernel lets the record through. Panics where the kernel would refuse the filter.
pub fn holds(filter: &str, record: &[(&str, Value)]) -> bool {
    let mut reader = Reader {
        rest: filter.as_bytes(),
        record,
    };
    let holds = reader.any();
    assert!(reader.rest.trim_ascii().is_empty(), "{filter}");
    holds
}

struct Reader<'a> {
    rest: &'a [u8],
    record: &'a [(&'a str, Value)],
}

impl<'a> Reader<'a> {
    fn take(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.strip_prefix(word.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn any(&mut self) -> bool {
        let mut holds = self.all();
        while self.take("||") {
            holds |= self.all();
        }
        holds
    }

    fn all(&mut self) -> bool {
        let mut holds = self.single();
        while self.take("&&") {
            holds &= self.single();
        }
        holds
    }

    fn single(&mut self) -> bool {
        if self.take("!") {
            return !self.single();
        }
        if self.take("(") {
            let holds = self.any();
            assert!(self.take(")"), "a parenthesis is open");
            return holds;
        }
        self.comparison()
    }

    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_ascii_start();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let end = self.rest.iter().position(|byte| !is_part(byte));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        std::str::from_utf8(word).expect("ASCII")
    }

    fn comparison(&mut self) -> bool {
        let name = self.word();
        let found = self.record.iter().find(|(known, _)| *known == name);
        let (_, value) = found.unwrap_or_else(|| panic!("no field {name}"));
        let operators = ["==", "!=", "~", "<=", "<", ">=", ">", "&"];
        let operator = operators.into_iter().find(|op| self.take(op));
        let operator = operator.expect("an operator");
        self.rest = self.rest.trim_ascii_start();
        match value {
            Value::Text(text) => {
                let quote = self.rest[0];
                assert!(matches!(quote, b'"' | b'\''), "a quote");
                let end = self.rest[1..].iter().position(|byte| *byte == quote);
                let (wanted, rest) = self.rest[1..].split_at(end.expect("a second quote"));
                self.rest = &rest[1..];
                assert!(wanted.len() < 256, "too long");
                text_holds(operator, text, wanted)
            }
            Value::Integer(bits, width, signed) => {
                let sign = if self.take("-") { "-" } else { "" };
                let number = format!("{sign}{}", self.word());
                assert!(number.len() < 24, "too long");
                let cut = |bits: u64| bits << (64 - width);
                let same = |number: u64| {
                    if *signed {
                        ((cut(number) as i64) >> (64 - width)).into()
                    } else {
                        i128::from(cut(number) >> (64 - width))
                    }
                };
                let wanted = match signed {
                    true => number.parse::<i64>().expect("64 bits") as u64,
                    false => number.parse::<u64>().expect("64 bits without a sign"),
                };
                number_holds(operator, same(*bits), same(wanted))
            }
        }
    }
}

fn number_holds(operator: &str, value: i128, wanted: i128) -> bool {
    match operator {
        "==" => value == wanted,
        "!=" => value != wanted,
        "<" => value < wanted,
        "<=" => value <= wanted,
        ">" => value > wanted,
        ">=" => value >= wanted,
        "&" => value & wanted != 0,
        other => panic!("{other} of numbers"),
    }
}

/// The bytes up to the zero byte, or all.
fn until_zero(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().expect("one piece")
}

fn text_holds(operator: &str, text: &[u8], wanted: &[u8]) -> bool {
    // No more bytes than the room has are compared.
    let equal = until_zero(text) == &wanted[..wanted.len().min(text.len())];
    match operator {
        "==" => equal,
        "!=" => !equal,
        "~" => pattern_holds(text, wanted),
        other => panic!("{other} of texts"),
    }
}

/// The kernel's ways to look for a pattern, with what each of them gets wrong.
fn pattern_holds(text: &[u8], pattern: &[u8]) -> bool {
    if let Some(rest) = pattern.strip_prefix(b"!") {
        return !pattern_holds(text, rest);
    }
    if pattern.first().is_some_and(u8::is_ascii_digit) {
        return until_zero(text) == pattern;
    }
    let middle = pattern.strip_prefix(b"*").unwrap_or(pattern);
    let ends = middle.strip_suffix(b"*").unwrap_or(middle);
    if ends.iter().any(|byte| b"*?[\\".contains(byte)) {
        return glob(until_zero(text), pattern);
    }
    match (middle.len() < pattern.len(), ends.len() < middle.len()) {
        (false, false) => until_zero(text) == pattern,
        (false, true) => until_zero(text).starts_with(ends),
        // What is behind the text's end in its room counts.
        (true, true) => text.windows(ends.len()).any(|bytes| bytes == ends),
        (true, false) => text[..text.len().saturating_sub(1)].ends_with(ends),
    }
}

fn glob(text: &[u8], pattern: &[u8]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return text.is_empty();
    };
    let next = |is_meant: bool, rest: &[u8]| is_meant && glob(&text[1..], rest);
    match first {
        b'*' => (0..=text.len()).any(|at| glob(&text[at..], rest)),
        _ if text.is_empty() => false,
        b'?' => next(true, rest),
        b'\\' => next(text[0] == rest[0], &rest[1..]),
        b'[' => {
            let end = rest.iter().skip(1).position(|byte| *byte == b']');
            let (mut set, rest) = rest.split_at(end.expect("a bracket") + 1);
            let mut is_meant = false;
            while let Some(from) = set.first() {
                let (to, length) = match set.get(1) {
                    Some(b'-') => (set[2], 3),
                    _ => (*from, 1),
                };
                is_meant |= (*from..=to).contains(&text[0]);
                set = &set[length..];
            }
            next(is_meant, &rest[1..])
        }
        byte => next(text[0] == *byte, rest),
    }
}
