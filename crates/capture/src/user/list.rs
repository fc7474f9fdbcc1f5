//! Which events the programs have that run now.

use std::time::Duration as StdDuration;

use event::{Error, ErrorKind, Result};
use ring::{Directory, EventDescription, Liveness};

use super::UserConfig;
use super::refusals::Refusals;
use super::wanted::{self, EventRule, Verdict};
use super::{finder, places};
use crate::clock::Effort;

/// So long is looked for processes in other mount namespaces.
const LOOK_MAX: StdDuration = StdDuration::from_secs(2);
/// So much effort is made for the processes of one directory: who describes as much as a table
/// holds, or has thousands of files, keeps nobody waiting for the list of the others.
const LIST_MAX: StdDuration = StdDuration::from_secs(3);
/// Of one process, so many events are listed.
const EVENTS_MAX: usize = 4096;

/// A process that runs, and those of its events that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its id, as it sees itself.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// In the order of its code; one of several places is there once.
    pub events: Vec<EventDescription>,
}

/// The processes that run with events that `config` means, by name and id, and who could not be
/// read, with the reason. Changes nothing in them.
///
/// # Errors
/// Where our own directory cannot be read.
pub fn list(config: &UserConfig) -> Result<(Vec<Listed>, Vec<String>)> {
    let (mut listed, mut refused) = (Vec::new(), Vec::new());
    for (path, owner, ours) in places::directories(config.directory()) {
        match Directory::open(&path, owner) {
            Ok(directory) => list_in(&directory, config.rules(), &mut listed, &mut refused)?,
            // Nobody of this user runs, or ran, with events.
            Err(error) if error.kind() == ErrorKind::NotFound => (),
            Err(error) if ours => return Err(error),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    for found in finder::elsewhere(config.directory(), LOOK_MAX) {
        match found.directory {
            Ok(directory) => list_in(&directory, config.rules(), &mut listed, &mut refused)?,
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    listed.sort_by(|one, other| (&one.name, one.pid).cmp(&(&other.name, other.pid)));
    Ok((listed, refused))
}

fn list_in(
    directory: &Directory,
    rules: &[EventRule],
    listed: &mut Vec<Listed>,
    refused: &mut Vec<String>,
) -> Result<()> {
    let effort = Effort::begin();
    let names = directory.names()?;
    let mut refusals = Refusals::default();
    for (place, name) in names.iter().enumerate() {
        if effort.spent() > LIST_MAX {
            let what = format!("{} processes are not listed", names.len() - place);
            let error = Error::new(ErrorKind::Unsupported, what);
            let error = error.found(format!("the others of {}", directory.path().display()));
            refused.push(format!("{:#}", error.fix("list fewer, with RTSCOPE_DIR")));
            break;
        }
        match events_of(directory, name, rules) {
            Ok(found) => listed.extend(found),
            Err(error) => refusals.add(directory.path(), &error),
        }
    }
    refused.extend(refusals.into_said());
    Ok(())
}

fn events_of(directory: &Directory, name: &str, rules: &[EventRule]) -> Result<Option<Listed>> {
    let Some(mut file) = directory.rings(name)? else {
        return Ok(None);
    };
    if file.liveness() == Liveness::Dead {
        return Ok(None);
    }
    file.read_table()?;
    let mut events: Vec<EventDescription> = Vec::new();
    for event in &file.table().events {
        let is_wanted = wanted::verdict(rules, event) != Verdict::Unwanted;
        let is_new = events.iter().all(|other| !is_same(other, event));
        if is_wanted && is_new {
            events.push(event.clone());
        }
        if events.len() > EVENTS_MAX {
            let what = format!("{name} has too many events to be listed");
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(format!("more than {EVENTS_MAX} that are meant"))
                .fix("name those that you mean"));
        }
    }
    let layout = file.layout();
    Ok((!events.is_empty()).then(|| Listed {
        pid: layout.pid,
        name: layout.name.clone(),
        events,
    }))
}

/// Whether two places have the same event.
fn is_same(one: &EventDescription, other: &EventDescription) -> bool {
    (one.level, &one.provider, &one.name) == (other.level, &other.provider, &other.name)
        && one.fields == other.fields
}
