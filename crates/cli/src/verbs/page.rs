//! An answer as one file for a ticket: `--html FILE` of `diagnose` and `watch`,
//! `--svg FILE` of `diagnose`.

use std::fs;
use std::io::{self, Write as _};
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

/// Writes `text` into `file`, which `flag` named. Whoever looks at a file while it is written anew
/// sees a whole one. A link stays one, and so does what is no file: a device, a pipe.
fn whole(flag: &str, file: &Path, text: String) -> Result<()> {
    written(file, &text).map_err(|error| {
        Error::io(format!("cannot write {}", file.display()), error)
            .fix(format!("give {flag} a file in a folder that is there"))
    })
}

fn written(file: &Path, text: &str) -> io::Result<()> {
    let file = &fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let is_new = fs::symlink_metadata(file).is_err();
    if !is_new && !file.is_file() {
        // No file is behind it that could be replaced. A link to nothing makes its target.
        return fs::write(file, text);
    }
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let part = folder.join(format!(".{name}.{}", std::process::id()));
    // Whatever is called so is not ours.
    let mut whole = fs::File::create_new(&part)?;
    let written = whole
        .write_all(text.as_bytes())
        .and_then(|()| fs::rename(&part, file));
    written.inspect_err(|_| {
        fs::remove_file(&part).ok();
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    #[test]
    fn a_link_and_a_pipe_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let read = |name: &str| fs::read_to_string(path(name)).unwrap();
        let write = |name: &str, text: &str| whole("--html", &path(name), text.to_owned());

        write("file", "old").unwrap();
        write("file", "new").unwrap();
        symlink("file", path("link")).unwrap();
        write("link", "by the link").unwrap();
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
        assert_eq!(read("file"), "by the link");
        symlink("later", path("early")).unwrap();
        write("early", "made").unwrap();
        assert_eq!(read("later"), "made");

        mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let pipe = path("pipe");
        let reader = std::thread::spawn(move || fs::read_to_string(pipe).unwrap());
        write("pipe", "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        let kind = fs::symlink_metadata(path("pipe")).unwrap().file_type();
        assert!(kind.is_fifo());

        assert!(write("missing/file", "").is_err());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 5, "nothing else is left");
    }
}
