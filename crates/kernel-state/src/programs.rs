//! Which program each process runs, by its file's name: its threads may be called otherwise.

use std::sync::Arc;

use event::NumberMap;
use trace::EventView;

use crate::bind::{Dump, Life};

/// The names of the files, as far as events say them.
#[derive(Debug, Default)]
pub struct Programs {
    by_pid: NumberMap<i32, Arc<[u8]>>,
}

impl Programs {
    /// What a process's file is called.
    pub fn of(&self, pid: i32) -> Option<&[u8]> {
        self.by_pid.get(&pid).map(AsRef::as_ref)
    }

    /// A process runs another program, or is made and runs its maker's.
    pub fn life(&mut self, life: Life, event: &EventView<'_>) {
        match life {
            Life::Exec(fields) => {
                if let Some(file) = fields.file(event) {
                    // Whichever thread it is, it is now the first of its process.
                    self.by_pid.insert(fields.tid(event), file.into());
                }
            }
            Life::Fork {
                parent,
                child_tid,
                child_pid,
                ..
            } => {
                let child = event.i64(child_tid);
                // Another thread of a process runs what that runs.
                if child_pid.is_some_and(|pid| event.i64(pid) != child) {
                    return;
                }
                let file = self.by_pid.get(&(event.i64(parent) as i32)).cloned();
                match file {
                    Some(file) => self.by_pid.insert(child as i32, file),
                    // Its number may have been another's.
                    None => self.by_pid.remove(&(child as i32)),
                };
            }
            Life::Rename { .. } | Life::New { .. } | Life::Exit { .. } => {}
        }
    }

    /// The process of which the state dump says it, where that is news.
    pub fn dump(&mut self, dump: Dump, event: &EventView<'_>) -> Option<i32> {
        let Dump::Program { pid, file } = dump else {
            return None;
        };
        let (pid, file) = (event.i64(pid) as i32, event.text(file));
        let is_news = !file.is_empty() && self.of(pid) != Some(file);
        is_news.then(|| {
            self.by_pid.insert(pid, file.into());
            pid
        })
    }
}
