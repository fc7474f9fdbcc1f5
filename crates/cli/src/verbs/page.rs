//! An answer as one file for a ticket: `--html FILE` of `diagnose` and `watch`.

use std::fs;
use std::path::Path;

use diagnosis::Diagnosis;
use event::{Error, Result};
use report::{Incident, incident_html};
use timeline::Builder;
use trace::Trace;

/// The page of a diagnosis of `trace`, which lies at `path`.
///
/// # Errors
/// When the trace cannot be read again.
pub fn text(trace: &Trace, path: &Path, diagnosis: &Diagnosis) -> Result<String> {
    // The picture needs a walk of its own; without anything late there is none.
    let index = match diagnosis.activations.is_empty() {
        true => None,
        false => Some(Builder::new(trace).walk(|_| true)?),
    };
    Ok(incident_html(&Incident {
        diagnosis,
        info: trace.info(),
        index: index.as_ref(),
        trace: &path.display().to_string(),
        command: &capture::own_command_line(),
        utc: false,
    }))
}

/// Writes the page of a diagnosis of `trace`, which lies at `path`, into `file`.
///
/// # Errors
/// When the trace cannot be read again, or the file cannot be written.
pub fn write(file: &Path, trace: &Trace, path: &Path, diagnosis: &Diagnosis) -> Result<()> {
    let page = text(trace, path, diagnosis)?;
    // Whoever looks at the file while it is written anew sees a whole page.
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let cannot = |error| {
        Error::io(format!("cannot write {}", file.display()), error)
            .fix("give --html a file in a folder that is there")
    };
    let folder = parent.unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let part = folder.join(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&part, page).and_then(|()| fs::rename(&part, file));
    written.map_err(|error| {
        fs::remove_file(&part).ok();
        cannot(error)
    })
}
