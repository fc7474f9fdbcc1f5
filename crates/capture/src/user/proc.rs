//! What the kernel says of a traced process and its threads in `/proc`. The traced threads notice
//! nothing of it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ring::RingFile;

/// A thread as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadFacts {
    /// Its name.
    pub name: String,
    /// As the kernel's scheduler counts: real-time below 0, `20 + nice` for others.
    pub prio: i32,
    /// The number of its policy (`SCHED_FIFO`…).
    pub policy: i32,
    /// Real, effective and saved user, then group, as its user namespace numbers them.
    pub ids: [u32; IDS],
}

/// So many ids of users and groups has a thread.
pub(super) const IDS: usize = 6;
/// What an id is called that has no number in a namespace.
pub(super) const UNKNOWN_ID: u32 = u32::MAX;

/// The threads of a process are listed in one part in this many of the time.
const LISTING_PARTS: u32 = 16;

/// How a user namespace numbers users or groups: `/proc/PID/uid_map`, as we read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct IdMap(Vec<[u32; 3]>);

impl IdMap {
    fn parse(text: &str) -> IdMap {
        let line = |line: &str| {
            let mut words = line.split_ascii_whitespace().map(str::parse);
            Some([
                words.next()?.ok()?,
                words.next()?.ok()?,
                words.next()?.ok()?,
            ])
        };
        IdMap(text.lines().filter_map(line).collect())
    }

    /// The number inside of the namespace of what we call `id`.
    fn inside(&self, id: u32) -> u32 {
        let holds = |[_, outside, count]: &&[u32; 3]| {
            id.checked_sub(*outside).is_some_and(|place| place < *count)
        };
        let range = self.0.iter().find(holds);
        range.map_or(UNKNOWN_ID, |[inside, outside, _]| {
            inside.wrapping_add(id - outside)
        })
    }
}

/// A line of `/proc/PID/maps` that is about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping<'t> {
    pub begin: u64,
    pub end: u64,
    pub is_code: bool,
    pub offset: u64,
    pub device: (u32, u32),
    pub inode: u64,
    pub path: &'t str,
}

/// `55d0-55d8 r-xp 00001000 fe:00 1234    /usr/bin/x`
pub(super) fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut rest = line;
    let mut word = || {
        let (word, behind) = rest.split_once(' ')?;
        rest = behind.trim_start();
        Some(word)
    };
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (begin, end) = word()?.split_once('-')?;
    let is_code = word()?.contains('x');
    let offset = hexadecimal(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let inode = word()?.parse().ok().filter(|inode| *inode != 0)?;
    let device = |text| u32::from_str_radix(text, 16).ok();
    Some(Mapping {
        begin: hexadecimal(begin)?,
        end: hexadecimal(end)?,
        is_code,
        offset,
        device: (device(major)?, device(minor)?),
        inode,
        path: rest,
    })
}

/// Whether one of these mappings is of the rings.
pub(super) fn maps_rings(mappings: &[Mapping<'_>], file: &RingFile) -> bool {
    let is_theirs = |m: &Mapping<'_>| file.is_file(m.device, m.inode);
    mappings.iter().any(is_theirs)
}

/// A traced process as our own pid namespace sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostProcess {
    folder: PathBuf,
    /// Whether it sees its threads by the ids that we see.
    is_of_our_namespace: bool,
    users: IdMap,
    groups: IdMap,
    /// Of another namespace: where its threads are, by the ids that it sees.
    tasks: Tasks,
}

/// The threads of a process of another pid namespace. Who looks for one must ask about each, so all
/// are listed at once, and not again for each that was not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tasks {
    folders: HashMap<i32, PathBuf>,
    listed: Option<StdInstant>,
    took: StdDuration,
}

impl Tasks {
    fn list(&mut self, folder: &Path) {
        let begin = StdInstant::now();
        let seen = |folder: PathBuf| Some((inner_id(&folder)?, folder));
        self.folders = folders_in(&folder.join("task")).filter_map(seen).collect();
        (self.listed, self.took) = (Some(begin), begin.elapsed());
    }

    /// The folder of a thread. One that is not known may have come since.
    fn find(&mut self, tid: i32, folder: &Path) -> Option<PathBuf> {
        let may_list = self
            .listed
            .is_none_or(|at| at.elapsed() > self.took * LISTING_PARTS);
        if may_list && !self.folders.contains_key(&tid) {
            self.list(folder);
        }
        self.folders.get(&tid).cloned()
    }
}

fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

impl HostProcess {
    /// Who has the rings of `file` in its memory: the process of its id, else one of another
    /// namespace that has that id there. None when it is gone or not ours to look at.
    pub fn find(file: &RingFile) -> Option<HostProcess> {
        let pid = file.layout().pid;
        let own = Path::new("/proc").join(pid.to_string());
        if has_rings(&own, file) {
            return Some(HostProcess::new(own, true));
        }
        let folder = folders_in(Path::new("/proc"))
            .find(|folder| inner_id(folder) == Some(pid) && has_rings(folder, file))?;
        Some(HostProcess::new(folder, false))
    }

    fn new(folder: PathBuf, is_of_our_namespace: bool) -> HostProcess {
        let map = |name| IdMap::parse(&fs::read_to_string(folder.join(name)).unwrap_or_default());
        HostProcess {
            is_of_our_namespace,
            users: map("uid_map"),
            groups: map("gid_map"),
            tasks: Tasks::default(),
            folder,
        }
    }

    /// The ids of its threads as it sees them.
    pub fn threads(&mut self) -> Vec<i32> {
        if !self.is_of_our_namespace {
            self.tasks.list(&self.folder);
            return self.tasks.folders.keys().copied().collect();
        }
        let number = |folder: PathBuf| folder.file_name()?.to_str()?.parse().ok();
        let folders = folders_in(&self.folder.join("task"));
        folders.filter_map(number).collect()
    }

    /// What a thread is now; none when it is gone.
    pub fn thread(&mut self, tid: i32) -> Option<ThreadFacts> {
        let folder = match self.is_of_our_namespace {
            true => self.folder.join("task").join(tid.to_string()),
            false => self.tasks.find(tid, &self.folder)?,
        };
        let facts = stat(&fs::read_to_string(folder.join("stat")).ok()?)?;
        let status = fs::read_to_string(folder.join("status")).ok()?;
        Some(ThreadFacts {
            ids: self.ids(&status),
            ..facts
        })
    }

    /// The ids in the text of a thread's `status`.
    fn ids(&self, status: &str) -> [u32; IDS] {
        let mut ids = [UNKNOWN_ID; IDS];
        let kinds = [("Uid:", &self.users), ("Gid:", &self.groups)];
        for ((kind, map), ids) in kinds.into_iter().zip(ids.chunks_mut(IDS / 2)) {
            let mut lines = status.lines();
            let words = lines.find_map(|line| line.strip_prefix(kind));
            let words = words.unwrap_or_default().split_ascii_whitespace();
            for (id, word) in ids.iter_mut().zip(words) {
                *id = word.parse().map_or(UNKNOWN_ID, |number| map.inside(number));
            }
        }
        ids
    }

    /// The inode of the process's namespace of this kind (`pid`, `net`…): its number.
    pub fn namespace(&self, kind: &str) -> Option<u64> {
        let link = fs::read_link(self.folder.join("ns").join(kind)).ok()?;
        let (_, number) = link.to_str()?.split_once('[')?;
        number.strip_suffix(']')?.parse().ok()
    }
}

fn has_rings(folder: &Path, file: &RingFile) -> bool {
    let Ok(text) = fs::read_to_string(folder.join("maps")) else {
        return false;
    };
    let mappings: Vec<_> = text.lines().filter_map(mapping).collect();
    maps_rings(&mappings, file)
}

/// The id of a task in the innermost of its pid namespaces.
fn inner_id(folder: &Path) -> Option<i32> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_ascii_whitespace().next_back()?.parse().ok()
}

/// `123 (a name) S 1 …`: the name may hold anything, also parentheses.
fn stat(text: &str) -> Option<ThreadFacts> {
    let (head, rest) = text.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    // The first of these is the third of proc(5).
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |place: usize| words.get(place - 3)?.parse().ok();
    Some(ThreadFacts {
        name: name.to_owned(),
        prio: number(18)?,
        policy: number(41)?,
        ids: [UNKNOWN_ID; IDS],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read_and_what_is_no_file_is_not() {
        let line = "7f00-7f80 r-xp 00001000 fe:10 42                     /usr/lib/a b.so";
        let expect = Mapping {
            begin: 0x7f00,
            end: 0x7f80,
            is_code: true,
            offset: 0x1000,
            device: (0xfe, 0x10),
            inode: 42,
            path: "/usr/lib/a b.so",
        };
        assert_eq!(mapping(line), Some(expect));
        for line in [
            "",
            "7f00-7f80 rw-p 00000000 00:00 0 [heap]",
            "7f00 r-xp 0 0:0 1 x",
        ] {
            assert_eq!(mapping(line), None, "{line}");
        }
    }

    #[test]
    fn ids_are_those_of_the_threads_own_user_namespace() {
        let process = HostProcess {
            folder: PathBuf::new(),
            is_of_our_namespace: true,
            tasks: Tasks::default(),
            users: IdMap::parse(
                "         0     100000      65536\n      70000          5          1\n",
            ),
            groups: IdMap::parse("         0          0 4294967295\n"),
        };
        let status = "Name:\tx\nUid:\t100007\t5\t6\t6\nGid:\t1\t2\t3\t3\n";
        assert_eq!(process.ids(status), [7, 70_000, UNKNOWN_ID, 1, 2, 3]);
        assert_eq!(process.ids("nonsense"), [UNKNOWN_ID; IDS]);
    }

    #[test]
    fn threads_that_are_not_there_are_not_looked_for_each_by_each() {
        let own = Path::new("/proc/self");
        let main = std::process::id() as i32;
        let mut tasks = Tasks::default();
        assert!(tasks.find(main, own).is_some_and(|folder| folder.exists()));
        // As of a process with so many threads that a list of them takes an hour.
        tasks.took = StdDuration::from_secs(3600);
        let listed = tasks.listed;
        for tid in 0..1000 {
            assert_eq!(tasks.find(-tid, own), None);
        }
        assert!(tasks.find(main, own).is_some());
        assert_eq!(tasks.listed, listed);
    }

    #[test]
    fn a_thread_is_told_by_its_line_whatever_its_name() {
        let line = "7 (a) R (b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 -51 0 1 0 5 0 0 \
                    0 0 0 0 0 0 0 0 0 0 0 0 0 -1 3 50 1 0 0 0";
        let expect = ThreadFacts {
            name: "a) R (b".to_owned(),
            prio: -51,
            policy: 1,
            ids: [UNKNOWN_ID; IDS],
        };
        assert_eq!(stat(line), Some(expect));
        assert_eq!(stat("7 (a) S 1 7"), None);
        assert_eq!(stat("nonsense"), None);
    }
}
