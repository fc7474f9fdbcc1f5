//! Check that several recorders of a process have each a set of its rings, and change its switches
//! at the same time without losing what another did.

mod traced;

use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use abi::rings::{self, Filters, Header, Plain, Set};
use proptest::prelude::*;
use ring::{RingFile, Switch};
use traced::build;

/// Waits with an event that nobody wants yet.
const PROGRAM: &str = "#include <rtscope/event.h>\n#include <unistd.h>\nint main(void) { char c; \
                       const int done = read(0, &c, 1) < 0; RTSCOPE_EVENT(app, step); \
                       return done; }";

/// A process that waits, and its rings.
struct Scene {
    folder: tempfile::TempDir,
    process: Child,
}

impl Scene {
    fn start(program: &PathBuf) -> Scene {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a directory in shared memory");
        let mut command = Command::new(program);
        command.env("RTSCOPE_DIR", folder.path());
        command.stdin(Stdio::piped());
        let process = command.spawn().expect("it starts");
        while traced_files(&folder).is_empty() {
            std::thread::yield_now();
        }
        Scene { folder, process }
    }

    /// The rings as another recorder opens them, with its event.
    fn open(&self) -> RingFile {
        let mut file = traced_files(&self.folder).pop().expect("rings");
        while file.read_table().expect("a table").is_empty() {
            std::thread::yield_now();
        }
        file
    }

    /// The file by its bytes.
    fn bytes(&self) -> std::fs::File {
        let name = self.open().name().to_owned();
        let mut options = std::fs::File::options();
        let file = options.read(true).write(true);
        file.open(self.folder.path().join(name)).expect("ours")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Those that are complete.
fn traced_files(folder: &tempfile::TempDir) -> Vec<RingFile> {
    let owner = rustix::process::geteuid().as_raw();
    let directory = ring::Directory::open(folder.path(), owner).expect("a trusted directory");
    let names = directory.names().expect("names");
    let files = names
        .iter()
        .filter_map(|name| directory.rings(name).expect("rings"));
    files.collect()
}

/// Nobody is alive but those that have a lock.
fn nobody(_: u64) -> bool {
    false
}

#[test]
fn four_recorders_have_a_set_each_and_what_a_dead_one_had_goes_first_to_the_next() {
    let scene = Scene::start(&build("four_sets", PROGRAM));
    let mut recorders: Vec<RingFile> = (0..4).map(|_| scene.open()).collect();
    for (place, recorder) in recorders.iter_mut().enumerate() {
        assert!(
            recorder
                .claim(place as u64 + 1, &|_| true, 0)
                .expect("asked")
        );
        assert_eq!(recorder.layout().set, place as u32);
    }
    let mut fifth = scene.open();
    assert!(
        !fifth.claim(5, &nobody, 0).expect("asked"),
        "all are locked"
    );
    // One that ends gives its set back; one that is killed leaves its number.
    recorders[1].release().expect("given back");
    drop(recorders.remove(1));
    drop(recorders.remove(1));
    assert!(fifth.claim(5, &|id| id != 3, 0).expect("asked"));
    assert_eq!(fifth.layout().set, 2);
    let mut sixth = scene.open();
    assert!(sixth.claim(6, &|_| true, 0).expect("asked"));
    assert_eq!(sixth.layout().set, 1);
    assert_eq!(sixth.session_of(2).expect("a number"), 5);
}

#[test]
fn a_set_of_a_recorder_that_lives_and_has_not_come_yet_is_its_own() {
    let scene = Scene::start(&build("given_set", PROGRAM));
    let first = offset_of!(Header, more) + offset_of!(Set, session);
    let given = scene
        .bytes()
        .write_all_at(&9u64.to_le_bytes(), first as u64);
    given.expect("a number");
    let mut others: Vec<RingFile> = (0..4).map(|_| scene.open()).collect();
    let found: Vec<bool> = (1..=4)
        .zip(&mut others)
        .map(|(id, other)| other.claim(id, &|id| id == 9, 0).expect("asked"))
        .collect();
    assert_eq!(found, [true, true, true, false]);
    assert!(others.iter().take(3).all(|other| other.layout().set != 1));
    let mut own = scene.open();
    assert!(own.claim(9, &nobody, 0).expect("asked"));
    assert_eq!(own.layout().set, 1);
    assert!(others[0].is_waited_for(&|id| id == 9).expect("asked"));
    own.release().expect("given back");
    assert!(!others[0].is_waited_for(&|id| id == 9).expect("asked"));
}

/// What one recorder does to a switch.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Off,
    On,
    Filtered,
}

fn turn(recorder: &RingFile, turn: Turn) {
    let event = &recorder.table().events[0];
    let to = match turn {
        Turn::Off => Switch::Off,
        Turn::On => Switch::On,
        // Its first bytes tell whose it is.
        Turn::Filtered => {
            let own = recorder.layout().set as u8;
            match recorder.place_filter(&[own; 8]).expect("placed") {
                Some(place) => Switch::Filtered(place),
                None => Switch::On,
            }
        }
    };
    recorder.switch(event, to).expect("switched");
}

/// What the switch and its filters say of each set: off, on, or its filter's first byte.
fn said(scene: &Scene) -> (u8, Vec<Option<Option<u8>>>) {
    let bytes = scene.bytes();
    let mut header = vec![0; size_of::<Header>()];
    bytes.read_exact_at(&mut header, 0).expect("a header");
    let header = Header::from_bytes(&header).expect("a header");
    let mut word = [0; 8];
    let read = bytes.read_exact_at(&mut word, header.switches_offset);
    read.expect("its one switch");
    let switch = rings::Switch::from_bytes(&word).expect("a switch");
    let part = |place: u32, length: usize| {
        let mut part = vec![0; length];
        let at = header.filters_offset + u64::from(place) * 8;
        bytes.read_exact_at(&mut part, at).expect("in the file");
        part
    };
    let filters = match switch.filter {
        0 => Filters::default(),
        place => Filters::from_bytes(&part(place, size_of::<Filters>())).expect("filters"),
    };
    let of_set = |set: usize| {
        let is_on = switch.sets & 1 << set != 0;
        is_on.then(|| (filters.at[set] != 0).then(|| part(filters.at[set], 1)[0]))
    };
    (switch.enabled, (0..rings::SETS_MAX).map(of_set).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::runs(24)))]

    #[test]
    fn what_recorders_do_to_a_switch_at_the_same_time_is_what_each_did_last(
        turns in prop::collection::vec(prop::collection::vec(0..3u8, 1..40), 4),
    ) {
        static PROGRAM_BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
        let scene = Scene::start(PROGRAM_BUILT.get_or_init(|| build("same_switch", PROGRAM)));
        let turns: Vec<Vec<Turn>> = turns
            .iter()
            .map(|turns| {
                let of = |number: &u8| [Turn::Off, Turn::On, Turn::Filtered][usize::from(*number)];
                turns.iter().map(of).collect()
            })
            .collect();
        std::thread::scope(|scope| {
            for (place, turns) in turns.iter().enumerate() {
                let mut recorder = scene.open();
                assert!(recorder.claim(place as u64 + 1, &|_| true, 0).expect("asked"));
                scope.spawn(move || {
                    turns.iter().for_each(|one| turn(&recorder, *one));
                });
            }
        });
        let (enabled, found) = said(&scene);
        for (set, turns) in turns.iter().enumerate() {
            let expect = match turns.last().expect("one at least") {
                Turn::Off => None,
                Turn::On => Some(None),
                Turn::Filtered => Some(Some(set as u8)),
            };
            prop_assert!(found[set] == expect, "{set}: {:?} {:?}", found, turns);
        }
        let anybody = found.iter().any(Option::is_some);
        let alone = found[0] == Some(None) && found[1..].iter().all(Option::is_none);
        prop_assert_eq!(enabled != 0, anybody);
        prop_assert_eq!(enabled == rings::ENABLED, alone);
    }
}

/// A hundred events.
const STEPS: &str = "#include <rtscope/event.h>\n\
                     int main(void) { for (int i = 0; i < 100; i++) RTSCOPE_EVENT(app, step); \
                     return 0; }";

#[test]
fn what_was_recorded_without_a_recorder_waits_for_one_whatever_size_that_wants() {
    let program = build("without_a_recorder", STEPS);
    let (_folder, mut files) = traced::run(&program, &[("RTSCOPE_EVENTS", "app")]);
    let file = &mut files[0];
    assert!(file.claim(7, &nobody, 4 << 20).expect("asked"));
    assert!(file.holds_something(file.layout().set).expect("asked"));
}

#[test]
fn what_a_killed_recorder_had_not_read_stays_as_long_as_there_is_another_set() {
    let program = build("unread", STEPS);
    let (folder, mut files) = traced::run(&program, &[("RTSCOPE_EVENTS", "app")]);
    let directory = ring::Directory::open(folder.path(), rustix::process::geteuid().as_raw());
    let directory = directory.expect("a trusted directory");
    let open = || {
        let name = directory.names().expect("names").remove(0);
        directory.rings(&name).expect("rings").expect("complete")
    };
    let mut killed = files.remove(0);
    assert!(killed.claim(7, &nobody, 0).expect("asked"));
    let unread = killed.layout().set;
    drop(killed);
    // None of these reads what the first one had.
    for session in 8..20 {
        let mut next = open();
        assert!(next.is_left_unread(&nobody).expect("asked"));
        assert!(next.claim(session, &nobody, 0).expect("asked"));
        assert_ne!(next.layout().set, unread, "{session}");
        assert!(next.is_left_unread(&nobody).expect("asked"));
        assert!(next.is_waited_for(&nobody).expect("asked"));
    }
    // Where there is no other it is better read than lost.
    let mut all: Vec<RingFile> = (0..4).map(|_| open()).collect();
    for (session, file) in (20..).zip(&mut all) {
        assert!(file.claim(session, &|id| id > 19, 0).expect("asked"));
    }
    assert_eq!(all[3].layout().set, unread);
    assert!(!all[3].is_left_unread(&|id| id > 19).expect("asked"));
}

#[test]
fn what_a_recorder_that_ended_left_is_no_part_of_the_next_recording_unless_its_event_stays_on() {
    let program = build("left", STEPS);
    let check = |switches_off: bool| {
        let (folder, mut files) = traced::run(&program, &[("RTSCOPE_EVENTS", "app")]);
        let mut first = files.remove(0);
        assert!(first.claim(7, &nobody, 0).expect("asked"));
        first.read_table().expect("a table");
        if switches_off {
            let event = &first.table().events[0];
            first.switch(event, Switch::Off).expect("switched");
        }
        let set = first.layout().set;
        first.release().expect("given back");
        drop(first);
        let mut next = traced::files(folder.path()).remove(0);
        assert!(!next.is_left_unread(&nobody).expect("asked"));
        assert!(next.claim(8, &nobody, 0).expect("asked"));
        let holds = next.holds_something(set).expect("asked");
        let unread = |ring| {
            let window = next.control(ring).expect("a control");
            window.map_or(0, |(window, _)| window.head - window.tail)
        };
        let unread: u64 = (0..next.layout().rings).map(unread).sum();
        (next.layout().set == set, holds, unread > 0)
    };
    assert_eq!(check(false), (true, true, true));
    assert_eq!(check(true), (true, false, false));
}
