//! Opens the traces of a verb, and says what is wrong with them that reading does not need.

use std::path::Path;

use event::Result;
use trace::{OpenOptions, Root, Trace};

/// So many places are named; `info --strict` names the others.
const NAMED_MAX: usize = 3;

/// Opens a trace.
///
/// # Errors
/// As [`Trace::open`].
pub fn open(path: &Path) -> Result<Trace> {
    open_all(&[Root::from(path)], &OpenOptions::default())
}

/// Opens several traces as one.
///
/// # Errors
/// As [`Trace::open_all`].
pub fn open_all(roots: &[Root], options: &OpenOptions) -> Result<Trace> {
    let trace = Trace::open_all(roots, options)?;
    for (part, violations) in trace.violations() {
        let named = violations.first.iter().take(NAMED_MAX);
        let mut found: Vec<String> = named
            .map(|violation| format!("line {}: {}", violation.line, violation.what))
            .collect();
        let more = violations.count - found.len() as u64;
        if more > 0 {
            found.push(format!("{more} more"));
        }
        let of_part = match part {
            "" => String::new(),
            part => format!(" of {part}"),
        };
        eprintln!(
            "warning: the metadata{of_part} breaks CTF 1.8, and is read all the same\n  \
             found: {}\n  fix:  rtscope info --strict has all of it, for whoever wrote the tracer",
            found.join("; ")
        );
    }
    Ok(trace)
}
