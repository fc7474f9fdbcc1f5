//! Programs with events, run once, and what they left in their rings.

#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};
use std::process::Command;

use ring::{Directory, EventDescription, Records, RingFile};
use testkit::{Traced, build_traced};

/// One event, read back: name, fields as text.
pub type Event = (String, Vec<String>);

/// Runs the program with `variables` and gives what it left in its directory.
pub fn run(program: &Path, variables: &[(&str, &str)]) -> (tempfile::TempDir, Vec<RingFile>) {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a directory in shared memory");
    let mut command = Command::new(program);
    command.env("RTSCOPE_DIR", folder.path());
    command.envs(variables.iter().copied());
    assert!(command.status().expect("the program runs").success());
    let files = files(folder.path());
    (folder, files)
}

/// The rings in a folder.
pub fn files(folder: &Path) -> Vec<RingFile> {
    let owner = rustix::process::geteuid().as_raw();
    let directory = Directory::open(folder, owner).expect("a trusted directory");
    let names = directory.names().expect("names");
    let files = names.iter().map(|name| directory.rings(name));
    let files = files.map(|file| file.expect("rings").expect("complete rings"));
    files.collect()
}

/// All events of a file, ring after ring.
pub fn events(file: &mut RingFile) -> Vec<Event> {
    file.read_table().expect("a table");
    assert_eq!(file.table().problems, []);
    let layout = file.layout().clone();
    let mut found = Vec::new();
    for ring in 0..layout.rings {
        let Some((window, _)) = file.control(ring).expect("a control") else {
            continue;
        };
        let mut bytes = Vec::new();
        file.copy(ring, window.tail..window.head, &mut bytes)
            .expect("data");
        let mut records = Records::new(&bytes, window.tail, layout.subbuffer_bytes, 0);
        for record in records.by_ref() {
            let known = |event: &&EventDescription| event.id == record.id;
            let event = file.table().events.iter().find(known).expect("a known id");
            let mut fields = Vec::new();
            assert!(event.split(record.payload, |field, bytes| {
                fields.push(format!("{}={bytes:?}", field.name));
            }));
            found.push((event.full_name(), fields));
        }
        assert_eq!(records.malformed(), 0);
        assert_eq!(records.position(), window.head);
    }
    found
}

/// Builds a program in C.
pub fn build(name: &str, source: &str) -> PathBuf {
    build_traced(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        name,
        Traced::c(source),
    )
}
