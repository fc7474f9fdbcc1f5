//! `cargo xtask fuzz`: builds the readers with counters on their edges and feeds them broken input.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::run;

/// Seconds for each reader in the quick gate.
const SMOKE_SECONDS: u64 = 1;

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
    let target = run::target_folder(root).join(match options.sanitizer {
        true => "fuzz-sanitizer",
        false => "fuzz",
    });
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut build = run::cargo(root);
    if options.sanitizer {
        if !has_sanitizer(&triple) {
            println!("skipped: sanitizer fuzzing: this compiler came without AddressSanitizer");
            return Ok(());
        }
        // A stable compiler has the sanitizer and its runtime; only the option is for nightly ones.
        build.env("RUSTC_BOOTSTRAP", "1");
        build.env("RUSTFLAGS", "-Zsanitizer=address");
    }
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

/// Whether the sanitizer's runtime lies beside the compiler's libraries.
fn has_sanitizer(triple: &str) -> bool {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--print", "target-libdir", "--target", triple])
        .output();
    let Ok(output) = output else { return false };
    let libraries = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let entries = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.ends_with("_rt.asan.a"))
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
