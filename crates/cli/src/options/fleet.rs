//! Where the monitor's intervals are pushed to, and how often.

use std::path::{Path, PathBuf};

use event::{Duration, Error, ErrorKind, Result};
use fleet::{Push, S3Place};
use serde::Deserialize;

use super::words::positive_duration;

const EVERY: Duration = Duration::from_ms(60 * 60 * 1000);
/// A day's file is written anew each time.
const EVERY_MIN: Duration = Duration::from_ms(1000);

/// `[fleet]` of the settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FleetSettings {
    pub to: Option<String>,
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub every: Option<String>,
    pub snapshots: Option<PathBuf>,
}

/// What all programs for S3 read from the environment.
fn shared(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Pushing, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOptions {
    /// The target as it was written.
    pub to: String,
    /// The target where it is a bucket; else it is a folder.
    pub bucket: Option<S3Place>,
    /// How often the monitor pushes.
    pub every: Duration,
    /// A watch's folder of snapshots, whose log goes too.
    pub snapshots: Option<PathBuf>,
}

impl FleetOptions {
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what makes no sense, [`ErrorKind::Unsupported`] for a target
    /// that this program cannot write to.
    pub(super) fn new(said: &FleetSettings) -> Result<FleetOptions> {
        let Some(to) = said.to.clone().filter(|to| !to.is_empty()) else {
            let what = "nobody says where the fleet is";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found("no 'to' in [fleet], and no --to")
                .fix("to = \"/mnt/fleet\", or --to /mnt/fleet"));
        };
        let bucket = S3Place::read(&to).map(|place| S3Place {
            endpoint: said.endpoint.clone().or_else(|| shared("AWS_ENDPOINT_URL")),
            region: said.region.clone().or_else(|| shared("AWS_REGION")),
            ..place
        });
        if bucket.is_none() && to.contains("://") {
            let what = "there is no such target for a fleet's tables";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(to)
                .fix("name a folder, or a bucket as in s3://NAME/PREFIX"));
        }
        let every = said.every.as_ref();
        let every = every
            .map(|text| positive_duration("every", text))
            .transpose()?;
        let every = every.unwrap_or(EVERY);
        if every < EVERY_MIN {
            return Err(
                Error::new(ErrorKind::InvalidInput, "the fleet is pushed to too often")
                    .found(every.to_string())
                    .fix("give every = \"1h\", or a second at least"),
            );
        }
        Ok(FleetOptions {
            to,
            bucket,
            every,
            snapshots: said.snapshots.clone(),
        })
    }

    /// What is pushed of a store.
    pub fn push(&self, store: &Path) -> Push {
        Push {
            store: store.to_owned(),
            snapshots: self.snapshots.clone(),
            again: false,
        }
    }
}
