//! A process of a load: what `measure eval` starts of itself.

use std::time::Duration;

use capture::session::clear_after;
use event::{Cpu, Error, ErrorKind, Result};
use measure::load::{self, LoadOrder, Over};

use crate::exit::Outcome;
use crate::flags::{LoadPart, LoadRole};
use crate::options::load_of;

/// Runs it to the end of the load.
pub fn run(typed: &LoadPart) -> Result<Outcome> {
    let nothing = || Error::new(ErrorKind::InvalidInput, "no load is called none");
    let order = LoadOrder {
        load: load_of(typed.load).ok_or_else(nothing)?,
        cpus: Cpu::parse_list(&typed.cpus)?,
        cgroup: typed.cgroup.clone(),
        folder: typed.folder.clone(),
    };
    match typed.role {
        LoadRole::Keeper => keep(&order).map(|()| Outcome::Fine),
        LoadRole::Work => load::work(&order).map(|never| match never {}),
    }
}

/// Looks at whether who measured is gone, so far apart; the kernel closes its files then.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 200;

/// Keeps the load. Where whoever measured was killed, its flight recorder goes too: it would go on
/// recording, at a cost for all.
fn keep(order: &LoadOrder) -> Result<()> {
    match load::keep(order)? {
        Over::Told => return Ok(()),
        Over::Orphaned => {}
    }
    for _ in 0..LOOKS_MAX {
        if let Some(owner) = load::dead_owner()
            && clear_after(owner)?
        {
            return Ok(());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}
