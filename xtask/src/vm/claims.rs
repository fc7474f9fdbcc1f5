//! Cases whose results are judged here, with what the guest knows beside what rtscope said.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{coverage, gaps, loops, opinions, published, stalls};

/// A claim, with the numbers that it is about, and whether it holds.
pub type Claim = (String, bool);
type Judge = fn(&Path, &Path) -> Result<Vec<Claim>>;

/// Judges by the name of the case; each gets the folder of what the guest left, and the program.
const JUDGES: &[(&str, Judge)] = &[
    ("jack", |result, _| published::jack(result)),
    ("memcached", |result, _| published::memcached(result)),
    ("memcached-interrupt", |result, _| {
        published::memcached_interrupt(result)
    }),
    ("printk", |result, _| published::printk(result)),
    ("opinions", |result, _| opinions::judge(result)),
    ("coverage", coverage::judge),
    ("stalls", stalls::judge),
    ("gaps", |result, _| gaps::judge(result)),
    ("loops", |result, _| loops::judge(result)),
    ("loops-exact", |result, _| loops::judge_exact(result)),
];

/// Whether the case called `name` has a judge.
pub fn has_judge(name: &str) -> bool {
    JUDGES.iter().any(|(case, _)| *case == name)
}

/// Judges what the case called `name` left in `folder`, with the `program` under test; writes
/// `claims.txt`, and returns how many claims held.
pub fn judge(name: &str, folder: &Path, program: &Path) -> Result<usize> {
    let Some((_, judge)) = JUDGES.iter().find(|(case, _)| *case == name) else {
        return Ok(0);
    };
    let claims = judge(&folder.join("result"), program)?;
    let lines: Vec<String> = claims
        .iter()
        .map(|(claim, holds)| format!("{} {claim}", if *holds { "ok" } else { "not ok" }))
        .collect();
    std::fs::write(folder.join("claims.txt"), lines.join("\n") + "\n")?;
    let broken = claims.iter().filter(|(_, holds)| !holds);
    let broken: Vec<&str> = broken.map(|(claim, _)| claim.as_str()).collect();
    ensure!(
        broken.is_empty(),
        "what was seen does not show:\n  {}",
        broken.join("\n  ")
    );
    Ok(claims.len())
}

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

    #[test]
    fn every_judge_has_a_case() {
        let cases = super::super::case::table(&crate::repository()).unwrap();
        for (name, _) in JUDGES {
            assert!(cases.iter().any(|case| case.name == *name), "{name}");
        }
    }
}
