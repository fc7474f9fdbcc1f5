//! Debian packages as a source of kernels: found by pattern, unpacked without being installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::run;

/// The newest package whose name matches the regular expression `pattern`.
pub fn newest(pattern: &str) -> Result<String> {
    let found = output(Command::new("apt-cache").args(["search", "--names-only", pattern]))?;
    let names = found.lines().filter_map(|line| line.split(' ').next());
    names
        .max_by_key(|name| version_key(name))
        .map(str::to_owned)
        .with_context(|| {
            format!("no package matches {pattern}\n  fix: apt-get update, or tests/vm/kernels.tsv")
        })
}

/// The packages that `package` cannot do without, as far as `wanted` accepts their names.
pub fn depends(package: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let found = output(Command::new("apt-cache").args(["depends", "--important", package]))?;
    Ok(found
        .lines()
        .filter_map(|line| {
            line.trim_start_matches([' ', '|'])
                .strip_prefix("Depends: ")
        })
        .filter(|name| wanted(name))
        .map(str::to_owned)
        .collect())
}

/// The version that `apt-get download` would fetch.
pub fn version(package: &str) -> Result<String> {
    let found = output(Command::new("apt-cache").args(["show", "--no-all-versions", package]))?;
    let version = found
        .lines()
        .find_map(|line| line.strip_prefix("Version: "));
    version
        .map(str::to_owned)
        .with_context(|| format!("no version of {package} is known"))
}

/// Downloads `package` into the folder `downloads` and unpacks it into `root`.
pub fn unpack(package: &str, downloads: &Path, root: &Path) -> Result<()> {
    std::fs::create_dir_all(downloads)?;
    let mut download = Command::new("apt-get");
    // The sandbox user of apt may not write here.
    download.args(["-q", "-o", "APT::Sandbox::User=root", "download", package]);
    run::must_succeed(download.current_dir(downloads))?;
    let prefix = format!("{package}_");
    let entries = std::fs::read_dir(downloads)?.filter_map(|entry| entry.ok());
    let mut archives = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(&prefix) && name.ends_with(".deb")
    });
    let Some(archive) = archives.next() else {
        bail!("apt-get left no {prefix}*.deb in {}", downloads.display());
    };
    let mut extract = Command::new("dpkg");
    extract.arg("-x").arg(archive.path()).arg(root);
    run::must_succeed(&mut extract)?;
    std::fs::remove_file(archive.path())?;
    Ok(())
}

/// Numbers compare as numbers, so that 6.12.9 is older than 6.12.117.
fn version_key(name: &str) -> Vec<(u64, String)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let text = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (word, after) = after.split_at(text);
        key.push((number.parse().unwrap_or(0), word.to_owned()));
        rest = after;
    }
    key
}

/// What `command` writes to stdout; a status other than 0 is an error.
pub fn output(command: &mut Command) -> Result<String> {
    let line = run::show(command);
    let output = command.output();
    let output = output.with_context(|| format!("cannot start: {line}"))?;
    ensure!(
        output.status.success(),
        "failed ({}): {line}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_version_compares_greater_number_by_number() {
        let check = |older: &str, newer: &str| {
            assert!(version_key(older) < version_key(newer), "{older} {newer}");
        };
        check(
            "linux-image-6.12.9+deb12-rt",
            "linux-image-6.12.117+deb12-rt",
        );
        check("linux-image-6.1.0-9-amd64", "linux-image-6.1.0-56-amd64");
        check("linux-image-6.1.0-56-amd64", "linux-image-6.12.1-amd64");
    }
}
