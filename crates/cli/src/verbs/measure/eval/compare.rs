//! `rtscope measure eval --compare`.

use std::path::Path;

use event::{Error, ErrorKind, Result};
use report::{Compared, compare_html, compare_text, compare_verdict, file_hash};
use serde_json::Value;

use super::folder::{HASH, JSON};
use crate::exit::{Outcome, print_answer, write_file};

/// The page of a comparison.
const COMPARISON: &str = "compare.html";

/// Two evaluations side by side.
pub(super) fn run(a: &Path, b: &Path, output: &Path) -> Result<Outcome> {
    let (a, b) = (read(a)?, read(b)?);
    std::fs::create_dir_all(output).map_err(|error| {
        Error::io(format!("cannot make {}", output.display()), error)
            .fix("name a folder that is ours to make, as in -o /tmp/both")
    })?;
    let path = output.join(COMPARISON);
    write_file(&path, &compare_html(&a, &b))?;
    print_answer(&format!(
        "{}the report: {}\n",
        compare_text(&a, &b),
        path.display()
    ))?;
    Ok(match compare_verdict(&a, &b) {
        Compared::NotWorse => Outcome::Fine,
        Compared::Worse => Outcome::Exceeded,
        Compared::Inconclusive => Outcome::Inconclusive,
    })
}

/// The object of an evaluation, by its folder or its file.
fn read(path: &Path) -> Result<Value> {
    let file = match path.is_dir() {
        true => path.join(JSON),
        false => path.to_owned(),
    };
    let fix = "give the folders that rtscope measure eval -o wrote";
    let text = std::fs::read_to_string(&file)
        .map_err(|error| Error::io(format!("cannot read {}", file.display()), error).fix(fix))?;
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    if !report::is_eval(&value) {
        let what = format!("{} is no evaluation", file.display());
        let found = format!("schema {}, version {}", value["schema"], value["version"]);
        return Err(Error::new(ErrorKind::Corrupt, what).found(found).fix(fix));
    }
    unchanged(&file, &text)?;
    Ok(value)
}

/// Whether the file of an evaluation is the one that its hash was made of.
fn unchanged(file: &Path, text: &str) -> Result<()> {
    let hash = std::fs::read_to_string(file.with_file_name(HASH));
    let (found, path) = (file_hash(text), file.display());
    let Ok(hash) = hash else {
        note!("nobody can tell whether {path} was changed: there is no {HASH} beside it");
        return Ok(());
    };
    match hash.split_whitespace().next() {
        Some(signed) if signed == found => Ok(()),
        signed => Err(Error::new(
            ErrorKind::Corrupt,
            format!("{path} is not what was measured: it was changed"),
        )
        .found(format!(
            "SHA-256 {found}, and {HASH} has {}",
            signed.unwrap_or("none")
        ))
        .fix("take the copy that was kept with its hash, or measure anew")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_of_which_a_byte_was_changed_is_not_compared() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        let text = r#"{"schema": "rtscope.eval", "version": 2, "verdict": "fail"}"#;
        write(JSON, text);
        // Nobody knows.
        assert!(read(folder.path()).is_ok());
        write(HASH, &format!("{}  {JSON}\n", file_hash(text)));
        assert!(read(folder.path()).is_ok());
        let check = |text: &str, hash: &str, expect: &str| {
            write(JSON, text);
            write(HASH, hash);
            let told = format!("{:#}", read(folder.path()).expect_err("changed"));
            assert!(told.contains(expect), "{text}: {told}");
        };
        let hash = file_hash(text);
        check(&text.replace("fail", "pass"), &hash, "it was changed");
        check(&format!("{text} "), &hash, "it was changed");
        check(text, "", "has none");
        check(&text[..20], &hash, "is no evaluation");
    }
}
