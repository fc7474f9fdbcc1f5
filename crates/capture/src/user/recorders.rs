//! Who else records the applications of a directory. Each recorder has a number, under which it
//! announces what it wants and has its sets of rings in the files of processes.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use event::Result;
use ring::Directory;

use super::places::SHARED_MEMORY;

/// How the line of a session's file begins that says whose it is.
const SESSION: &str = "!session ";
/// For so long who was alive is taken to be. Who was dead stays so: numbers are used once.
const ALIVE_FOR: StdDuration = StdDuration::from_millis(250);
/// So many dead ones are remembered; processes can make up any number of them.
const DEAD_MAX: usize = 4096;

/// A number that no other recorder has; the least and the largest are nobody's.
pub(super) fn new_id() -> u64 {
    let drawn = RandomState::new().build_hasher().finish();
    drawn.clamp(1, u64::MAX - 1)
}

/// The line of a session's file that says whose it is; it comes before all others that mean
/// anything.
pub(super) fn announced(id: u64) -> String {
    format!("{SESSION}{id:x}")
}

/// Whose a session is, by its lines.
pub(super) fn id_of(lines: &[String]) -> Option<u64> {
    let mut words = lines.iter().filter_map(|line| line.strip_prefix(SESSION));
    words.find_map(|word| u64::from_str_radix(word, 16).ok())
}

/// The recorders of a directory, as one of them sees them.
pub(super) struct Recorders {
    /// Its own number.
    pub own: u64,
    /// Whether those processes are its that can have one recorder alone.
    pub is_first: bool,
    directory: Rc<Directory>,
    known: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    live: HashSet<u64>,
    looked: Option<StdInstant>,
    dead: HashSet<u64>,
}

impl Recorders {
    pub fn new(own: u64, is_first: bool, directory: Rc<Directory>) -> Recorders {
        Recorders {
            own,
            is_first,
            directory,
            known: RefCell::default(),
        }
    }

    /// Whether a recorder is there; also where nobody can tell.
    pub fn is_live(&self, id: u64) -> bool {
        let known = &mut *self.known.borrow_mut();
        if id == self.own {
            return true;
        }
        if known.dead.contains(&id) {
            return false;
        }
        let is_recent = known.looked.is_some_and(|at| at.elapsed() < ALIVE_FOR);
        if is_recent && known.live.contains(&id) {
            return true;
        }
        let Ok(live) = live_in(&self.directory) else {
            return true;
        };
        (known.live, known.looked) = (live, Some(StdInstant::now()));
        let is_live = known.live.contains(&id);
        if !is_live {
            if known.dead.len() >= DEAD_MAX {
                known.dead.clear();
            }
            known.dead.insert(id);
        }
        is_live
    }
}

/// The recorders that announced themselves in a directory and are there; root's announce
/// themselves in its own before they are in those of others.
pub(super) fn live_in(directory: &Directory) -> Result<HashSet<u64>> {
    let mut live = HashSet::new();
    add_live(directory, &mut live)?;
    if directory.owner() != 0 && directory.path().starts_with(SHARED_MEMORY) {
        let path = Path::new(SHARED_MEMORY).join("rtscope-0");
        // Root records nothing where it has none.
        if let Ok(of_root) = Directory::open(&path, 0) {
            add_live(&of_root, &mut live)?;
        }
    }
    Ok(live)
}

fn add_live(directory: &Directory, live: &mut HashSet<u64>) -> Result<()> {
    for name in directory.sessions()? {
        if directory.is_live(&name)? {
            live.extend(id_of(&directory.session(&name)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_is_alive_for_as_long_as_it_holds_what_it_announced() {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        let open = || Rc::new(Directory::open(folder.path(), owner).expect("a directory"));
        let directory = open();
        let own = Recorders::new(7, true, open());
        let session = directory.announce(&[announced(0xbeef), "app".to_owned()]);
        let session = session.expect("announced");
        assert!(own.is_live(7) && own.is_live(0xbeef));
        assert!(!own.is_live(8));
        // Its file stays, as that of one that was killed.
        drop(session);
        let later = Recorders::new(7, true, open());
        assert!(!later.is_live(0xbeef));
        std::thread::sleep(ALIVE_FOR);
        assert!(!own.is_live(0xbeef));
    }

    #[test]
    fn a_session_says_whose_it_is() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let check = |of: &[&str], expect: Option<u64>| {
            let all: Vec<String> = lines(of);
            assert_eq!(id_of(&all), expect, "{of:?}");
        };
        check(&[&announced(255), "npt"], Some(255));
        check(&["npt", "!ring 4"], None);
        check(&["!session x", "!session 10"], Some(16));
        let (one, other) = (new_id(), new_id());
        assert!(one != 0 && one != other);
    }
}
