//! Programs and libraries in the memory of processes, so that addresses in call stacks have names.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ctf::writer::PayloadWriter;
use ring::LoadedObject;

use super::files::numbered;
use crate::user::loaded_objects;

/// A process loads its libraries in its first moments: so many looks at each, then the last.
const LOOKS: u8 = 3;
/// More are not told of all processes together.
const PROGRAMS_MAX: usize = 1_000_000;

/// A program or library in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedProgram {
    /// The process.
    pub pid: i32,
    /// What it is, and where.
    pub object: LoadedObject,
}

impl LoadedProgram {
    pub(super) fn write(&self, payload: &mut PayloadWriter) {
        let object = &self.object;
        payload
            .i32(self.pid)
            .u64(object.begin)
            .u64(object.size_bytes);
        payload.string(&object.path);
        payload.u16(object.build_id.len().min(usize::from(u16::MAX)) as u16);
        payload.raw(&object.build_id[..object.build_id.len().min(usize::from(u16::MAX))]);
    }
}

/// What is known of one process.
#[derive(Debug, Default)]
struct Known {
    /// Device and inode of what it runs.
    runs: (u64, u64),
    looks: u8,
    told: HashSet<(u64, String)>,
}

/// Which programs and libraries were told, of which process.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    processes: HashMap<i32, Known>,
    /// By device and inode: most processes have the same libraries.
    build_ids: HashMap<(u32, u32, u64), Vec<u8>>,
    told: usize,
}

impl Programs {
    /// What is new since the last look: at processes that came or run another program; at all of
    /// them when it is the last.
    pub fn look(&mut self, is_last: bool) -> Vec<LoadedProgram> {
        let pids = numbered(Path::new("/proc"));
        let there: HashSet<i32> = pids.iter().copied().collect();
        self.processes.retain(|pid, _| there.contains(pid));
        let mut found = Vec::new();
        for pid in pids {
            // A thread of the kernel runs no file.
            let Ok(facts) = fs::metadata(format!("/proc/{pid}/exe")) else {
                continue;
            };
            let runs = (facts.dev(), facts.ino());
            let known = self.processes.entry(pid).or_default();
            if known.runs != runs {
                *known = Known {
                    runs,
                    ..Known::default()
                };
            }
            if known.looks >= LOOKS && !is_last {
                continue;
            }
            known.looks = known.looks.saturating_add(1);
            for object in loaded_objects(pid, &mut self.build_ids) {
                let is_new = known.told.insert((object.begin, object.path.clone()));
                if is_new && self.told < PROGRAMS_MAX {
                    self.told += 1;
                    found.push(LoadedProgram { pid, object });
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_is_told_once() {
        let mut programs = Programs::default();
        let own = std::process::id() as i32;
        let here = our_own_program_is_told_once as fn() as usize as u64;
        let ours = |found: &[LoadedProgram]| {
            let holds = |one: &&LoadedProgram| {
                let end = one.object.begin + one.object.size_bytes;
                one.pid == own && (one.object.begin..end).contains(&here)
            };
            found.iter().filter(holds).count()
        };
        assert_eq!(ours(&programs.look(false)), 1);
        assert_eq!(ours(&programs.look(false)), 0);
        assert_eq!(ours(&programs.look(true)), 0);
    }
}
