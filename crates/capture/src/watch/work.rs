//! Names what a hit's target was busy with, by the files that its process has loaded: while it
//! still has them.

use std::collections::HashMap;
use std::path::Path;

use event::evidence::{Evidence, FoundStack, Frame, Hit, Worked};
use symbols::{CodeFiles, FoundAt, LoadedCode};

use crate::user::loaded_code;

/// Leaves of the looks at work those that these hits are about, with names and callers.
pub(super) fn name_work(evidence: &mut Vec<Evidence>, hits: &[Hit]) {
    let is_meant = |worked: &Worked| {
        let mut hits = hits.iter().filter(|hit| hit.task.tid == worked.task.tid);
        hits.any(|hit| (hit.origin..=hit.end).contains(&worked.time))
    };
    evidence.retain(|record| !matches!(record, Evidence::Worked(worked) if !is_meant(worked)));
    let mut processes: HashMap<u32, Vec<LoadedCode>> = HashMap::new();
    let mut files = CodeFiles::default();
    for record in evidence {
        if let Evidence::Worked(worked) = record {
            let loaded = processes.entry(worked.process);
            let loaded = loaded
                .or_insert_with_key(|pid| loaded_code(&Path::new("/proc").join(pid.to_string())));
            name(worked, loaded, &mut files);
        }
    }
}

fn name(worked: &mut Worked, loaded: &[LoadedCode], files: &mut CodeFiles) {
    let lay = std::mem::take::<FoundStack>(&mut worked.found);
    let instruction = worked.stack.first().map_or(0, |frame| frame.address);
    let found = FoundAt {
        instruction,
        stack_pointer: lay.stack_pointer,
        frame_pointer: lay.frame_pointer,
        words: &lay.words,
    };
    let addresses = files.callers(loaded, found).into_iter();
    let frame = |address| Frame {
        address,
        symbol: files.name(loaded, address),
    };
    worked.stack = addresses.map(frame).collect();
}
