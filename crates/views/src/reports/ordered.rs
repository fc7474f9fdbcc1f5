//! Maps that keep the order of insertion, for keys that are small numbers.

use event::Mixing;
use indexmap::IndexMap;

/// A map in the order of insertion: rows that tie keep the order in which they were first seen.
pub(crate) type Ordered<K, V> = IndexMap<K, V, Mixing>;
