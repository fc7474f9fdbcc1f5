//! Files that the real trace-cmd makes of rings with a known number of events. Needs root.
//!
//! The rings are those of an instance of our own; trace-cmd only packs their pages into files
//! (`restore`, `convert`), so that the global instance stays as it is.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use event::{Cpu, FieldId, TimeRange};
use ftrace::{EventName, Instance, PagePipe, Tracefs};
use trace::{Item, Trace};

/// Marks that one scene writes.
const MARKS: u64 = 3000;

/// An instance that records marks and switches.
struct Scene {
    tracefs: Tracefs,
    // Closed first: an instance with an open file cannot be removed.
    marker: File,
    instance: Instance,
    dir: tempfile::TempDir,
}

impl Scene {
    fn new(buffer_bytes: usize) -> Scene {
        let tracefs = Tracefs::find().expect("tracefs is mounted");
        let instance = Instance::create(&tracefs).expect("an instance");
        instance.set_buffer_size(buffer_bytes).expect("a size");
        for name in ["sched:sched_switch", "sched:sched_waking"] {
            let name = EventName::parse(name).expect("a full name");
            instance.enable(&name).expect("the event exists");
        }
        instance.start().expect("it starts");
        let marker = tracefs
            .root()
            .join("instances")
            .join(instance.name())
            .join("trace_marker");
        Scene {
            marker: File::options().write(true).open(marker).expect("a file"),
            dir: tempfile::tempdir().expect("a directory"),
            tracefs,
            instance,
        }
    }

    fn mark(&mut self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            // One write is one event.
            let written = self.marker.write_all(format!("mark={number}").as_bytes());
            written.expect("a mark is written");
        }
    }

    fn pipes(&self) -> Vec<PagePipe> {
        let layout = self.tracefs.page_layout().expect("a layout");
        let cpus = self.instance.cpus().iter();
        let pipe = |cpu: &Cpu| self.instance.open_pipe(*cpu, &layout).expect("a pipe");
        cpus.map(pipe).collect()
    }

    fn trace_cmd(&self, words: &[&str]) {
        let mut command = Command::new("trace-cmd");
        let output = command.args(words).current_dir(self.dir.path()).output();
        let output = output.expect("trace-cmd runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
    }

    /// What trace-cmd makes of the pages of each CPU.
    fn restored(&self, pages: &[Vec<u8>]) -> PathBuf {
        let mut words = vec!["restore", "-i", "head", "-o", "whole"];
        let names: Vec<String> = (0..pages.len()).map(|cpu| format!("cpu{cpu}")).collect();
        for (name, pages) in names.iter().zip(pages) {
            std::fs::write(self.dir.path().join(name), pages).expect("a file");
            words.push(name);
        }
        self.trace_cmd(&["restore", "-c", "-o", "head"]);
        self.trace_cmd(&words);
        self.dir.path().join("whole")
    }
}

/// Appends all pages that a pipe has.
fn drain(pipe: &mut PagePipe, pages: &mut Vec<u8>) {
    let mut page = vec![0; pipe.page_size_bytes()];
    while pipe.read_page(&mut page).expect("a read") {
        pages.extend_from_slice(&page);
    }
}

/// What a file shows: the numbers of its marks, its other events, the events that are missing.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    marks: Vec<u64>,
    others: u64,
    lost: u64,
    uncounted: u64,
}

/// The number of a mark, of either spelling of its event.
fn mark(text: &str) -> Option<u64> {
    text.trim().strip_prefix("mark=")?.parse().ok()
}

fn seen(path: &Path) -> Seen {
    let trace = Trace::open(path).unwrap_or_else(|error| panic!("{error:#}"));
    let buf: Vec<Option<FieldId>> = trace
        .classes()
        .iter()
        .map(|class| class.field("buf").filter(|_| class.name == "print"))
        .collect();
    let mut seen = Seen::default();
    let mut last_ns = i64::MIN;
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("readable") {
        match item {
            Item::Event(event) => {
                assert!(event.time().as_ns() >= last_ns, "time went backwards");
                last_ns = event.time().as_ns();
                let field = buf[event.class().0 as usize];
                let text = field.map(|field| String::from_utf8_lossy(event.text(field)));
                match text.as_deref().and_then(mark) {
                    Some(number) => seen.marks.push(number),
                    None => seen.others += 1,
                }
            }
            Item::Lost(lost) => match lost.count {
                Some(count) => seen.lost += count,
                None => seen.uncounted += 1,
            },
            Item::Damage(damage) => panic!("{damage:?}"),
        }
    }
    seen
}

/// How many events trace-cmd itself sees in a file.
fn reported(path: &Path) -> u64 {
    let output = Command::new("trace-cmd")
        .args(["report", "-R", "-i"])
        .arg(path)
        .output()
        .expect("trace-cmd runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter(|line| line.contains('[') && line.contains(": "))
        .count() as u64
}

fn has_trace_cmd(what: &str) -> bool {
    let runs = Command::new("trace-cmd").arg("--version").output().is_ok();
    if !runs {
        testkit::skip(what, "trace-cmd is not installed");
    }
    runs
}

#[test]
fn files_of_either_version_hold_every_event_that_was_made() {
    let _lock = testkit::privileged();
    if !has_trace_cmd("files of the real trace-cmd") {
        return;
    }
    let mut scene = Scene::new(4 << 20);
    scene.mark(0..MARKS);
    scene.instance.stop().expect("it stops");
    let mut pages = Vec::new();
    for mut pipe in scene.pipes() {
        pages.push(Vec::new());
        drain(&mut pipe, pages.last_mut().expect("just pushed"));
    }
    let whole = scene.restored(&pages);
    let expect = seen(&whole);
    assert_eq!(expect.marks, (0..MARKS).collect::<Vec<_>>());
    assert_eq!((expect.lost, expect.uncounted), (0, 0));
    let events = MARKS + expect.others;
    assert_eq!(reported(&whole), events);
    let listed = Command::new("trace-cmd").args(["list", "-c"]).output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let listed = listed.unwrap_or_default();
    for (version, packing) in [("6", "none"), ("7", "none"), ("7", "zstd"), ("7", "zlib")] {
        if packing != "none" && !listed.contains(packing) {
            testkit::skip(
                &format!("trace.dat with {packing} by the real trace-cmd"),
                "this trace-cmd was built without it",
            );
            continue;
        }
        let name = format!("version-{version}-{packing}");
        let (to, packed) = (["--file-version", version], ["--compression", packing]);
        let mut words = vec!["convert", "-i", "whole", "-o", &name];
        words.extend(to.iter().chain(&packed));
        scene.trace_cmd(&words);
        let path = scene.dir.path().join(&name);
        assert_eq!(seen(&path), expect, "{name}");
        let trace = Trace::open(&path).expect("a file");
        assert_eq!(trace.parts()[0].format_version, version);
    }
}

#[test]
fn events_that_the_ring_dropped_are_counted_at_their_place() {
    let _lock = testkit::privileged();
    if !has_trace_cmd("lost events in files of the real trace-cmd") {
        return;
    }
    let mut scene = Scene::new(64 << 10);
    // Marks alone, from one CPU: what is not there was lost.
    for name in ["sched:sched_switch", "sched:sched_waking"] {
        let name = EventName::parse(name).expect("a full name");
        scene.instance.disable(&name).expect("the event exists");
    }
    let mut pipes = scene.pipes();
    let mut pages = vec![Vec::new(); pipes.len()];
    // Whatever was recorded until now is read, so that the rings begin with the first mark.
    for pipe in &mut pipes {
        drain(pipe, &mut Vec::new());
    }
    scene.mark(0..10);
    for (pipe, pages) in pipes.iter_mut().zip(&mut pages) {
        drain(pipe, pages);
    }
    scene.mark(10..MARKS * 10);
    scene.instance.stop().expect("it stops");
    for (pipe, pages) in pipes.iter_mut().zip(&mut pages) {
        drain(pipe, pages);
    }
    let found = seen(&scene.restored(&pages));
    assert!(found.lost > 0, "the rings are smaller than the marks");
    assert_eq!(found.uncounted, 0);
    assert_eq!(
        found.marks.len() as u64 + found.lost,
        MARKS * 10,
        "{found:?}"
    );
    assert_eq!(found.marks.last(), Some(&(MARKS * 10 - 1)));
}
