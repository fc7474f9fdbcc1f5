//! Tracks: made when their first event comes, each with a number of its own.

use std::collections::HashMap;

use event::Cpu;

use super::proto::{ThreadDescriptor, TrackDescriptor};

/// What a track shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Track {
    /// The group of all CPUs' tracks.
    Kernel,
    /// Events of the kernel on one CPU; none where the trace names no CPU.
    Cpu(Option<Cpu>),
    /// A thread: its system calls.
    Thread(i32),
    /// Events of one provider in a thread.
    User(i32, String),
    /// Events of one provider on a CPU, where nobody knows the thread.
    UserOnCpu(Option<Cpu>, String),
}

/// The tracks that exist.
#[derive(Default)]
pub(super) struct Tracks {
    numbers: HashMap<Track, u64>,
    /// Processes and names of threads.
    pub threads: HashMap<i32, Thread>,
}

/// What is known of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub pid: Option<i32>,
    pub name: Option<String>,
}

impl Tracks {
    /// The number of a track, and its description and those of its parents when they are new, the
    /// parents first.
    pub fn number(&mut self, track: &Track, new: &mut Vec<TrackDescriptor>) -> u64 {
        if let Some(number) = self.numbers.get(track) {
            return *number;
        }
        let parent = match track {
            Track::Cpu(_) => Some(Track::Kernel),
            Track::User(tid, _) => Some(Track::Thread(*tid)),
            Track::Kernel | Track::Thread(_) | Track::UserOnCpu(..) => None,
        };
        let parent_uuid = parent.map(|parent| self.number(&parent, new));
        // Zero means no track.
        let uuid = self.numbers.len() as u64 + 1;
        self.numbers.insert(track.clone(), uuid);
        let on = |cpu: &Option<Cpu>| cpu.map_or("no CPU".to_owned(), |cpu| cpu.to_string());
        let (name, thread) = match track {
            Track::Kernel => (Some("Kernel events".to_owned()), None),
            Track::Cpu(cpu) => (Some(on(cpu)), None),
            Track::User(_, provider) => (Some(provider.clone()), None),
            Track::UserOnCpu(cpu, provider) => (Some(format!("{provider} on {}", on(cpu))), None),
            Track::Thread(tid) => {
                let known = self.threads.get(tid).cloned().unwrap_or_default();
                let thread = ThreadDescriptor {
                    pid: Some(known.pid.unwrap_or(*tid)),
                    tid: Some(i64::from(*tid)),
                    thread_name: known.name,
                };
                (None, Some(thread))
            }
        };
        new.push(TrackDescriptor {
            uuid: Some(uuid),
            name,
            thread,
            parent_uuid,
        });
        uuid
    }
}
