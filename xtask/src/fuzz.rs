//! `cargo xtask fuzz`: builds the readers with counters on their edges and feeds them broken input.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::run;

/// Seconds for each reader in the quick gate.
const SMOKE_SECONDS: u64 = 1;
/// The compiler that has sanitizers.
const NIGHTLY: &str = "+nightly";

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Options {
    seconds: u64,
    sanitizer: bool,
    /// For the fuzzer itself.
    words: Vec<String>,
}

/// Runs the chore as it was typed.
pub fn run(root: &Path, words: &[&str]) -> Result<()> {
    fuzz(root, &parse(words)?)
}

/// A second for each reader, with the planted bugs.
pub fn smoke(root: &Path) -> Result<()> {
    run(root, &[])
}

fn parse(words: &[&str]) -> Result<Options> {
    let mut options = Options {
        seconds: SMOKE_SECONDS,
        sanitizer: false,
        words: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--minutes" => match words.next().and_then(|word| word.parse::<f64>().ok()) {
                Some(minutes) => options.seconds = (minutes * 60.0) as u64,
                None => bail!("--minutes needs a number"),
            },
            "--sanitizer" => options.sanitizer = true,
            word => options.words.push(word.to_owned()),
        }
    }
    Ok(options)
}

fn fuzz(root: &Path, options: &Options) -> Result<()> {
    let target = target_directory(root).join(match options.sanitizer {
        true => "fuzz-sanitizer",
        false => "fuzz",
    });
    let mut build = match options.sanitizer {
        // The compiler that runs us is a certain one; this asks for another.
        true => Command::new("cargo"),
        false => run::cargo(root),
    };
    build.current_dir(root);
    if options.sanitizer {
        if !has_nightly() {
            eprintln!("skipped: sanitizer fuzzing: no nightly compiler (rustup install nightly)");
            return Ok(());
        }
        build.arg(NIGHTLY).env("RUSTFLAGS", "-Zsanitizer=address");
        build.env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    }
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    build
        .args(["build", "--quiet", "--package", "fuzz", "--profile", "fuzz"])
        .args(["--target", &triple])
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/rustc.sh"));
    run::must_succeed(&mut build)?;
    let mut fuzzer = Command::new(target.join(triple).join("fuzz/fuzz"));
    fuzzer
        .current_dir(root)
        .args(["--seconds", &options.seconds.to_string(), "--findings"])
        .arg(target.join("findings"))
        .args(&options.words);
    run::must_succeed(&mut fuzzer)
}

/// Whether the toolchain with sanitizers is installed.
fn has_nightly() -> bool {
    let version = Command::new("cargo")
        .args([NIGHTLY, "--version"])
        .env_remove("RUSTUP_TOOLCHAIN")
        .output();
    version.is_ok_and(|output| output.status.success())
}

/// Where cargo builds.
fn target_directory(root: &Path) -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR");
    named.map_or_else(|| root.join("target"), |named| root.join(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_read_and_the_rest_is_the_fuzzers() {
        let options = parse(&["--minutes", "0.5", "dat", "--seed", "7"]).expect("sound");
        let expect = Options {
            seconds: 30,
            sanitizer: false,
            words: ["dat", "--seed", "7"].map(str::to_owned).into(),
        };
        assert_eq!(options, expect);
        assert!(parse(&["--minutes"]).is_err());
    }
}
