//! `rtscope snapshot` and `rtscope recover`: what the rings of applications hold, as a trace; and
//! traces that a killed recorder left.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use capture::{LookSummary, Unfinished, Whose, look, require_rings, unfinished};
use diagnosis::quoted;
use event::{ErrorKind, Result};

use super::record::processes;
use crate::exit::{Outcome, stdout_error};
use crate::flags::{Recover, Snapshot};

/// Runs `snapshot`: all rings, as they are now.
pub fn snapshot(typed: &Snapshot) -> Result<Outcome> {
    let output = typed.output.as_deref();
    let output = output.unwrap_or(Path::new("rtscope-snapshot"));
    let rings = typed.rings.as_deref();
    require_rings(rings, Whose::All)?;
    say(&look(output, rings, Whose::All, false)?)
}

/// Runs `recover`: what killed recorders left, and the rings of processes that are gone, which then
/// go too.
pub fn recover(typed: &Recover) -> Result<Outcome> {
    if let Some(trace) = &typed.trace {
        return finish(&[unfinished(trace)?], typed.output.as_deref());
    }
    let output = typed.output.as_deref();
    let rings = typed.rings.as_deref();
    // Who names a folder or an output means the rings.
    let left = match (output, rings) {
        (None, None) => Unfinished::all_in(Path::new(".")),
        _ => Vec::new(),
    };
    let output = output.unwrap_or(Path::new("rtscope-recovered"));
    let looked = require_rings(rings, Whose::Dead)
        .and_then(|()| look(output, rings, Whose::Dead, !typed.keep));
    match looked {
        Ok(summary) => say(&summary).and(finish(&left, None)),
        Err(error) if error.kind() == ErrorKind::NotFound && !left.is_empty() => {
            finish(&left, None)
        }
        Err(error) => Err(error),
    }
}

/// Gives traces that killed recorders left the names that they were to have, or this one.
fn finish(all: &[Unfinished], output: Option<&Path>) -> Result<Outcome> {
    let outcome = match !all.is_empty() && all.iter().all(Unfinished::is_empty) {
        // There was nothing to recover.
        true => Outcome::Inconclusive,
        false => Outcome::Fine,
    };
    let text = finished(all, output)?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).map_err(stdout_error)?;
    Ok(outcome)
}

/// The same; what is said of each.
fn finished(all: &[Unfinished], output: Option<&Path>) -> Result<String> {
    let mut text = String::new();
    for unfinished in all {
        if unfinished.is_empty() {
            unfinished.remove()?;
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(
                text,
                "process {} was killed before it recorded anything: {} was empty, and is removed",
                unfinished.pid,
                unfinished.path.display()
            );
            continue;
        }
        let is_streamed = unfinished.is_streamed();
        let path = unfinished.finish(output)?;
        let left = Unfinished {
            path: path.clone(),
            ..unfinished.clone()
        };
        let (pid, path) = (unfinished.pid, path.display());
        if is_streamed && !left.holds_events() {
            let _ = writeln!(
                text,
                "the other host has every event that process {pid} wrote until it was killed: none \
                 is left here\n{path} has the tables beside them alone, and can be removed"
            );
            continue;
        }
        let _ = writeln!(
            text,
            "what process {pid} wrote until it was killed: {path}\n\
             what comes behind the end of each stream was lost; reports count it as unknown\n\
             next:  rtscope cat {}",
            quoted(&path.to_string())
        );
    }
    Ok(text)
}

fn say(summary: &LookSummary) -> Result<Outcome> {
    let mut text = String::new();
    processes(&mut text, &summary.user);
    let path = summary.path.display();
    // Writing to a String cannot fail.
    if summary.removed > 0 {
        let _ = writeln!(text, "removed the rings of {} processes", summary.removed);
    }
    let _ = writeln!(
        text,
        "{} events of {} processes, {} lost: {path}",
        summary.user.events(),
        summary.user.processes.len(),
        summary.user.lost()
    );
    let _ = writeln!(text, "next:  rtscope cat {}", quoted(&path.to_string()));
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).map_err(stdout_error)?;
    Ok(Outcome::Fine)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn of_a_trace_that_another_host_has_it_is_said_whether_anything_is_left_here() {
        let check = |is_streamed: bool, rest: &[u8], expect: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            // The largest process id of Linux is 2^22.
            let path = folder.path().join(".trace.partial-99999999");
            fs::create_dir_all(path.join("kernel")).expect("a folder");
            fs::write(path.join("kernel/metadata"), "text").expect("written");
            let stream = path.join("kernel/channel0_0");
            // What was delivered is a hole.
            let file = File::create(&stream).expect("a file");
            let size = 8192 + rest.len() as u64;
            file.set_len(size).expect("a hole");
            file.write_all_at(rest, 8192).expect("written");
            if is_streamed {
                fs::write(path.join(".spool"), "").expect("marked");
            }
            let left = Unfinished {
                path,
                pid: 99_999_999,
                written_until: None,
            };
            let text = finished(&[left], None).expect("finished");
            assert!(text.contains(expect), "{text}");
            assert!(folder.path().join("trace/kernel/metadata").is_file());
        };
        check(true, b"packet", "until it was killed: ");
        check(true, b"", "none is left here");
        // Zeros that nobody delivered are for the reader to judge.
        check(false, b"", "until it was killed: ");
    }
}
