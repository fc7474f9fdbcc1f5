//! Generated files that are committed, and the check that they are fresh.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

/// What to do with a generated file.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    /// Write it.
    Write,
    /// Say when it is stale, and change nothing.
    Check,
}

/// A committed file and the command whose stdout it holds.
struct Generated {
    path: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
}

/// All of them.
const GENERATED: &[Generated] = &[];

/// Writes or checks every generated file.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    let mut stale = Vec::new();
    for Generated {
        path,
        package,
        arguments,
    } in GENERATED
    {
        let mut command = run::cargo(root);
        command
            .args(["run", "--quiet", "--package", package, "--"])
            .args(*arguments);
        let fresh = output(&mut command)?;
        let file = root.join(path);
        if is_stale(std::fs::read(&file).ok().as_deref(), &fresh) {
            stale.push(*path);
            if mode == Mode::Write {
                std::fs::write(&file, fresh).with_context(|| format!("cannot write {path}"))?;
                eprintln!("wrote {path}");
            }
        }
    }
    if mode == Mode::Check && !stale.is_empty() {
        bail!("stale: {}; run cargo xtask codegen", stale.join(", "));
    }
    Ok(())
}

fn is_stale(committed: Option<&[u8]>, fresh: &[u8]) -> bool {
    committed != Some(fresh)
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let line = run::show(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start: {line}"))?;
    if !output.status.success() {
        bail!(
            "failed: {line}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_stale_when_it_is_absent_or_differs() {
        assert!(is_stale(None, b"x"));
        assert!(is_stale(Some(b"y"), b"x"));
        assert!(!is_stale(Some(b"x"), b"x"));
    }
}
