//! Events of our own in the kernel's tables: probes in programs (uprobes) and in the kernel
//! (kprobes), in the group `rtscope_PID`, removed on drop.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use event::{Error, ErrorKind, Result};

use crate::{EventName, Tracefs};

/// How the names of our groups begin; the process follows.
const GROUP_PREFIX: &str = "rtscope_";

/// Events that this process made.
#[derive(Debug, Default)]
pub struct DynamicEvents {
    path: PathBuf,
    made: Vec<EventName>,
}

impl DynamicEvents {
    /// None yet.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when this kernel has no such events.
    pub fn new(tracefs: &Tracefs) -> Result<DynamicEvents> {
        let path = tracefs.root().join("dynamic_events");
        if !path.exists() {
            return Err(
                Error::new(ErrorKind::Unsupported, "this kernel has no dynamic events")
                    .found(format!("no {}", path.display()))
                    .fix("use a kernel of 5.0 or later with CONFIG_DYNAMIC_EVENTS=y"),
            );
        }
        Ok(DynamicEvents {
            path,
            made: Vec::new(),
        })
    }

    /// The group of this process's events.
    pub fn group() -> String {
        format!("{GROUP_PREFIX}{}", std::process::id())
    }

    /// Removes those of the process `pid`, which is gone.
    ///
    /// # Errors
    /// When the kernel refuses, because somebody has one enabled.
    pub fn remove_of(tracefs: &Tracefs, pid: u32) -> Result<()> {
        let path = tracefs.root().join("dynamic_events");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let group = format!(":{GROUP_PREFIX}{pid}/");
        let all = DynamicEvents {
            path,
            made: Vec::new(),
        };
        for line in text.lines() {
            let Some((_, rest)) = line.split_once(&group) else {
                continue;
            };
            let name = rest.split_whitespace().next().unwrap_or_default();
            let line = format!("-{group}{name}");
            all.write(&line)
                .map_err(|cause| all.refused(name, &line, cause))?;
        }
        Ok(())
    }

    /// Makes the event `name`: `kind` is `p`, `r` and so on, `definition` its place and its fields
    /// in the kernel's words. A name that is there gets a place more.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] with the kernel's own words when it refuses.
    pub fn make(&mut self, kind: &str, name: &str, definition: &str) -> Result<EventName> {
        let event = EventName {
            system: DynamicEvents::group(),
            name: name.to_owned(),
        };
        let line = format!("{kind}:{}/{name} {definition}", event.system);
        match self.write(&line) {
            Ok(()) => {
                if !self.made.contains(&event) {
                    self.made.push(event.clone());
                }
                Ok(event)
            }
            Err(cause) => Err(self.refused(name, &line, cause)),
        }
    }

    fn write(&self, line: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn refused(&self, name: &str, line: &str, cause: std::io::Error) -> Error {
        let log = self.path.with_file_name("error_log");
        let log = std::fs::read_to_string(log).unwrap_or_default();
        // Of others too: only the last entry can be ours.
        let said = last_complaint(&log, line).unwrap_or_else(|| cause.to_string());
        let kind = match cause.kind() {
            std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
            std::io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            _ => ErrorKind::InvalidInput,
        };
        Error::new(kind, format!("the kernel refuses the probe {name}"))
            .found(format!("'{line}': {said}"))
            .fix("change its place or its fields; rtscope doctor says what this kernel allows")
            .cause(cause)
    }

    /// The events that were made.
    pub fn events(&self) -> &[EventName] {
        &self.made
    }
}

/// Whoever enabled one of them must have let go of it before.
impl Drop for DynamicEvents {
    fn drop(&mut self) {
        for event in &self.made {
            // `rtscope doctor --clean` finds what stays.
            let _ = self.write(&format!("-:{}/{}", event.system, event.name));
        }
    }
}

/// What the kernel's log of errors says last, when that is about `line`.
fn last_complaint(log: &str, line: &str) -> Option<String> {
    let mut entry = log.rsplit("] ").next()?.lines();
    let said = entry.next()?.trim();
    let command = entry.next()?.trim();
    let of_ours = command.strip_prefix("Command: ")?;
    (of_ours == line).then(|| said.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_complaint_is_taken_where_it_is_about_our_line() {
        let log = "[  100.1] trace_kprobe: error: Old\n  Command: p:x/y z\n           ^\n\
                   [  200.2] trace_uprobe: error: Bad file\n  Command: p:a/b /x:0\n   ^\n";
        let check = |line: &str, expect: Option<&str>| {
            assert_eq!(last_complaint(log, line).as_deref(), expect);
        };
        check("p:a/b /x:0", Some("trace_uprobe: error: Bad file"));
        check("p:x/y z", None);
        assert_eq!(last_complaint("", "p:x/y z"), None);
    }
}
