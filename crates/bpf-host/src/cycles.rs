//! What was seen of the cycles of targets that a timer of their own wakes.

use abi::SleepsInside;
use event::Result;
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::object;

/// Of all targets that others woke between two releases; the one with the longest cycle first.
pub(crate) fn read(object: &Object) -> Result<Vec<SleepsInside>> {
    let map = object::map(object, "cycles")?;
    let mut found = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY);
        let value = value.map_err(|error| object::explain("read", &error))?;
        // Nothing where it went to make room for another one.
        found.extend(value.as_deref().and_then(abi::decode_cycles));
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.worst.duration()));
    Ok(found)
}

/// Nothing was seen until now; how steady each timer is stays known.
pub(crate) fn forget(object: &Object) -> Result<()> {
    let map = object::map(object, "cycles")?;
    let keys: Vec<Vec<u8>> = map.keys().collect();
    for key in keys {
        // One that is gone made room for another one.
        map.delete(&key).ok();
    }
    Ok(())
}
