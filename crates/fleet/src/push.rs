//! From the store to the target: what is new there, file by file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use event::{Result, partition_value};
use monitor::{Head, Range, Run, Store, day_text};

use crate::late;
use crate::part::{self, Known};
use crate::state::State;
use crate::tables::{LateRows, Part, PartFile, VERSION};

/// Where files go.
pub trait Target {
    /// What tells it from others.
    fn name(&self) -> String;

    /// Makes sure that it is there; `known` when something was pushed to it before.
    ///
    /// # Errors
    /// When it is away.
    fn meet(&mut self, known: bool) -> Result<()>;

    /// Puts a file there, in place of one of that name: whole, or not at all. The name has `/`
    /// between its parts.
    ///
    /// # Errors
    /// When the target takes none.
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()>;

    /// The names of the files in a folder; none when there is no such folder.
    ///
    /// # Errors
    /// When the target is away.
    fn list(&mut self, folder: &str) -> Result<Vec<String>>;
}

/// What to push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// The store.
    pub store: PathBuf,
    /// A watch's folder of snapshots, whose log of late activations goes too.
    pub snapshots: Option<PathBuf>,
    /// Push what was pushed before, too.
    pub again: bool,
}

/// What was pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Files that were written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Intervals in them.
    pub intervals: u64,
    /// Intervals that the store removed before they could be pushed.
    pub missed: u64,
    /// Intervals that were left out: an older file of their day and boot is there, and nobody knows
    /// any more which of them it has.
    pub left_out: u64,
}

/// Pushes what the target does not have. When it fails in the middle, the next call goes on there.
///
/// # Errors
/// When the store cannot be read, another process pushes it, or the target is away.
pub fn push(what: &Push, target: &mut dyn Target) -> Result<Pushed> {
    let store = Store::open(&what.store)?;
    let mut state = State::open(&what.store)?;
    let name = target.name();
    target.meet(state.knows(&name) && !what.again)?;
    if what.again {
        *state.of(&name) = crate::state::Pushed::default();
    }
    // From now on it is known, also where nothing is to be pushed yet.
    state.of(&name);
    let mut pusher = Pusher {
        target,
        state,
        name,
        pushed: Pushed::default(),
    };
    pusher.intervals(&store)?;
    let host = store.runs()?.pop().map(|(_, run)| run.host);
    if let (Some(folder), Some(host)) = (&what.snapshots, host) {
        pusher.late(folder, &host)?;
    }
    pusher.state.save()?;
    Ok(pusher.pushed)
}

/// The intervals of a boot on a day.
#[derive(Debug, Default)]
struct Group {
    runs: BTreeSet<i64>,
    begins_ns: Vec<i64>,
}

struct Pusher<'t> {
    target: &'t mut dyn Target,
    state: State,
    name: String,
    pushed: Pushed,
}

impl Pusher<'_> {
    fn intervals(&mut self, store: &Store) -> Result<()> {
        let runs: HashMap<i64, Run> = store.runs()?.into_iter().collect();
        let heads = store.heads()?;
        let mut groups: BTreeMap<(String, String, String), Group> = BTreeMap::new();
        for (_, number, head) in &heads {
            let Some(run) = runs.get(number) else {
                continue;
            };
            let key = (
                day_text(head.begin_ns),
                run.host.clone(),
                run.boot_id.clone(),
            );
            let group = groups.entry(key).or_default();
            group.runs.insert(*number);
            group.begins_ns.push(head.begin_ns);
        }
        self.pushed.missed = self.missed(&heads);
        let is_there = |key: &String| groups.keys().any(|group| group_key(group) == *key);
        let parts = &mut self.state.of(&self.name).parts;
        parts.retain(|key, _| key.starts_with(LATE) || is_there(key));
        for (key, group) in &groups {
            self.group(store, &runs, key, group)?;
        }
        let newest = heads.last().map_or(0, |(id, ..)| *id);
        self.state.of(&self.name).last_id = newest;
        Ok(())
    }

    /// Numbers are given one after the other: those that lie between what was pushed last and what
    /// the store has are gone. A store that was begun anew counts from one.
    fn missed(&mut self, heads: &[(i64, i64, Head)]) -> u64 {
        let last = self.state.of(&self.name).last_id;
        let (Some((oldest, ..)), Some((newest, ..))) = (heads.first(), heads.last()) else {
            return 0;
        };
        match last > 0 && last < *newest {
            true => (oldest - last - 1).max(0) as u64,
            false => 0,
        }
    }

    fn group(
        &mut self,
        store: &Store,
        runs: &HashMap<i64, Run>,
        key: &(String, String, String),
        group: &Group,
    ) -> Result<()> {
        let known_as = group_key(key);
        let known = self.state.of(&self.name).parts.get(&known_as).copied();
        let Some((begins_ns, new)) = part::next(&group.begins_ns, known) else {
            return Ok(());
        };
        let (date, host, boot_id) = key;
        let host = named(host);
        if known.is_none() && self.has_older(date, &host, boot_id, new.first_ns)? {
            self.pushed.left_out += new.count as u64;
            return Ok(());
        }
        let wanted: BTreeSet<i64> = begins_ns.iter().copied().collect();
        let range = Range {
            begin_ns: begins_ns.iter().copied().min().unwrap_or(i64::MIN),
            end_ns: begins_ns.iter().copied().max().unwrap_or(i64::MAX),
        };
        let mut part = Part::default();
        store.read(range, |number, interval| {
            let is_wanted = wanted.contains(&interval.head.begin_ns);
            if let Some(run) = runs.get(&number)
                && is_wanted
                && group.runs.contains(&number)
            {
                part.add(run, &interval);
            }
            Ok(())
        })?;
        for file in part.finish()? {
            let file_name = format!("{}-{}", named(boot_id), new.first_ns);
            self.put(&file, date, &host, &file_name)?;
        }
        self.pushed.intervals += new.count as u64;
        self.done(known_as, new)
    }

    /// Whether a file of this day and boot began with an interval that the store has no more.
    fn has_older(&mut self, date: &str, host: &str, boot_id: &str, first_ns: i64) -> Result<bool> {
        let folder = folder("interval", date, host);
        let prefix = format!("{}-", named(boot_id));
        let begin_ns = |name: &str| {
            let number = name.strip_prefix(&prefix)?.strip_suffix(".parquet")?;
            number.parse::<i64>().ok()
        };
        let names = self.target.list(&folder)?;
        let mut begins_ns = names.iter().filter_map(|name| begin_ns(name));
        Ok(begins_ns.any(|begin_ns| begin_ns < first_ns))
    }

    /// The watch's lines, a file for each day.
    fn late(&mut self, folder: &Path, host: &str) -> Result<()> {
        let host = named(host);
        let days = late::by_day(folder)?;
        let is_there = |key: &str| days.keys().any(|day| key == format!("{LATE}{day}"));
        let parts = &mut self.state.of(&self.name).parts;
        parts.retain(|key, _| !key.starts_with(LATE) || is_there(key));
        for (date, lines) in &days {
            let begins_ns: Vec<i64> = lines.iter().filter_map(|l| l["wall_ns"].as_i64()).collect();
            let known_as = format!("{LATE}{date}");
            let known = self.state.of(&self.name).parts.get(&known_as).copied();
            let Some((part, new)) = part::next(&begins_ns, known) else {
                continue;
            };
            let mut rows = LateRows::default();
            let from = lines.len() - part.len();
            lines[from..].iter().for_each(|line| rows.add(line));
            let file_name = format!("watch-{}", new.first_ns);
            self.put(&rows.finish()?, date, &host, &file_name)?;
            self.done(known_as, new)?;
        }
        Ok(())
    }

    fn put(&mut self, file: &PartFile, date: &str, host: &str, name: &str) -> Result<()> {
        let path = format!("{}/{name}.parquet", folder(file.table, date, host));
        self.target.put(&path, &file.bytes)?;
        self.pushed.files += 1;
        self.pushed.bytes += file.bytes.len() as u64;
        Ok(())
    }

    /// Remembers it at once: what fails next need not be repeated from the begin.
    fn done(&mut self, key: String, part: Known) -> Result<()> {
        self.state.of(&self.name).parts.insert(key, part);
        self.state.save()
    }
}

/// Where the files of a table lie that a host has of a day; all three without escapes.
fn folder(table: &str, date: &str, host: &str) -> String {
    format!("v{VERSION}/{table}/date={date}/host={host}")
}

/// Writes a part as a push does. For who makes a fleet up.
///
/// # Errors
/// When the target is away.
pub fn put_part(
    target: &mut dyn Target,
    part: Part,
    run: &Run,
    begin_ns: i64,
) -> Result<Vec<(&'static str, u64)>> {
    let (date, host, boot_id) = (day_text(begin_ns), named(&run.host), named(&run.boot_id));
    let put = |file: PartFile| {
        let path = format!(
            "{}/{boot_id}-{begin_ns}.parquet",
            folder(file.table, &date, &host)
        );
        target.put(&path, &file.bytes)?;
        Ok((file.table, file.bytes.len() as u64))
    };
    part.finish()?.into_iter().map(put).collect()
}

/// Keys of the watch's days begin with it.
const LATE: &str = "late ";

fn group_key((date, host, boot_id): &(String, String, String)) -> String {
    format!("{date} {host} {boot_id}")
}

/// The name of a machine or a boot as a part of a path; one without a name has one here.
fn named(name: &str) -> String {
    match partition_value(name) {
        value if value.is_empty() => "unknown".to_owned(),
        value => value,
    }
}

#[cfg(test)]
#[path = "push_tests.rs"]
mod tests;
