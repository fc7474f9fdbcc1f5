//! Check that rings in flight keep the newest events for whoever looks, that what a killed process
//! wrote can be recovered, and that looking changes nothing. Needs no privilege.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capture::{RecordConfig, UserConfig, Whose, fly, look, record, require_rings};
use event::{ErrorKind, TimeRange};
use host::capabilities::Capabilities;
use testkit::{Traced, build_traced};
use trace::{Item, Trace};

/// Waits until it is enabled, writes, says so, and waits for its input's end.
const PROGRAM: &str = r#"
#include <rtscope/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    char byte;
    const unsigned long events = strtoul(words[1], 0, 10);
    while (count > 2 && !*(volatile unsigned char *)&__start_rtscope_switches->enabled)
        usleep(1000);
    for (unsigned long i = 0; i < events; i++)
        RTSCOPE_EVENT(flight, tick, u64("i", i));
    puts("written");
    fflush(stdout);
    return read(0, &byte, 1) < 0;
}
"#;

const EVENTS: u64 = 100_000;

struct Scene {
    shared: tempfile::TempDir,
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Scene {
            shared: tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory"),
            folder: tempfile::tempdir().expect("a folder"),
            program: build_traced(scratch, name, Traced::c(PROGRAM)),
        }
    }

    /// A process that has written all its events.
    fn written(&self, words: &[&str], variables: &[(&str, &str)]) -> Child {
        let mut command = Command::new(&self.program);
        command.args(words).env("RTSCOPE_DIR", self.shared.path());
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut said = [0; 7];
        let stdout = child.stdout.as_mut().expect("its output");
        std::io::Read::read_exact(stdout, &mut said).expect("it says so");
        child
    }

    /// The numbers that a look finds, in the order of the trace.
    fn look(&self, output: &str, whose: Whose, remove: bool) -> event::Result<Vec<u64>> {
        let output = self.folder.path().join(output);
        let summary = look(&output, Some(self.shared.path()), whose, remove)?;
        assert_eq!(summary.user.refused, Vec::<String>::new());
        assert!(
            summary
                .user
                .processes
                .iter()
                .all(|process| process.malformed == 0)
        );
        let trace = Trace::open(&summary.path)?;
        let mut cursor = trace.cursor(TimeRange::ALL);
        let mut numbers = Vec::new();
        while let Some(item) = cursor.next()? {
            let Item::Event(event) = item else { continue };
            let class = &trace.classes()[event.class().0 as usize];
            if class.name == "flight:tick" {
                numbers.push(event.u64(class.field("i").expect("i")));
            }
        }
        Ok(numbers)
    }

    fn rings(&self) -> usize {
        let entries = std::fs::read_dir(self.shared.path()).expect("the shared folder");
        let names = entries.map(|entry| entry.expect("a name").file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with("rings-"))
            .count()
    }
}

fn check_newest(numbers: &[u64]) {
    assert!(numbers.is_sorted_by(|a, b| a < b), "out of order or twice");
    assert_eq!(numbers.last(), Some(&(EVENTS - 1)), "the newest is there");
    assert!(numbers.len() > 1000 && numbers.len() < EVENTS as usize);
}

#[test]
fn rings_in_flight_keep_the_newest_and_looking_changes_nothing() {
    let scene = Scene::new("flight");
    let stop = Arc::new(AtomicBool::new(false));
    let user = UserConfig::new(&["flight".to_owned()]).expect("a pattern");
    // Too small for all events.
    let user = user.with_rings(Some(256 << 10));
    let config = RecordConfig {
        kernel: false,
        user: Some(user.in_directory(scene.shared.path())),
        stop: Arc::clone(&stop),
        ..RecordConfig::new(scene.folder.path().join("unused"))
    };
    let flying = std::thread::spawn(move || fly(&config, &Capabilities::default()));
    let mut child = scene.written(&["100000", "wait"], &[]);
    let first = scene.look("first", Whose::All, false).expect("a trace");
    check_newest(&first);
    let again = scene.look("again", Whose::All, false).expect("a trace");
    assert!(again == first, "{} of {}", again.len(), first.len());
    let alive = scene
        .look("dead", Whose::Dead, false)
        .expect_err("it is alive");
    assert_eq!(alive.kind(), ErrorKind::NotFound);
    let shared = Some(scene.shared.path());
    require_rings(shared, Whose::All).expect("there are some");
    let alive = require_rings(shared, Whose::Dead).expect_err("it is alive");
    let found = alive.value_found().expect("what was found");
    assert!(found.starts_with("rings of 1 living processes"), "{found}");
    // It crashes: what it wrote stays, also when nobody flies any more.
    child.kill().expect("killed");
    child.wait().expect("gone");
    stop.store(true, Ordering::Release);
    flying.join().expect("no panic").expect("it flew");
    // A recording that begins later has no part in it, and leaves it there.
    let user = UserConfig::new(&["flight".to_owned()]).expect("a pattern");
    let later = RecordConfig {
        kernel: false,
        user: Some(user.in_directory(scene.shared.path())),
        duration: Some(event::Duration::from_ms(300)),
        ..RecordConfig::new(scene.folder.path().join("later"))
    };
    let nothing = record(&later, &Capabilities::default(), "test").expect_err("nobody was traced");
    assert_eq!(nothing.kind(), ErrorKind::NotFound, "{nothing:#}");
    let recovered = scene.look("recovered", Whose::Dead, true);
    let recovered = recovered.expect("a trace");
    assert!(recovered == first, "{} of {}", recovered.len(), first.len());
    assert_eq!(scene.rings(), 0, "recovered rings are gone");
}

#[test]
fn what_a_killed_process_left_unread_is_recovered() {
    let scene = Scene::new("killed");
    let check = |output: &str, variables: &[(&str, &str)]| {
        let mut child = scene.written(&["1000"], variables);
        child.kill().expect("killed");
        child.wait().expect("gone");
        assert_eq!(scene.rings(), 1);
        let numbers = scene.look(output, Whose::Dead, true).expect("a trace");
        let count = numbers.len();
        assert!(numbers.into_iter().eq(0..1000), "{variables:?}: {count}");
        assert_eq!(scene.rings(), 0);
    };
    let events = ("RTSCOPE_EVENTS", "flight");
    check("discard", &[events]);
    check("monotonic", &[events, ("RTSCOPE_CLOCK", "monotonic")]);
    check("overwrite", &[events, ("RTSCOPE_MODE", "overwrite")]);
    check("block", &[events, ("RTSCOPE_MODE", "block")]);
    let nothing = scene
        .look("nothing", Whose::All, false)
        .expect_err("no rings");
    assert_eq!(nothing.kind(), ErrorKind::NotFound);
}
