//! Check that all programs of a user together have no more memory for rings than a recorder says,
//! and that who finds none left runs on and counts what is not recorded.

mod traced;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ring::{Announced, Directory, RingFile, Switch};
use traced::{build, events};

/// Writes 100 events behind its input's end.
const WAITING: &str = r#"
#include <rtscope/event.h>
#include <unistd.h>
int main(void)
{
    char byte;
    if (read(0, &byte, 1) < 0)
        return 1;
    for (unsigned i = 0; i < 100; i++)
        RTSCOPE_EVENT(app, tick, u32("i", i));
    return 0;
}
"#;
const EVENTS: u64 = 100;

struct Scene {
    shared: tempfile::TempDir,
    directory: Directory,
    program: PathBuf,
}

/// What a process has.
struct Found {
    file: RingFile,
    /// Bytes of its rings that have memory, and how many those are.
    bytes: u64,
    rings: usize,
}

impl Scene {
    fn new(name: &str, source: &str) -> Scene {
        let shared = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        Scene {
            directory: Directory::open(shared.path(), owner).expect("a directory"),
            program: build(name, source),
            shared,
        }
    }

    fn announce(&self, lines: &[&str]) -> Announced {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        self.directory.announce(&lines).expect("a session")
    }

    /// Starts so many at once, and waits until each has its rings.
    fn start(&self, count: usize) -> Vec<Child> {
        let before = self.found().len();
        let start = |_| {
            let mut command = Command::new(&self.program);
            command.env("RTSCOPE_DIR", self.shared.path());
            command.stdin(Stdio::piped()).spawn().expect("it starts")
        };
        let children = (0..count).map(start).collect();
        while self.found().len() < before + count {
            std::thread::yield_now();
        }
        children
    }

    /// Those whose program's events are described.
    fn found(&self) -> Vec<Found> {
        let names = self.directory.names().expect("names");
        let files = names.iter().filter_map(|name| {
            let file = self.directory.rings(name).expect("rings");
            file.filter(|file| file.described_bytes() > 0)
        });
        files.map(Found::of).collect()
    }
}

impl Found {
    fn of(file: RingFile) -> Found {
        let layout = file.layout();
        let all = 0..layout.rings;
        let has = |ring: &u32| file.control(*ring).expect("a control").is_some();
        let lacks = file.lacks_bytes().expect("controls");
        let rings = match lacks {
            0 => all.filter(has).count(),
            _ => 0,
        };
        Found {
            bytes: rings as u64 * layout.ring_bytes,
            rings,
            file,
        }
    }

    fn lost(&self) -> u64 {
        let rings = 0..self.file.layout().rings;
        let losses = rings.filter_map(|ring| self.file.control(ring).expect("a control"));
        losses.flat_map(|(_, losses)| losses).sum()
    }
}

fn end(children: Vec<Child>) {
    for child in children {
        testkit::let_end(child);
    }
}

#[test]
fn of_many_that_start_at_once_all_have_no_more_than_a_user_may() {
    const PROCESSES: usize = 300;
    const BOUND: u64 = 6 << 20;
    let scene = Scene::new("per_user", WAITING);
    let line = format!("!rings-per-user {BOUND}");
    let session = scene.announce(&["app", "!ring-at-most 8M", &line]);
    let children = scene.start(PROCESSES);
    let (with, without): (Vec<_>, Vec<_>) =
        scene.found().into_iter().partition(|one| one.rings > 0);
    assert_eq!(with.len() + without.len(), PROCESSES);
    let all: u64 = with.iter().map(|one| one.bytes).sum();
    assert!(all <= BOUND, "{all} bytes of {} processes", with.len());
    // It serves many, and none has much of it.
    assert!(with.len() > 50, "{} have rings", with.len());
    assert!(!without.is_empty(), "all of {PROCESSES} have rings");
    let largest = with.iter().map(|one| one.bytes).max();
    assert!(largest <= Some(BOUND / 16), "{largest:?}");
    end(children);
    // Nothing is recorded nowhere: what found no ring is counted where it happened.
    let mut found = scene.found();
    let recorded = found
        .iter_mut()
        .map(|one| (events(&mut one.file).len() as u64, one.lost()));
    for (recorded, lost) in recorded {
        assert!(
            [(EVENTS, 0), (0, EVENTS)].contains(&(recorded, lost)),
            "{recorded} recorded and {lost} lost"
        );
    }
    scene.directory.remove(&session).expect("removed");
}

#[test]
fn rings_whose_size_was_asked_for_are_there_whole_or_not_at_all() {
    let scene = Scene::new("per_user_exact", WAITING);
    let child = scene.start(1);
    let cpus = scene.found()[0].file.awaited().expect("controls").len() as u64;
    end(child);
    // Room for two, and for what is beside their rings.
    let line = format!("!rings-per-user {}", 2 * cpus * (1 << 20) + (256 << 10));
    let session = scene.announce(&["app", "!ring 1M", &line]);
    let children: Vec<_> = (0..4).flat_map(|_| scene.start(1)).collect();
    let found = scene.found();
    let size = |one: &Found| one.file.layout().ring_bytes;
    assert!(found.iter().all(|one| size(one) == 1 << 20));
    let mut rings: Vec<_> = found.iter().map(|one| one.rings as u64).collect();
    rings.sort_unstable();
    assert_eq!(rings, [0, 0, cpus, cpus]);
    end(children);
    scene.directory.remove(&session).expect("removed");
}

#[test]
fn a_recorder_gives_rings_no_more_than_it_was_told() {
    let scene = Scene::new("per_user_late", WAITING);
    let children = scene.start(1);
    let mut file = scene.found().remove(0).file;
    file.read_table().expect("a table");
    file.size(256 << 10).expect("a size");
    let event = &file.table().events[0];
    let lacks = file.lacks_bytes().expect("controls");
    assert!(lacks > 0 && lacks.is_multiple_of(file.layout().ring_bytes));
    file.give_at_most(lacks - 1);
    assert!(file.switch(event, Switch::On).expect("switched"));
    assert_eq!(file.lacks_bytes().expect("controls"), lacks);
    assert_eq!(file.without_memory(), Some(rustix::io::Errno::DQUOT));
    end(children);
    assert_eq!(Found::of(file).lost(), EVENTS);
    // Who has so much left has all of it.
    let children = scene.start(1);
    let mut found = scene.found();
    let mut file = found.pop().expect("rings").file;
    file.read_table().expect("a table");
    file.size(256 << 10).expect("a size");
    file.give_at_most(lacks);
    assert!(
        file.switch(&file.table().events[0], Switch::On)
            .expect("switched")
    );
    assert_eq!(
        (file.lacks_bytes().expect("controls"), file.without_memory()),
        (0, None)
    );
    end(children);
    assert_eq!(events(&mut file).len() as u64, EVENTS);
}

/// Has its first event when it is told to.
const LATER: &str = r#"
#include <rtscope/event.h>
#include <unistd.h>
static const char text[] = "\016late\0one\0\004i\0";
static struct rtscope_late late = {0, text, sizeof text, RTSCOPE_ENTRY_EVENT, 0};
int main(void)
{
    uint64_t payload[RTSCOPE_PAYLOAD_BYTES_MAX / 8];
    char byte;
    RTSCOPE_EVENT(app, tick, u32("i", 0));
    if (read(0, &byte, 1) < 0)
        return 1;
    rtscope_add(&late);
    for (payload[0] = 0; payload[0] < 100 && late.state->enabled; payload[0]++)
        rtscope_write_late(&late, payload, sizeof payload[0]);
    return 0;
}
"#;

#[test]
fn an_event_that_comes_later_finds_no_more_than_is_left() {
    let scene = Scene::new("per_user_later", LATER);
    let check = |bound: &str, expect: (u64, u64)| {
        // It runs before anybody says anything.
        let children = scene.start(1);
        let session = scene.announce(&["late", bound]);
        end(children);
        scene.directory.remove(&session).expect("removed");
        let mut found = scene.found();
        assert_eq!(found.len(), 1, "{bound}");
        let one = &mut found[0];
        let recorded = (events(&mut one.file).len() as u64, one.lost());
        assert_eq!(recorded, expect, "{bound}");
        scene.directory.remove(one.file.name()).expect("removed");
    };
    check("!rings-per-user 1G", (EVENTS, 0));
    check("!rings-per-user 16K", (0, EVENTS));
}
