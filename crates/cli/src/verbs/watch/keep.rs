//! How many snapshots of each cause stay: the worst ones, so that a frequent cause never takes the
//! place of a rare one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capture::Keep;
use event::Duration;

/// A snapshot on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    path: PathBuf,
    latency: Duration,
    bytes: u64,
}

/// The snapshots of this watch, by cause.
#[derive(Debug)]
pub(super) struct Keeper {
    keep: Keep,
    by_cause: BTreeMap<String, Vec<Kept>>,
    /// Removed so far.
    pub removed: u64,
}

impl Keeper {
    pub fn new(keep: Keep) -> Keeper {
        Keeper {
            keep,
            by_cause: BTreeMap::new(),
            removed: 0,
        }
    }

    /// One more snapshot of a cause; those that have no place any more are removed.
    pub fn add(&mut self, cause: &str, path: &Path, latency: Duration) {
        let bytes = bytes_below(path);
        for path in self.place(cause, path, latency, bytes) {
            match std::fs::remove_dir_all(&path) {
                Ok(()) => self.removed += 1,
                Err(error) => eprintln!("warning: cannot remove {}: {error}", path.display()),
            }
        }
    }

    /// Those that have no place any more: the least late of the cause. Hits of one moment share a
    /// snapshot, which stays for the latest of them.
    fn place(&mut self, cause: &str, path: &Path, latency: Duration, bytes: u64) -> Vec<PathBuf> {
        let same = |kept: &&mut Kept| kept.path == path;
        let all = self.by_cause.values_mut().flatten();
        if let Some(known) = all.into_iter().find(same) {
            known.latency = known.latency.max(latency);
            return Vec::new();
        }
        let snapshots = self.by_cause.entry(cause.to_owned()).or_default();
        let place = snapshots.partition_point(|kept| kept.latency >= latency);
        let path = path.to_owned();
        snapshots.insert(
            place,
            Kept {
                path,
                latency,
                bytes,
            },
        );
        let mut left_bytes = self.keep.bytes.unwrap_or(u64::MAX);
        let fits = |kept: &Kept| {
            let fits = kept.bytes <= left_bytes;
            left_bytes = left_bytes.saturating_sub(kept.bytes);
            fits
        };
        let within = snapshots.iter().map(fits).take_while(|fits| *fits).count();
        // The worst always stays.
        let stay = within.min(self.keep.count).max(1);
        let stay = stay.min(snapshots.len());
        snapshots.drain(stay..).map(|kept| kept.path).collect()
    }
}

/// What the files of a folder take.
fn bytes_below(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(facts) if facts.is_dir() => bytes_below(&entry.path()),
            Ok(facts) => facts.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_each_cause_stay_and_a_frequent_one_takes_no_others_place() {
        let mut keeper = Keeper::new(Keep {
            count: 2,
            bytes: None,
        });
        let mut check = |cause: &str, name: &str, ms: i64, expect: &[&str]| {
            let removed = keeper.place(cause, Path::new(name), Duration::from_ms(ms), 10);
            let expect: Vec<_> = expect.iter().map(PathBuf::from).collect();
            assert_eq!(removed, expect, "{name}");
        };
        check("rare", "r1", 1, &[]);
        check("often", "o1", 50, &[]);
        check("often", "o2", 20, &[]);
        check("often", "o3", 30, &["o2"]);
        check("often", "o4", 10, &["o4"]);
        // Two hits of one moment.
        check("often", "r1", 90, &[]);
        check("rare", "r2", 80, &[]);
        check("rare", "r3", 85, &["r2"]);
    }

    #[test]
    fn the_worst_stays_also_where_it_alone_is_larger_than_the_room() {
        let mut keeper = Keeper::new(Keep {
            count: 100,
            bytes: Some(25),
        });
        let mut check = |name: &str, ms: i64, bytes: u64, expect: &[&str]| {
            let removed = keeper.place("cause", Path::new(name), Duration::from_ms(ms), bytes);
            let expect: Vec<_> = expect.iter().map(PathBuf::from).collect();
            assert_eq!(removed, expect, "{name}");
        };
        check("a", 1, 10, &[]);
        check("b", 2, 10, &[]);
        check("c", 3, 10, &["a"]);
        check("d", 4, 100, &["c", "b"]);
    }
}
