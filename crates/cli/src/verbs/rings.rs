//! `rtscope snapshot` and `rtscope recover`: what the rings of applications hold, as a trace.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use capture::{LookSummary, Whose, look, require_rings};
use event::Result;

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

/// Runs `recover`: the rings of processes that are gone, which then go too.
pub fn recover(typed: &Recover) -> Result<Outcome> {
    let output = typed.output.as_deref();
    let output = output.unwrap_or(Path::new("rtscope-recovered"));
    let rings = typed.rings.as_deref();
    require_rings(rings, Whose::Dead)?;
    say(&look(output, rings, Whose::Dead, !typed.keep)?)
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
    let _ = writeln!(text, "next:  rtscope cat {path}");
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).map_err(stdout_error)?;
    Ok(Outcome::Fine)
}
