//! Pushes what is new to the fleet: when asked, and from the daemon in a thread of its own, since a
//! target that is away may keep a writer waiting.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration as Time, Instant};

use event::Result;
use fleet::{Directory, ObjectStore, Push, Pushed, push};

use crate::exit::{Outcome, print};
use crate::flags::MonitorPush;
use crate::options::{FleetOptions, MonitorOptions};

/// `rtscope monitor push`.
pub(super) fn push_now(typed: &MonitorPush) -> Result<Outcome> {
    let (fleet, what) = MonitorOptions::push(typed)?;
    let pushed = push_to(&fleet, &what)?;
    let Pushed {
        files,
        bytes,
        intervals,
        ..
    } = pushed;
    print(&format!(
        "{intervals} intervals in {files} files, {bytes} bytes, to {}\n",
        fleet.to
    ))?;
    Ok(match say_gaps(&pushed) {
        true => Outcome::Inconclusive,
        false => Outcome::Fine,
    })
}

fn push_to(fleet: &FleetOptions, what: &Push) -> Result<Pushed> {
    match &fleet.bucket {
        None => push(what, &mut Directory::new(Path::new(&fleet.to))),
        Some(place) => {
            let credentials = ObjectStore::credentials()?;
            push(what, &mut ObjectStore::new(place, credentials)?)
        }
    }
}

/// Says what the fleet will never have; whether there is such.
fn say_gaps(pushed: &Pushed) -> bool {
    if pushed.missed > 0 {
        note!(
            "warning: {} intervals are not in the fleet: the store removed them before they could \
             be pushed\n  fix:  let it keep more (--keep, --keep-size), or push more often",
            pushed.missed
        );
    }
    if pushed.left_out > 0 {
        note!(
            "warning: {} intervals were left out: the fleet has an older file of their day, and \
             nobody knows which of them are in it",
            pushed.left_out
        );
    }
    pushed.missed + pushed.left_out > 0
}

/// Pushes of a daemon: one at a time, after an interval was closed.
pub(super) struct Pushing {
    fleet: FleetOptions,
    what: Push,
    next: Instant,
    running: Option<JoinHandle<Result<Pushed>>>,
    is_away: bool,
}

impl Pushing {
    pub fn new(fleet: &FleetOptions, store: &Path) -> Pushing {
        Pushing {
            what: fleet.push(store),
            fleet: fleet.clone(),
            next: Instant::now(),
            running: None,
            is_away: false,
        }
    }

    /// An interval was closed: pushes when it is time to.
    pub fn closed(&mut self) {
        self.look();
        if self.running.is_some() || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + Time::from_nanos(self.fleet.every.as_ns_unsigned());
        let (fleet, what) = (self.fleet.clone(), self.what.clone());
        self.running = Some(std::thread::spawn(move || push_to(&fleet, &what)));
    }

    /// Says what became of the last push; of several that fail alike the first one.
    fn look(&mut self) {
        let Some(ended) = self.running.take_if(|running| running.is_finished()) else {
            return;
        };
        match ended.join() {
            Ok(Ok(pushed)) => {
                say_gaps(&pushed);
                if std::mem::take(&mut self.is_away) {
                    note!(
                        "{} is there again: {} intervals",
                        self.fleet.to,
                        pushed.intervals
                    );
                }
            }
            Ok(Err(error)) if !std::mem::replace(&mut self.is_away, true) => {
                note!("warning: nothing is pushed; the store keeps it until then\n{error:#}");
            }
            Ok(Err(_)) => {}
            Err(_) => note!("warning: a push to {} ended badly", self.fleet.to),
        }
    }
}
