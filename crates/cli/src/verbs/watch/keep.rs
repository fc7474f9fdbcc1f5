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
    /// One that has no place any more, and that the next hit may share.
    leaving: Option<PathBuf>,
    /// Removed so far.
    pub removed: u64,
}

impl Keeper {
    pub fn new(keep: Keep) -> Keeper {
        Keeper {
            keep,
            by_cause: BTreeMap::new(),
            leaving: None,
            removed: 0,
        }
    }

    /// One more snapshot of a cause; those that have no place any more are removed. This one is
    /// not, though it has none: other hits of the same moment are explained from it. That is the
    /// next one's to do, or [`Keeper::close`]'s.
    pub fn add(&mut self, cause: &str, path: &Path, latency: Duration) {
        if self.leaving.as_deref() != Some(path) {
            self.close();
        }
        // Another hit may give it a place again.
        self.leaving = None;
        let bytes = bytes_below(path);
        for left in self.place(cause, path, latency, bytes) {
            match left == path {
                true => self.leaving = Some(left),
                false => self.remove(&left),
            }
        }
    }

    /// Snapshots of earlier watches in `folder`, each with its cause and its latency. Who asks for
    /// a bound for months begins a watch more than once.
    pub fn add_earlier(
        &mut self,
        folder: &Path,
        all: impl IntoIterator<Item = (String, String, Duration)>,
    ) {
        for (name, cause, latency) in all {
            let path = folder.join(name);
            if path.is_dir() {
                self.add(&cause, &path, latency);
            }
        }
        self.close();
    }

    /// Removes what has no place: no hit is to come that shares it.
    pub fn close(&mut self) {
        if let Some(path) = self.leaving.take() {
            self.remove(&path);
        }
    }

    fn remove(&mut self, path: &Path) {
        match std::fs::remove_dir_all(path) {
            Ok(()) => self.removed += 1,
            Err(error) => note!("warning: cannot remove {}: {error}", path.display()),
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
    fn what_another_hit_of_the_same_moment_is_explained_from_is_there_until_that_is_done() {
        let folder = tempfile::tempdir().expect("a folder");
        let snapshot = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).expect("made");
            path
        };
        let mut keeper = Keeper::new(Keep {
            count: 1,
            bytes: None,
        });
        let there = |name: &str| folder.path().join(name).exists();
        keeper.add("often", &snapshot("worst"), Duration::from_ms(90));
        // Two hits share one, and both are less late.
        let shared = snapshot("shared");
        keeper.add("often", &shared, Duration::from_ms(20));
        assert!(there("shared"));
        keeper.add("often", &shared, Duration::from_ms(10));
        assert!(there("shared"));
        let rare = snapshot("rare");
        keeper.add("often", &rare, Duration::from_ms(1));
        assert!(
            !there("shared") && there("rare"),
            "no hit shares it any more"
        );
        // Its second hit has a cause of its own.
        keeper.add("seldom", &rare, Duration::from_ms(2));
        keeper.add("often", &snapshot("last"), Duration::from_ms(3));
        assert!(there("last") && there("rare"));
        keeper.close();
        assert!(!there("last") && there("rare") && there("worst"));
        assert_eq!(keeper.removed, 2);
    }

    #[test]
    fn what_earlier_watches_left_counts_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let earlier = [("a", 1), ("b", 3), ("c", 2), ("gone", 9)];
        for (name, _) in &earlier[..3] {
            std::fs::create_dir(folder.path().join(name)).expect("made");
        }
        let mut keeper = Keeper::new(Keep {
            count: 2,
            bytes: None,
        });
        let told = earlier.iter().map(|(name, ms)| {
            let latency = Duration::from_ms(*ms);
            ((*name).to_owned(), "often".to_owned(), latency)
        });
        keeper.add_earlier(folder.path(), told);
        let there = |name: &str| folder.path().join(name).exists();
        assert!(!there("a") && there("b") && there("c"));
        assert_eq!(keeper.removed, 1);
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

    /// A hit each ten seconds of one cause, and three causes that come once, thrice and each hour.
    #[test]
    fn a_day_of_a_frequent_cause_leaves_three_rare_ones_what_they_have() {
        const MEGABYTE: u64 = 1_000_000;
        let mut keeper = Keeper::new(Keep {
            count: 50,
            bytes: Some(12 * MEGABYTE),
        });
        let causes = |second: u64| {
            let rare = [
                ("once", second == 50_000),
                ("thrice", second % 28_800 == 4_320),
                ("hourly", second % 3_600 == 1_234),
            ];
            let rare = rare.into_iter().filter(|(_, comes)| *comes);
            let often = second.is_multiple_of(10).then_some("often");
            often.into_iter().chain(rare.map(|(cause, _)| cause))
        };
        let mut on_disk = std::collections::HashMap::new();
        for second in 0..86_400 {
            for cause in causes(second) {
                let path = PathBuf::from(format!("{cause}-{second}"));
                let bytes = (600 + second * 7_919 % 2_400) * 1_000;
                let latency = Duration::from_us(3_000 + (second * 104_729 % 9_000) as i64);
                on_disk.insert(path.clone(), bytes);
                for left in keeper.place(cause, &path, latency, bytes) {
                    on_disk.remove(&left);
                }
            }
        }
        let of = |cause: &str| {
            let begin = format!("{cause}-");
            let names = on_disk.keys().filter_map(|path| path.to_str());
            names.filter(|name| name.starts_with(&begin)).count()
        };
        assert_eq!((of("once"), of("thrice")), (1, 3));
        assert!(of("hourly") >= 4 && of("often") >= 4);
        assert!(on_disk.values().sum::<u64>() <= 50 * MEGABYTE);
    }
}
