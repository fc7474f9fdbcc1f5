//! Cases whose results are judged here, with what the guest knows beside what rtscope said.

use std::path::Path;

use anyhow::{Result, ensure};

use super::claim::Claim;
use super::{coverage, gaps, loops, opinions, published, stalls};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_judge_has_a_case() {
        let cases = super::super::case::table(&crate::repository()).unwrap();
        for (name, _) in JUDGES {
            assert!(cases.iter().any(|case| case.name == *name), "{name}");
        }
    }
}
