//! `cargo xtask release VERSION [--dry-run]`: from a clean tree to a commit and a tag, with every
//! check on the way. `docs/releasing.md` says what a person does before and after.

mod text;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{deps, run, tidy};
use text::Version;

const MANIFEST: &str = "Cargo.toml";
const CHANGELOG: &str = "CHANGELOG.md";

/// What is run before anything is written; the last ones take long.
const CHECKS: &[&[&str]] = &[
    &["make", "licences"],
    &["make", "book"],
    &[
        "cargo",
        "publish",
        "--dry-run",
        "--package",
        "rtscope-probe",
    ],
    &["make", "test"],
    &["make", "packages"],
    &["make", "check-packages"],
];

/// Releases `version`; in a dry run it writes nothing and runs only what takes seconds.
pub fn run(root: &Path, version: &str, is_dry: bool) -> Result<()> {
    let version: Version = version.parse()?;
    let read = |name: &str| {
        let path = root.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (manifest, changelog) = (read(MANIFEST)?, read(CHANGELOG)?);
    text::oldest_rust_is_said_alike(&manifest, &read("packaging/deps.sh")?)?;
    let manifest = text::with_version(&manifest, version)?;
    let changelog = text::with_section(&changelog, version, &today()?)?;
    tidy::run(root)?;
    deps::run(root)?;
    if is_dry {
        eprint!("{}", plan(version));
        return Ok(());
    }
    tree_is_clean(root)?;
    for words in CHECKS {
        run::must_succeed(Command::new(words[0]).args(&words[1..]).current_dir(root))?;
    }
    std::fs::write(root.join(MANIFEST), manifest)?;
    std::fs::write(root.join(CHANGELOG), changelog)?;
    // Takes the new version into the lock file, and nothing else.
    run::must_succeed(run::cargo(root).args(["update", "--workspace", "--offline"]))?;
    let tag = format!("v{version}");
    git(
        root,
        &[
            "commit",
            "--all",
            "--message",
            &format!("Version {version}"),
        ],
    )?;
    git(
        root,
        &[
            "tag",
            "--annotate",
            &tag,
            "--message",
            &format!("rtscope {version}"),
        ],
    )?;
    eprintln!("released {version}: look at it, then: git push --follow-tags");
    Ok(())
}

/// What a release does, for who asks before.
fn plan(version: Version) -> String {
    let mut plan = String::from(
        "versions, changelog, house rules and dependencies are fit; a release would now:\n",
    );
    for words in CHECKS {
        plan += &format!("  run {}\n", words.join(" "));
    }
    plan += &format!("  write {version} into {MANIFEST}, Cargo.lock and {CHANGELOG}\n");
    plan += &format!("  commit, and tag v{version}\n");
    plan
}

fn git(root: &Path, words: &[&str]) -> Result<()> {
    run::must_succeed(Command::new("git").args(words).current_dir(root))
}

fn tree_is_clean(root: &Path) -> Result<()> {
    let mut command = Command::new("git");
    command.args(["status", "--porcelain"]).current_dir(root);
    let output = command.output().context("cannot start git")?;
    ensure!(output.status.success(), "git status failed");
    let changed = String::from_utf8_lossy(&output.stdout);
    if let Some(first) = changed.lines().next() {
        bail!("the tree has changes\n  found: {first}\n  fix:  git commit, or git stash");
    }
    Ok(())
}

/// The day, as the changelog has it.
fn today() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let output = output.context("cannot start date")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_names_every_check_and_what_is_written() {
        let plan = plan("1.2.3".parse().expect("a version"));
        for words in CHECKS {
            assert!(plan.contains(&words.join(" ")), "{words:?}: {plan}");
        }
        assert!(
            plan.contains("tag v1.2.3") && plan.contains(CHANGELOG),
            "{plan}"
        );
    }
}
