//! An answer as one file for a ticket: `--html FILE` of `diagnose` and `watch`,
//! `--svg FILE` of `diagnose`.

use std::fs;
use std::path::Path;

use diagnosis::Diagnosis;
use event::{Error, ErrorKind, Result};
use report::{Incident, incident_html, incident_svg};
use timeline::Builder;
use trace::Trace;

/// The page of a diagnosis of `trace`, which lies at `path`.
///
/// # Errors
/// When the trace cannot be read again.
pub fn text(trace: &Trace, path: &Path, diagnosis: &Diagnosis) -> Result<String> {
    of_incident(trace, path, diagnosis, incident_html)
}

/// What `make` makes of the first late activation.
fn of_incident<T>(
    trace: &Trace,
    path: &Path,
    diagnosis: &Diagnosis,
    make: impl Fn(&Incident<'_>) -> T,
) -> Result<T> {
    // The picture needs a walk of its own; without anything late there is none.
    let index = match diagnosis.activations.is_empty() {
        true => None,
        false => Some(Builder::new(trace).walk(|_| true)?),
    };
    Ok(make(&Incident {
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
    whole("--html", file, text(trace, path, diagnosis)?)
}

/// Writes the picture of that page alone.
///
/// # Errors
/// As [`write`], and when there is nothing to draw.
pub fn write_picture(file: &Path, trace: &Trace, path: &Path, diagnosis: &Diagnosis) -> Result<()> {
    let picture = of_incident(trace, path, diagnosis, incident_svg)?;
    let picture = picture.ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "there is no picture")
            .found("nothing was late, or what the CPUs did then is not in the trace")
            .fix("look at the text: the same command without --svg")
    })?;
    whole("--svg", file, picture)
}

/// Writes `text` into `file`, which `flag` named. Whoever looks at the file while it is written
/// anew sees a whole one.
fn whole(flag: &str, file: &Path, text: String) -> Result<()> {
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let cannot = |error| {
        Error::io(format!("cannot write {}", file.display()), error)
            .fix(format!("give {flag} a file in a folder that is there"))
    };
    let folder = parent.unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let part = folder.join(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, file));
    written.map_err(|error| {
        fs::remove_file(&part).ok();
        cannot(error)
    })
}
