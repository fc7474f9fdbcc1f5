//! Where tracefs is mounted, and what this kernel offers there.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use event::{Error, ErrorKind, Result};

use crate::{EventFormat, EventName, PageLayout};

/// The usual place.
const MOUNT_POINT: &str = "/sys/kernel/tracing";

/// A mounted tracefs. Only read here: all writes go below an [`crate::Instance`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// Finds the mount point.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when tracefs is not mounted, [`ErrorKind::PermissionDenied`] when
    /// this process may not look into it; both with the command that fixes it.
    pub fn find() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| Error::io("cannot read /proc/self/mountinfo", error))?;
        let root = mount_point(&mounts).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "tracefs is not mounted")
                .found("no file system of type tracefs in /proc/self/mountinfo")
                .fix(format!("sudo mount -t tracefs nodev {MOUNT_POINT}"))
        })?;
        let tracefs = Tracefs { root };
        tracefs.check_access()?;
        Ok(tracefs)
    }

    fn check_access(&self) -> Result<()> {
        match fs::read_dir(self.root.join("instances")) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Error::io(
                format!("cannot look into {}", self.root.display()),
                error,
            )
            .fix("run the same command with sudo")),
            Err(error) => Err(Error::io("this kernel's tracefs has no instances", error)
                .fix("use a kernel of 3.10 or later with CONFIG_TRACING=y")),
        }
    }

    /// The mount point.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The text of a file below the mount point.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.root.join(path);
        read_text(&path)
            .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))
    }

    /// Every tracepoint of this kernel, sorted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn available_events(&self) -> Result<Vec<EventName>> {
        let text = self.read("available_events")?;
        let mut events: Vec<_> = text.lines().filter_map(EventName::parse).collect();
        events.sort();
        events.dedup();
        Ok(events)
    }

    /// The number and the fields of one tracepoint.
    ///
    /// # Errors
    /// When this kernel does not have it, or its file makes no sense.
    pub fn format(&self, event: &EventName) -> Result<EventFormat> {
        let text = self.read(format!("events/{}/{}/format", event.system, event.name))?;
        EventFormat::parse(&event.system, &text)
    }

    /// The layout of sub-buffers of the usual size.
    ///
    /// # Errors
    /// When the file cannot be read or makes no sense.
    pub fn page_layout(&self) -> Result<PageLayout> {
        PageLayout::parse(&self.read("events/header_page")?)
    }

    /// How many CPUs have a ring in every instance: all that the machine may ever have.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn cpu_count(&self) -> Result<usize> {
        let path = self.root.join("per_cpu");
        let entries = fs::read_dir(&path)
            .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
        Ok(entries.flatten().count())
    }

    /// Whether the file `path` exists below the mount point: how features are probed.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

/// The whole of a tracefs file. Some of them answer the first read only, so that it must be large
/// (`read_to_string` begins with 32 bytes).
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut bytes = vec![0; 64 << 10];
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..])? {
            0 => break,
            more => length += more,
        }
        if length == bytes.len() {
            bytes.resize(length * 2, 0);
        }
    }
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a word to a tracefs file.
///
/// # Errors
/// With the word and the file, when the kernel refuses.
pub(crate) fn write_text(path: &Path, text: &str, append: bool) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).append(append);
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        Error::io(
            format!("cannot write '{text}' to {}", path.display()),
            error,
        )
    })
}

/// The first mount of tracefs in `mountinfo`; the usual place is preferred.
fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    let points = mountinfo.lines().filter_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let kind = tail.split(' ').next()?;
        let point = head.split(' ').nth(4)?;
        (kind == "tracefs").then(|| PathBuf::from(point.replace("\\040", " ")))
    });
    let points: Vec<_> = points.collect();
    let usual = points
        .iter()
        .find(|point| point.as_path() == Path::new(MOUNT_POINT));
    usual.or(points.first()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_mount_point_is_preferred_to_the_automatic_one() {
        let debug = "9 8 0:7 / /sys/kernel/debug/tracing rw,x shared:5 - tracefs nodev rw";
        let usual = "9 8 0:7 / /sys/kernel/tracing rw,relatime - tracefs nodev rw";
        let other = "9 8 0:7 / /proc rw - proc proc rw";
        let check = |lines: &[&str], expect: Option<&str>| {
            assert_eq!(mount_point(&lines.join("\n")), expect.map(PathBuf::from));
        };
        check(&[other, debug, usual], Some("/sys/kernel/tracing"));
        check(&[debug], Some("/sys/kernel/debug/tracing"));
        check(&[other, ""], None);
    }
}
