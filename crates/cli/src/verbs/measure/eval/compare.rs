//! `rtscope measure eval --compare`.

use std::path::Path;

use event::{Error, ErrorKind, Result};
use report::{Compared, compare_html, compare_text, compare_verdict};
use serde_json::Value;

use super::folder::JSON;
use crate::exit::{Outcome, print, write_file};

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
    print(&format!(
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
    Ok(value)
}
