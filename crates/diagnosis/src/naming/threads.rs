//! A thread has one name in a ledger, whatever it was called meanwhile: else what it did is two
//! causes, and another one may seem to have done more.

use std::mem::{Discriminant, discriminant};

use event::NumberMap;

use super::Key;
use crate::model::{Model, VersionId};

/// Of which thread a key speaks: what kind it is, which of its tasks, the id, and who had it then.
type Of = (Discriminant<Key>, usize, i32, u32);

/// As which of its versions each thread had the most of a ledger.
pub(crate) struct ThreadNames<'a> {
    model: &'a Model,
    longest: NumberMap<Of, (i64, u32)>,
}

impl<'a> ThreadNames<'a> {
    /// Those of the keys of one ledger, each with its length.
    pub fn new(model: &'a Model, keys: impl Iterator<Item = (Key, i64)>) -> ThreadNames<'a> {
        let mut names = ThreadNames {
            model,
            longest: NumberMap::default(),
        };
        for (key, ns) in keys {
            key.with_versions(|place, id| {
                if let Some(of) = names.of(key, place, id) {
                    let longest = names.longest.entry(of).or_insert((ns, id));
                    // Of two that are equal, the first.
                    if (ns, longest.1) > (longest.0, id) {
                        *longest = (ns, id);
                    }
                }
                id
            });
        }
        names
    }

    fn of(&self, key: Key, place: usize, id: u32) -> Option<Of> {
        let version = self.model.tasks.version(VersionId(id))?;
        Some((discriminant(&key), place, version.tid.0, version.thread))
    }

    /// The key with the one name that each of its threads has.
    pub fn name(&self, key: Key) -> Key {
        key.with_versions(|place, id| {
            let of = self.of(key, place, id);
            let longest = of.and_then(|of| self.longest.get(&of));
            longest.map_or(id, |(_, id)| *id)
        })
    }
}

impl Key {
    /// The same with other versions of the tasks that it names.
    fn with_versions(self, mut other: impl FnMut(usize, u32) -> u32) -> Key {
        match self {
            Key::Ran(id) => Key::Ran(other(0, id)),
            Key::Wait(id) => Key::Wait(other(0, id)),
            Key::Stop(id) => Key::Stop(other(0, id)),
            Key::PreemptionOff(id, place) => Key::PreemptionOff(other(0, id), place),
            Key::Kept(id, hit) => Key::Kept(other(0, id), hit),
            Key::Throttled(Some(id)) => Key::Throttled(Some(other(0, id))),
            Key::Served(id) => Key::Served(other(0, id)),
            Key::LockWait(owner, halted) => Key::LockWait(other(0, owner), halted),
            Key::Inversion(owner, behind) => Key::Inversion(other(0, owner), other(1, behind)),
            key => key,
        }
    }
}
