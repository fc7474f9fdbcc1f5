//! A process of a load: what `measure eval` starts of itself.

use event::{Cpu, Error, ErrorKind, Result};
use measure::load::{self, LoadOrder};

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
        LoadRole::Keeper => load::keep(&order).map(|()| Outcome::Fine),
        LoadRole::Work => load::work(&order).map(|never| match never {}),
    }
}
