//! Whether the files of the end can be written, which is asked at the begin: nobody waits for hours
//! to learn that one has no place.

use std::fs::File;
use std::io::Error;
use std::path::Path;

use crate::exit::Outcome;
use crate::options::CyclictestOutput;

/// How a run ends whose file cannot be opened, after it was said in cyclictest's words. Its own
/// exit code is 0 where the histogram is lost, which hides that: ours is 1.
pub(super) fn refused(output: &CyclictestOutput) -> Option<Outcome> {
    let histogram_file = output.histogram_file.as_deref();
    if let Some(path) = histogram_file.filter(|_| output.histogram.is_some())
        && let Some(error) = cannot_open(path)
    {
        note!("opening histogram file:: {}", words(&error));
        return Some(Outcome::Code(1));
    }
    let path = output.json_file.as_deref()?;
    let error = cannot_open(path)?;
    note!("Failed to open '{}'\n: {}", path.display(), words(&error));
    let code = error
        .raw_os_error()
        .and_then(|code| u8::try_from(code).ok());
    Some(Outcome::Code(code.unwrap_or(1)))
}

/// What is in the file stays until there is something else to write.
fn cannot_open(path: &Path) -> Option<Error> {
    let opened = File::options().create(true).append(true).open(path);
    opened.err()
}

/// As perror(3) says it.
pub(super) fn words(error: &Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
