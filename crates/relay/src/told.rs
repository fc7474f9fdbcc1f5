//! What a receiver tells whoever runs it.

use std::path::PathBuf;

/// What happens at a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A host that has the token connected.
    Joined {
        /// Its name.
        host: String,
    },
    /// A trace ended.
    Ended {
        /// Where it is.
        path: PathBuf,
        /// Whether all of it is there.
        is_whole: bool,
        /// As its recorder counted.
        events: u64,
        /// The same of those that were lost.
        lost: u64,
        /// That came on the last connection.
        bytes: u64,
    },
    /// A trace whose sender did not come back.
    Left {
        /// Where it is.
        path: PathBuf,
    },
    /// A connection was refused, or ended by us.
    Refused {
        /// Who it was.
        from: String,
        /// Why.
        why: String,
    },
}
