//! The folder of an evaluation: which one, and what it holds.

use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};
use measure::journal::{self, Journal};
use report::{eval_file, eval_hash, eval_html, eval_junit};
use serde_json::Value;

use crate::exit::{write_error, write_file};

/// Which build this is.
pub(super) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("RTSCOPE_COMMIT"));
/// Where the reports go when nobody says it.
pub(super) const FOLDER: &str = "rtscope-eval";
/// What an evaluation's folder holds; the hash is in the form of `sha256sum --check`.
pub(super) const JSON: &str = "eval.json";
pub(super) const HASH: &str = "eval.json.sha256";
pub(super) const HTML: &str = "report.html";
const JUNIT: &str = "junit.xml";

/// The first of our own names that holds no evaluation.
pub(super) fn unused() -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{FOLDER}-{number}")));
    let mut names = std::iter::once(PathBuf::from(FOLDER)).chain(numbered);
    let unused = names.find(|folder| !holds_one(folder) && !journal::is_in(folder));
    unused.unwrap_or_else(|| PathBuf::from(FOLDER))
}

/// Whether an evaluation is in `folder`: an empty file is of one that came to nothing.
pub(super) fn holds_one(folder: &Path) -> bool {
    std::fs::metadata(folder.join(JSON)).is_ok_and(|file| file.len() > 0)
}

/// A folder that takes our files and holds none of another evaluation.
pub(super) fn make(folder: &Path) -> Result<()> {
    let path = folder.display();
    if holds_one(folder) {
        return Err(
            Error::new(ErrorKind::InvalidInput, "an evaluation is never replaced")
                .found(format!("{path} holds one"))
                .fix(format!("name another folder: -o {path}-2")),
        );
    }
    if journal::is_in(folder) {
        let (_, record) = Journal::resume(folder)?;
        if !record.parts.is_empty() {
            let what = "an evaluation is never replaced";
            let found = format!("{path} holds one that did not end");
            let fix =
                format!("go on with it: rtscope measure eval --resume {path}, or -o {path}-2");
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(found)
                .fix(fix));
        }
        forget(folder);
    }
    std::fs::create_dir_all(folder).map_err(|error| {
        Error::io(format!("cannot make {path}"), error)
            .fix("name a folder that is ours to make, as in -o /tmp/eval")
    })?;
    write_file(&folder.join(JSON), "")
}

/// Removes what was measured: nobody wants it, or it is nothing.
pub(super) fn forget(folder: &Path) {
    std::fs::remove_file(folder.join(journal::FILE)).ok();
}

/// Writes an evaluation, whole or not at all: nobody could go on with half of one. That of the runs
/// before it, which was interrupted, moves into a folder of its own.
pub(super) fn write(folder: &Path, evaluation: &Value) -> Result<()> {
    let files = [
        (HASH, format!("{}  {JSON}\n", eval_hash(evaluation))),
        (HTML, eval_html(evaluation)),
        (JUNIT, eval_junit(evaluation)),
        // The last: with it the folder holds an evaluation.
        (JSON, eval_file(evaluation)),
    ];
    let new = |name: &str| folder.join(format!("{name}.new"));
    let write = |(name, text): &(&str, String)| write_file(&new(name), text);
    let rename = |(name, _): &(&str, String)| {
        let path = folder.join(name);
        std::fs::rename(new(name), &path).map_err(|error| write_error(&path, error))
    };
    let written = files.iter().try_for_each(write);
    let written = written
        .and_then(|()| move_earlier(folder, evaluation))
        .and_then(|()| files.iter().try_for_each(rename));
    written.map_err(|error| {
        for (name, _) in &files {
            std::fs::remove_file(new(name)).ok();
        }
        let first = error.fixed_by().unwrap_or_default();
        let resume = format!("--resume {} --allow-gap DUR", folder.display());
        let fix = format!("{first}; then go on: rtscope measure eval {resume}");
        error.fix(fix)
    })
}

/// Moves the report of the runs before out of the way.
fn move_earlier(folder: &Path, evaluation: &Value) -> Result<()> {
    if !holds_one(folder) {
        return Ok(());
    }
    let parts = evaluation["parts"].as_array().map_or(0, Vec::len);
    let before = folder.join(format!("part-{}", parts.saturating_sub(1)));
    let moved = std::fs::create_dir_all(&before).and_then(|()| {
        let mut files = [JSON, HASH, HTML, JUNIT].into_iter();
        files.try_for_each(|name| {
            match std::fs::rename(folder.join(name), before.join(name)) {
                // Somebody removed it: what was measured since is no less worth.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                moved => moved,
            }
        })
    });
    moved.map_err(|error| {
        let what = format!("cannot move the report of before to {}", before.display());
        Error::io(what, error).fix("ls -l says who may")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_evaluation_that_has_no_room_leaves_nothing_that_looks_like_one() {
        let folder = tempfile::tempdir().expect("a folder");
        make(folder.path()).expect("ours");
        let names = || {
            let entries = std::fs::read_dir(folder.path()).expect("a folder");
            let names = entries.flatten().map(|entry| entry.file_name());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let before = names();
        // Where a folder is, no file can be written.
        let obstacle = folder.path().join("junit.xml.new");
        std::fs::create_dir(&obstacle).expect("made");
        let told = write(folder.path(), &json!({"verdict": "pass"})).expect_err("refused");
        assert!(format!("{told:#}").contains("--resume"), "{told:#}");
        std::fs::remove_dir(&obstacle).expect("removed");
        assert_eq!(names(), before);
        assert!(!holds_one(folder.path()));

        write(folder.path(), &json!({"verdict": "pass"})).expect("written");
        let expect = [HASH, HTML, JUNIT, JSON].map(std::ffi::OsString::from);
        assert_eq!(names(), expect.into());
        assert!(holds_one(folder.path()) && make(folder.path()).is_err());
    }
}
