//! Sessions: recordings by name that outlive the terminal, in processes of their own.
//!
//! A session is one process. It holds a lock in the runtime folder and answers on a socket beside
//! it ([`place`], [`talk`]); what it records goes into archives, each a whole trace ([`archive`],
//! [`rotating`]), or stays in rings until somebody asks for a snapshot ([`flight`]).

mod archive;
mod book;
mod dead;
mod desk;
mod flight;
mod name;
mod place;
mod rotating;
mod run;
mod status;
mod talk;
mod threads;

use std::path::PathBuf;

use event::{Duration, Result};

use crate::{Keep, RecordConfig, Track};

pub use dead::{DeadSession, all_dead, bury, clear_after};
pub use name::SessionName;
pub use place::Sessions;
pub use run::serve;
pub use status::{
    ArchiveFacts, CallsStatus, CpuStatus, Refusal, RestStatus, SessionState, SessionStatus,
    StreamStatus, UserStatus,
};
pub use talk::{Reply, Request, ask};

/// What a session records, and how.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Its name.
    pub name: SessionName,
    /// The folder of its archives and snapshots, an absolute path.
    pub output: PathBuf,
    /// What is recorded; its own output means nothing.
    pub record: RecordConfig,
    /// Whether rings keep their newest events until somebody asks for a snapshot.
    pub flight: bool,
    /// A new archive begins so often.
    pub rotate_every: Option<Duration>,
    /// A new archive begins when the present one is so large.
    pub rotate_size_bytes: Option<u64>,
    /// Which archives stay.
    pub keep: Keep,
    /// How rtscope was called.
    pub command_line: String,
    /// All that was asked for, as a file of settings.
    pub settings: String,
    /// Reads whom to track; nobody where no word is given.
    pub track_of: fn(&[String]) -> Result<Track>,
}
