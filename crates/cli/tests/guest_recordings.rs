//! The same table of verbs and quantities for recordings of other kernels, brought out of guests
//! (docs/one-truth.md). `RTSCOPE_GUESTS` names a folder: `cargo xtask vm run one-truth` leaves them
//! below `target/vm`. What a recorder said is compared word by word: it has to be of this build.

mod verbs_agree;

use std::path::{Path, PathBuf};

use verbs_agree::check;

const GUESTS: &str = "RTSCOPE_GUESTS";
/// What a recorder said lies beside its recording, under the same name with this end.
const SAID: &str = "said";

/// Recordings at a folder or below it of which is known what their recorder said.
fn recordings(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    inside.retain(|path| path.is_dir() && !path.is_symlink());
    inside.sort();
    for path in inside {
        match path.with_extension(SAID).is_file() {
            true => found.push(path),
            false => recordings(&path, found),
        }
    }
}

#[test]
fn every_verb_tells_the_same_of_each_recording_of_a_guest() {
    let Some(folder) = std::env::var_os(GUESTS) else {
        return testkit::skip("guest_recordings", "RTSCOPE_GUESTS is not set");
    };
    let mut found = Vec::new();
    recordings(Path::new(&folder), &mut found);
    assert!(!found.is_empty(), "{}: no recordings", folder.display());
    for trace in found {
        let said = std::fs::read_to_string(trace.with_extension(SAID)).expect("what was said");
        println!("{}: {:?}", trace.display(), check(&trace, &said));
    }
}
