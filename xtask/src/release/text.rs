//! What a release changes in the repository's files, as text.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail, ensure};

/// The head of the section in which changes are collected.
const UNRELEASED: &str = "## Unreleased";

/// A version of the program, its libraries and its packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Version> {
        let wrong = || format!("not a version\n  found: '{text}'\n  fix:  give it as in 0.2.0");
        let mut parts = text.split('.').map(|part| {
            let plain = part == "0" || !part.starts_with(['0', '+']);
            plain.then(|| part.parse::<u64>().ok()).flatten()
        });
        let mut part = || parts.next().flatten().with_context(wrong);
        let version = Version {
            major: part()?,
            minor: part()?,
            patch: part()?,
        };
        ensure!(parts.next().is_none(), wrong());
        Ok(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Whether this one may come after `old`: one step, with zeros behind it.
    fn follows(self, old: Version) -> bool {
        let (major, minor, patch) = (old.major, old.minor, old.patch);
        let steps = [
            (major + 1, 0, 0),
            (major, minor + 1, 0),
            (major, minor, patch + 1),
        ];
        steps.contains(&(self.major, self.minor, self.patch))
    }
}

/// The manifest of the workspace with the new version; it has the only one.
pub fn with_version(manifest: &str, version: Version) -> Result<String> {
    let line = value_line(manifest, "version")?;
    let old: Version = value(line).parse()?;
    // The first release has the version that has stood there all along.
    ensure!(
        version == old || version.follows(old),
        "{version} does not come after {old}\n  found: '{version}'\n  fix:  one step: the major, \
         the minor or the patch version, with zeros behind it"
    );
    Ok(manifest.replacen(line, &format!("version = \"{version}\""), 1))
}

/// The changelog with the collected changes under the version, and room for the next ones.
pub fn with_section(changelog: &str, version: Version, day: &str) -> Result<String> {
    let (before, rest) = changelog.split_once(UNRELEASED).context(
        "the changelog has no section of what is new\n  found: no line '## Unreleased'\n  fix:  \
         begin one, with what changed for users",
    )?;
    let (_, changes) = rest.split_once('\n').unwrap_or((rest, ""));
    let own = changes.split("\n## ").next().unwrap_or_default();
    ensure!(
        own.lines().any(|line| line.starts_with("- ")),
        "nothing is new\n  found: no line that begins with '- ' below '{UNRELEASED}'\n  fix:  \
         write what changed for users, or release nothing"
    );
    let is_there = changelog
        .lines()
        .any(|line| line.starts_with(&format!("## {version},")));
    ensure!(
        !is_there,
        "{version} was released already\n  found: its section in the changelog\n  fix:  give the \
         next version"
    );
    Ok(format!(
        "{before}{UNRELEASED}\n\n## {version}, {day}\n{changes}"
    ))
}

/// The oldest Rust that builds this is said in two places, alike.
pub fn oldest_rust_is_said_alike(manifest: &str, script: &str) -> Result<()> {
    let in_manifest = value(value_line(manifest, "rust-version")?);
    let in_script = script
        .lines()
        .find_map(|line| line.strip_prefix("rust_min="));
    if in_script != Some(in_manifest) {
        bail!(
            "two oldest versions of Rust\n  found: {in_manifest} in Cargo.toml, {} in \
             packaging/deps.sh\n  fix:  write the one of Cargo.toml",
            in_script.unwrap_or("none")
        );
    }
    Ok(())
}

/// The first line that gives `key` a value.
fn value_line<'a>(manifest: &'a str, key: &str) -> Result<&'a str> {
    let mut lines = manifest.lines();
    let line = lines.find(|line| line.starts_with(&format!("{key} = \"")));
    line.with_context(|| format!("Cargo.toml has no {key}"))
}

fn value(line: &str) -> &str {
    line.split('"').nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[workspace.package]\nversion = \"0.9.3\"\nrust-version = \"1.89\"\n\
                            [workspace.dependencies]\nx = { version = \"0.9.3\" }\n";

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    #[test]
    fn a_version_has_three_numbers_and_nothing_else() {
        let check = |text: &str, expect: Option<&str>| {
            let read = text.parse::<Version>().ok();
            let read = read.map(|version| version.to_string());
            assert_eq!(read.as_deref(), expect, "{text}");
        };
        check("0.2.0", Some("0.2.0"));
        check("10.20.30", Some("10.20.30"));
        for wrong in [
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "1.02.3",
            "1.2.+3",
            "1.2.3-rc1",
            "",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_version_comes_one_step_after_the_last() {
        let check = |new: &str, expect: bool| {
            let changed = with_version(MANIFEST, version(new));
            assert_eq!(changed.is_ok(), expect, "{new}: {changed:?}");
        };
        for fit in ["0.9.3", "0.9.4", "0.10.0", "1.0.0"] {
            check(fit, true);
        }
        for unfit in [
            "0.9.2", "0.9.5", "0.10.1", "0.11.0", "1.0.1", "2.0.0", "0.8.0",
        ] {
            check(unfit, false);
        }
    }

    #[test]
    fn only_the_version_of_the_workspace_is_changed() {
        let changed = with_version(MANIFEST, version("0.10.0")).expect("changed");
        assert_eq!(changed, MANIFEST.replacen("0.9.3", "0.10.0", 1));
    }

    #[test]
    fn what_was_collected_stands_under_the_version() {
        let check = |old: &str, expect: Option<&str>| {
            let new = with_section(old, version("0.2.0"), "2027-01-02").ok();
            assert_eq!(new.as_deref(), expect, "{old}");
        };
        check(
            "# Changelog\n\n## Unreleased: the first version\n\n- a\n\n## 0.1.0, 2026-01-01\n- b\n",
            Some(
                "# Changelog\n\n## Unreleased\n\n## 0.2.0, 2027-01-02\n\n- a\n\n\
                 ## 0.1.0, 2026-01-01\n- b\n",
            ),
        );
        check(
            "# Changelog\n\n## Unreleased\n\n## 0.1.0, 2026-01-01\n- b\n",
            None,
        );
        check("# Changelog\n\n## 0.1.0, 2026-01-01\n- b\n", None);
        check("## Unreleased\n- a\n\n## 0.2.0, 2026-12-01\n- b\n", None);
    }

    #[test]
    fn the_oldest_rust_is_one() {
        assert!(oldest_rust_is_said_alike(MANIFEST, "#!/bin/sh\nrust_min=1.89\n").is_ok());
        assert!(oldest_rust_is_said_alike(MANIFEST, "rust_min=1.88\n").is_err());
        assert!(oldest_rust_is_said_alike(MANIFEST, "").is_err());
    }
}
