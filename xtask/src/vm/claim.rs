//! A claim about a case, and what the guest said of it.

use std::path::Path;

use anyhow::{Context, Result};

/// A claim, with the numbers that it is about, and whether it holds.
pub type Claim = (String, bool);

/// The value of a line `KEY VALUE` of the guest's file `facts`.
pub fn fact(result: &Path, key: &str) -> Result<String> {
    let path = result.join("facts");
    let text = std::fs::read_to_string(&path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    value_of(&text, key)
        .map(str::to_owned)
        .with_context(|| format!("no fact '{key}' in {}", path.display()))
}

fn value_of<'a>(facts: &'a str, key: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(key)?.strip_prefix(' ');
    facts.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_found_by_its_whole_key() {
        let check = |key: &str, expect: Option<&str>| {
            assert_eq!(value_of("irqs 4\nirq 28\n", key), expect, "{key}");
        };
        check("irq", Some("28"));
        check("irqs", Some("4"));
        check("ir", None);
    }
}
