//! Chores of this repository: `cargo xtask tidy|deps|check|test|fuzz|reference|release|lock|vm|
//! scenarios`.

mod check;
mod deps;
mod fuzz;
mod harness;
mod lock;
mod reference;
mod release;
mod rules;
mod run;
mod scenarios;
mod scope;
mod test;
mod tidy;
mod vm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask CHORE
  tidy              house rules on every source file
  deps              who may depend on whom
  check             format, lint, rules and unit tests
  test [--all]      check, then every end-to-end test; lists what was skipped and why
  fuzz [--minutes N] [--sanitizer] [--seed N] [READER…]
                    feeds every reader with broken input; a second each when nothing is said
  reference         writes anew what the book shows as printed: flags, reports, answers, pictures
  release VERSION [--dry-run]
                    checks, version, changelog, commit and tag
  lock CMD…         run CMD alone among all privileged tests
  vm …              other kernels under an emulator: list, fetch, run, shell
  scenarios …       faults that are drawn by a seed: show, host, guests, healthy";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result<ExitCode> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let root = repository();
    match words.as_slice() {
        ["tidy"] => tidy::run(&root)?,
        ["deps"] => deps::run(&root)?,
        ["check"] => check::run(&root)?,
        ["test"] => return test::run(&root, scope::Scope::Core),
        ["test", "--all"] => return test::run(&root, scope::Scope::All),
        ["reference"] => reference::run(&root)?,
        ["release", version] => release::run(&root, version, false)?,
        ["release", version, "--dry-run"] => release::run(&root, version, true)?,
        ["fuzz", words @ ..] => fuzz::run(&root, words)?,
        ["vm", words @ ..] => return vm::run(&root, words),
        ["scenarios", words @ ..] => return scenarios::run(&root, words),
        ["lock", command @ ..] if !command.is_empty() => return lock::run(command),
        _ => bail!("no such chore\n{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The repository's root: the folder above this package.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}
