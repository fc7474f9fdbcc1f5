//! Inputs that follow a grammar, for readers of languages: most are sound, so that what lies behind
//! the parser is reached too.
//!
//! A grammar is a text: `name = alternative | alternative`, a rule a line, the first one is the
//! whole. `<name>` stands for a rule, `<name>*` for up to four of them; `\n`, `\x1e`, `\e`
//! (nothing) and `\p` (`|`) for what cannot be written.

use std::collections::HashMap;

use crate::random::Random;

/// Rules are not followed deeper: then the first alternative, which should be the simplest.
const DEPTH_MAX: usize = 24;
/// An input that is this long gets only simplest alternatives.
const BYTES_MAX: usize = 8 << 10;
/// And one that took so many rules.
const RULES_MAX: usize = 4096;
/// The most that a star repeats.
const REPEATS_MAX: usize = 4;

/// A grammar that was read.
#[derive(Debug)]
pub struct Grammar {
    start: String,
    rules: HashMap<String, Vec<Vec<Part>>>,
}

/// An input that is being made.
#[derive(Debug, Default)]
struct Text {
    text: String,
    /// Rules that were followed.
    rules: usize,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Rule(String),
    Repeated(String),
}

impl Grammar {
    /// Reads a grammar; what makes no sense stands for itself.
    pub fn new(text: &str) -> Self {
        let mut rules = HashMap::new();
        let mut start = String::new();
        for line in text.lines().filter(|line| !line.starts_with("//")) {
            let Some((name, alternatives)) = line.split_once(" = ") else {
                continue;
            };
            let alternatives = alternatives.split(" | ").map(parts).collect();
            if start.is_empty() {
                name.clone_into(&mut start);
            }
            rules.insert(name.to_owned(), alternatives);
        }
        Grammar { start, rules }
    }

    /// An input.
    pub fn input(&self, random: &mut Random) -> Vec<u8> {
        let mut out = Text::default();
        self.expand(&self.start, 0, random, &mut out);
        out.text.into_bytes()
    }

    fn expand(&self, name: &str, depth: usize, random: &mut Random, out: &mut Text) {
        let Some(alternatives) = self.rules.get(name) else {
            return;
        };
        out.rules += 1;
        let is_deep = depth > DEPTH_MAX || out.text.len() > BYTES_MAX || out.rules > RULES_MAX;
        let place = if is_deep {
            0
        } else {
            random.below(alternatives.len())
        };
        for part in &alternatives[place] {
            match part {
                Part::Text(text) => out.text.push_str(text),
                Part::Rule(name) if depth < 2 * DEPTH_MAX && out.rules < 2 * RULES_MAX => {
                    self.expand(name, depth + 1, random, out);
                }
                Part::Repeated(name) if !is_deep => {
                    for _ in 0..random.below(REPEATS_MAX + 1) {
                        self.expand(name, depth + 1, random, out);
                    }
                }
                _ => {}
            }
        }
    }

    /// Words of the language: the texts between its rules.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let parts = self.rules.values().flatten().flatten();
        let mut words: Vec<Vec<u8>> = parts
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.trim().as_bytes().to_vec()),
                _ => None,
            })
            .filter(|word| !word.is_empty())
            .collect();
        words.sort();
        words.dedup();
        words
    }
}

fn parts(alternative: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = alternative;
    while let Some((before, name, after)) = next_rule(rest) {
        push_text(&mut parts, before);
        match after.strip_prefix('*') {
            Some(after) => {
                parts.push(Part::Repeated(name.to_owned()));
                rest = after;
            }
            None => {
                parts.push(Part::Rule(name.to_owned()));
                rest = after;
            }
        }
    }
    push_text(&mut parts, rest);
    parts
}

/// What stands before the next `<name>`, the name, and what follows.
fn next_rule(text: &str) -> Option<(&str, &str, &str)> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
    text.match_indices('<').find_map(|(at, _)| {
        let (name, after) = text[at + 1..].split_once('>')?;
        is_name(name).then_some((&text[..at], name, after))
    })
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        let text = text.replace("\\n", "\n").replace("\\x1e", "\x1e");
        parts.push(Part::Text(text.replace("\\p", "|").replace("\\e", "")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grammar_gives_sound_inputs_and_its_words() {
        let grammar = Grammar::new("all = <item>*end\nitem = a<item>b | c \\p d | \\e\n");
        let mut random = Random::new(1);
        let mut longest = 0;
        for _ in 0..200 {
            let input = String::from_utf8(grammar.input(&mut random)).expect("text");
            assert!(input.ends_with("end"), "{input}");
            let (a, b) = (input.matches('a').count(), input.matches('b').count());
            assert_eq!(a, b, "{input}");
            longest = longest.max(input.len());
        }
        assert!(longest > 10);
        assert!(grammar.words().contains(&b"end".to_vec()));
    }

    #[test]
    fn a_rule_that_never_ends_is_cut() {
        let grammar = Grammar::new("all = x<all><all><all> | x<all>\n");
        assert!(grammar.input(&mut Random::new(2)).len() < 4 * BYTES_MAX);
    }
}
