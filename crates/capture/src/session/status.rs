//! What a session says of itself, for people and for programs.

use std::path::PathBuf;

use event::{Error, ErrorKind};
use relay::{Delivered, Delivery, Figures};
use serde::{Deserialize, Serialize};

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It writes archives.
    Recording,
    /// Rings keep their newest events.
    Flight,
    /// It ended by an error, and waits to be stopped.
    Failed,
    /// Its process is gone without having ended it.
    Dead,
    /// It was stopped.
    Stopped,
}

/// An error on its way to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What failed.
    pub what: String,
    /// The value found.
    pub found: Option<String>,
    /// What mends it.
    pub fix: Option<String>,
    /// Whether something of that name is there already.
    #[serde(default)]
    pub is_there: bool,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Refusal {
        Refusal {
            what: error.what().to_owned(),
            found: error.value_found().map(str::to_owned),
            fix: error.fixed_by().map(str::to_owned),
            is_there: error.kind() == ErrorKind::AlreadyExists,
        }
    }
}

impl Refusal {
    /// The error that it was.
    pub fn into_error(self) -> Error {
        let kind = match self.is_there {
            true => ErrorKind::AlreadyExists,
            false => ErrorKind::Io,
        };
        let mut error = Error::new(kind, self.what);
        if let Some(found) = self.found {
            error = error.found(found);
        }
        match self.fix {
            Some(fix) => error.fix(fix),
            None => error,
        }
    }
}

/// An archive or a snapshot that is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveFacts {
    /// Where it is.
    pub path: PathBuf,
    /// When it begins and ends, by the wall clock of then.
    pub begin_wall_ns: i64,
    /// When it ends.
    pub end_wall_ns: i64,
    /// Events of the kernel and of applications.
    pub events: u64,
    /// Those that it says were lost.
    pub lost: u64,
    /// Bytes of its streams.
    pub size_bytes: u64,
}

/// One CPU's ring of kernel events, in one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuStatus {
    /// Which channel.
    #[serde(default)]
    pub channel: String,
    /// The size of the ring.
    #[serde(default)]
    pub buffer_bytes: u64,
    /// The CPU.
    pub cpu: u32,
    /// How full it was when it was looked at last.
    pub filled_percent: f64,
    /// How full it ever was when it was looked at.
    pub fullest_percent: f64,
    /// Events that were offered to it.
    pub events: u64,
    /// Those of them that it lost; in flight, that it has overwritten.
    pub lost: u64,
}

/// The rings of system calls with their contents, of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsStatus {
    /// Events so far.
    pub events: u64,
    /// Those that were lost.
    pub lost: u64,
}

/// The rings of applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserStatus {
    /// Processes that are recorded now.
    pub processes: u64,
    /// Events so far; none in flight, where nobody reads them.
    pub events: u64,
    /// Those that were lost.
    pub lost: u64,
    /// How full the fullest ring was when it was looked at last.
    pub filled_percent: f64,
    /// How full one ever was.
    pub fullest_percent: f64,
}

/// How far another host is that gets all archives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamStatus {
    /// Where to.
    pub to: String,
    /// How far it is.
    #[serde(flatten)]
    pub figures: Figures,
    /// Why there is no connection.
    pub trouble: Option<String>,
    /// What it did not get in the end.
    pub rest: Vec<RestStatus>,
}

/// Events that another host did not get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestStatus {
    /// The trace on this disk that has them; none when it could not be kept.
    pub path: Option<PathBuf>,
    /// How many were not acknowledged.
    pub events: u64,
}

impl StreamStatus {
    /// Of one that goes on.
    pub(super) fn of(delivery: &Delivery) -> StreamStatus {
        let trouble = delivery.trouble();
        StreamStatus::new(delivery.address(), delivery.figures(), trouble)
    }

    /// Of one that has ended.
    pub fn ended(delivered: &Delivered) -> StreamStatus {
        let trouble = delivered.trouble.as_ref().map(ToString::to_string);
        let rest = delivered.rest.iter().map(|rest| RestStatus {
            path: rest.path.clone(),
            events: rest.events,
        });
        StreamStatus {
            rest: rest.collect(),
            ..StreamStatus::new(&delivered.address, delivered.figures, trouble)
        }
    }

    fn new(to: &str, figures: Figures, trouble: Option<String>) -> StreamStatus {
        StreamStatus {
            to: to.to_owned(),
            figures,
            trouble,
            rest: Vec::new(),
        }
    }
}

/// A session as it is now; schema `rtscope.session`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: SessionState,
    /// Whether it keeps the newest events alone, or did: what its rings lost was overwritten.
    #[serde(default)]
    pub is_flight: bool,
    /// Its process.
    pub pid: u32,
    /// When it began, by the wall clock of then.
    pub begin_wall_ns: i64,
    /// For how long it has been running.
    pub running_ns: u64,
    /// The folder of its archives.
    pub output: PathBuf,
    /// The size of each CPU's ring; zero without events of the kernel.
    pub buffer_bytes_per_cpu: u64,
    /// The rings of the kernel's events.
    pub cpus: Vec<CpuStatus>,
    /// Whose events alone are recorded; nobody is named where all are.
    #[serde(default)]
    pub tracks: Vec<String>,
    /// The rings of system calls, where they are recorded.
    #[serde(default)]
    pub system_calls: Option<CallsStatus>,
    /// The rings of applications, where they are recorded.
    pub user: Option<UserStatus>,
    /// The host that gets the archives, where there is one.
    #[serde(default)]
    pub stream: Option<StreamStatus>,
    /// Events so far, of the kernel and of applications.
    pub events: u64,
    /// Events that were lost so far.
    pub lost: u64,
    /// The archive that is being written, under the name that it will have.
    pub writing: Option<PathBuf>,
    /// What that takes on the disk.
    pub writing_bytes: u64,
    /// Archives and snapshots that are whole, oldest first.
    pub archives: Vec<ArchiveFacts>,
    /// How many archives `--keep` has removed.
    pub removed: u64,
    /// Why it ended, or what it could not do.
    pub error: Option<Refusal>,
}
