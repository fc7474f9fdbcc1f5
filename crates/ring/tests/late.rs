//! Check that rings get their size from a recorder that comes when their program runs already: no
//! event is lost or torn on the way there, and no size that somebody makes up leads stores astray.

mod traced;

use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use abi::rings::{self, Header, Plain, Ring, Set};
use ring::{Directory, EventDescription, Records, RingFile, Switch};
use testkit::{Traced, build_traced};
use traced::build;

/// Writes from many threads and from a library too, when its input ends; or all the time, where its
/// word is `on`, until its input ends.
const WRITERS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <rtscope/event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define THREADS 8
#define EVENTS 3000
static void (*in_library)(unsigned thread, unsigned i);
static volatile int is_on, is_over;
static void write_one(unsigned thread, unsigned i)
{
    RTSCOPE_EVENT(app, fixed, u32("thread", thread), u32("i", i));
    RTSCOPE_EVENT(app, text, u32("thread", thread), u32("i", i), text("text", "as it varies"));
    in_library(thread, i);
}
static void *run(void *number)
{
    const unsigned thread = (unsigned)(uintptr_t)number;
    if (is_on)
        for (unsigned i = 0; !is_over; i++)
            write_one(thread, i);
    else
        for (unsigned i = 0; i < EVENTS; i++)
            write_one(thread, i);
    return 0;
}
int main(int count, char **words)
{
    pthread_t threads[THREADS];
    char byte;
    void *const library = dlopen(words[1], RTLD_NOW);
    is_on = count > 2;
    in_library = (void (*)(unsigned, unsigned))dlsym(library, "in_library");
    if (!is_on && read(0, &byte, 1) < 0)
        return 1;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, run, (void *)i);
    if (is_on && read(0, &byte, 1) < 0)
        return 1;
    is_over = 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return 0;
}
"#;
const THREADS: usize = 8;
const EVENTS: usize = 3000;
const LIBRARY: &str = r#"
#include <rtscope/event.h>
void in_library(unsigned thread, unsigned i);
void in_library(unsigned thread, unsigned i)
{
    RTSCOPE_EVENT(library, fixed, u32("thread", thread), u32("i", i));
}
"#;

struct Scene {
    folder: tempfile::TempDir,
    child: Child,
}

impl Scene {
    /// Starts a program that waits, and returns when all its events are described.
    fn start(program: &Path, words: &[&str], variables: &[(&str, &str)], events: usize) -> Scene {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new(program);
        command.args(words).env("RTSCOPE_DIR", folder.path());
        command
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let child = command.spawn().expect("it starts");
        let scene = Scene { folder, child };
        while scene
            .open()
            .is_none_or(|file| file.table().events.len() < events)
        {
            std::thread::yield_now();
        }
        scene
    }

    fn open(&self) -> Option<RingFile> {
        let owner = rustix::process::geteuid().as_raw();
        let directory = Directory::open(self.folder.path(), owner).expect("a directory");
        let name = directory.names().expect("names").pop()?;
        let mut file = directory.rings(&name).expect("rings")?;
        file.read_table().expect("a table");
        Some(file)
    }

    /// Ends it; whether it ended by itself and well.
    fn end(&mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn writers() -> &'static (PathBuf, String) {
    static BUILT: OnceLock<(PathBuf, String)> = OnceLock::new();
    BUILT.get_or_init(build_writers)
}

fn build_writers() -> (PathBuf, String) {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe/include");
    let (source, library) = (
        scratch.join("late_library.c"),
        scratch.join("late_library.so"),
    );
    std::fs::write(&source, LIBRARY).expect("the library's text");
    let mut compile = Command::new("cc");
    compile
        .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-I"])
        .arg(include);
    compile.arg("-o").arg(&library).arg(&source);
    assert!(compile.status().expect("a compiler").success());
    let traced = Traced {
        flags: &["-O2", "-std=gnu11", "-rdynamic", "-pthread"],
        ..Traced::c(WRITERS)
    };
    let program = build_traced(scratch, "late_writers", traced);
    (program, library.display().to_string())
}

fn switch_all(file: &RingFile, to: Switch) {
    for event in &file.table().events {
        assert!(file.switch(event, to).expect("switched"));
    }
}

/// The numbers of each event by thread, in the order of its ring; and the losses of all.
fn found(file: &RingFile) -> (Vec<(String, u32, u32)>, u64) {
    let (mut all, mut lost) = (Vec::new(), 0);
    let layout = file.layout();
    for ring in 0..layout.rings {
        let Some((window, losses)) = file.control(ring).expect("a control") else {
            continue;
        };
        lost += losses.iter().sum::<u64>();
        let mut bytes = Vec::new();
        let stretch = window.tail..window.head;
        file.copy(ring, stretch, &mut bytes).expect("data");
        let mut records = Records::new(&bytes, window.tail, layout.subbuffer_bytes, 0);
        for record in records.by_ref() {
            let known = |event: &&EventDescription| event.id == record.id;
            let event = file.table().events.iter().find(known).expect("a known id");
            let mut numbers = Vec::new();
            assert!(event.split(record.payload, |field, bytes| {
                match bytes.try_into().map(u32::from_le_bytes) {
                    Ok(number) => numbers.push(number),
                    Err(_) => {
                        assert_eq!((field.name.as_str(), bytes), ("text", &b"as it varies"[..]))
                    }
                }
            }));
            all.push((event.full_name(), numbers[0], numbers[1]));
        }
        assert_eq!((records.malformed(), records.position()), (0, window.head));
    }
    (all, lost)
}

#[test]
fn all_that_comes_behind_a_recorder_is_in_rings_of_the_size_that_it_gave() {
    let (program, library) = writers();
    let variables = [
        &[][..],
        &[("RTSCOPE_RSEQ", "off")][..],
        &[("RTSCOPE_CLOCK", "monotonic")][..],
    ];
    for (variables, set) in variables.iter().flat_map(|v| [(v, 0), (v, 2)]) {
        let mut scene = Scene::start(program, &[library], variables, 3);
        let mut file = scene.open().expect("rings");
        file.choose(set);
        assert!(!file.layout().has_size);
        file.size(8 << 20).expect("a size");
        assert_eq!(
            (file.layout().has_size, file.layout().ring_bytes),
            (true, 8 << 20)
        );
        switch_all(&file, Switch::On);
        assert!(scene.end());
        let (mut all, lost) = found(&file);
        // Without rseq all rings may be in use at once.
        assert!(lost == 0 || !variables.is_empty(), "{lost} lost");
        assert_eq!(
            all.len() + lost as usize,
            3 * THREADS * EVENTS,
            "{variables:?} {set}"
        );
        all.sort_unstable();
        all.dedup();
        assert_eq!(
            all.len() + lost as usize,
            3 * THREADS * EVENTS,
            "{variables:?} {set}"
        );
    }
}

/// A recorder that comes while threads run through their events, as on any day.
#[test]
fn threads_in_the_middle_of_their_events_when_a_recorder_comes_tear_none() {
    let (program, library) = writers();
    for turn in 0..testkit::runs(40) {
        let set = u32::from(turn % 4 == 3);
        let mut scene = Scene::start(program, &[library, "on"], &[], 3);
        let mut file = scene.open().expect("rings");
        file.choose(set);
        file.size(1 << (16 + turn % 8)).expect("a size");
        switch_all(&file, Switch::On);
        let holds = |ring| match file.control(ring).expect("a control") {
            Some((window, _)) => window.head > 0,
            None => false,
        };
        while !(0..file.layout().rings).any(holds) {
            std::thread::yield_now();
        }
        switch_all(&file, Switch::Off);
        // Every event of a thread has the number behind the one before it.
        let ended = scene.end();
        let (mut all, lost) = found(&file);
        assert!(ended, "{turn}");
        all.sort_unstable();
        let gaps = all.windows(2).filter(|pair| {
            let [one, next] = pair else { return false };
            (one.0.as_str(), one.1) == (next.0.as_str(), next.1) && one.2 + 1 != next.2
        });
        assert!(lost > 0 || gaps.count() == 0, "{turn}");
    }
}

const WAITS: &str = "#include <rtscope/event.h>\n#include <unistd.h>\nint main(void) { char c; \
                     const int done = read(0, &c, 1) < 0; for (unsigned i = 0; i < 1000; i++) \
                     RTSCOPE_EVENT(app, step, u64(\"i\", i)); return done; }";

#[test]
fn a_size_that_nobody_gave_leads_no_store_astray() {
    let program = build("late_hostile", WAITS);
    let room = {
        let scene = Scene::start(&program, &[], &[], 1);
        scene.open().expect("rings").layout().ring_bytes
    };
    let check = |size: u64, set: usize| {
        let mut scene = Scene::start(&program, &[], &[], 1);
        let mut file = scene.open().expect("rings");
        file.choose(set as u32);
        let path = scene.folder.path().join(file.name());
        let bytes = std::fs::File::options().read(true).write(true).open(&path);
        let bytes = bytes.expect("ours");
        let put = |at: usize, value: u64| {
            bytes
                .write_all_at(&value.to_le_bytes(), at as u64)
                .expect("written");
        };
        let at = match set {
            0 => offset_of!(Header, ring_bytes),
            _ => {
                offset_of!(Header, more)
                    + (set - 1) * size_of::<Set>()
                    + offset_of!(Set, ring_bytes)
            }
        };
        put(at, size);
        // All rings are said to be there.
        let mut header = [0; size_of::<Header>()];
        bytes.read_exact_at(&mut header, 0).expect("a header");
        let header = Header::from_bytes(&header).expect("a header");
        let control = |ring: usize| {
            let place = set * header.rings_length as usize + ring;
            header.controls_offset as usize + place * size_of::<Ring>()
        };
        for ring in 0..header.rings_length as usize {
            put(control(ring) + offset_of!(Ring, absent), 0);
            put(control(ring) + offset_of!(Ring, tail), 0);
        }
        file.switch(&file.table().events[0], Switch::On)
            .expect("switched");
        assert!(scene.end(), "{size} in set {set}");
        let lost = (0..header.rings_length as usize).map(|ring| {
            let mut one = [0; size_of::<Ring>()];
            bytes
                .read_exact_at(&mut one, control(ring) as u64)
                .expect("a control");
            Ring::from_bytes(&one)
                .expect("a control")
                .lost
                .iter()
                .sum::<u64>()
        });
        assert_eq!(lost.sum::<u64>(), 1000, "{size} in set {set}");
    };
    for size in [
        3,
        4096,
        12_288,
        u64::MAX,
        1 << 63,
        2 * room,
        rings::RING_BYTES_MAX,
    ] {
        check(size, 0);
        check(size, 1);
    }
}

/// Locks its memory by what nothing sees that looks at what it is linked with.
const LOCKS: &str = r#"
#define _GNU_SOURCE
#include <rtscope/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static long resident(void)
{
    char line[4096];
    long found = 0, kib;
    int ours = 0;
    FILE *const maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strchr(line, '-') && strchr(line, '/'))
            ours = strstr(line, "/rings-") != NULL;
        if (ours && sscanf(line, "Rss: %ld", &kib) == 1)
            found += kib;
    }
    return found;
}
int main(void)
{
    char byte;
    if (syscall(SYS_mlockall, MCL_CURRENT | MCL_FUTURE) != 0)
        return 2;
    const long kib = resident();
    const int done = write(1, "", 1) < 0 || read(0, &byte, 1) < 0;
    for (unsigned i = 0; i < 200000; i++)
        RTSCOPE_EVENT(app, step, u64("i", i));
    return done || kib > 4096;
}
"#;

#[test]
fn a_program_that_locks_its_memory_unseen_fills_no_rings_and_is_recorded_later() {
    if !rustix::process::geteuid().is_root() {
        testkit::skip("late", "only root may lock what it likes");
        return;
    }
    let program = build("late_locked", LOCKS);
    let mut scene = Scene::start(&program, &[], &[], 1);
    let mut said = [0];
    let stdout = scene.child.stdout.as_mut().expect("its output");
    std::io::Read::read_exact(stdout, &mut said).expect("its memory can be locked");
    let mut file = scene.open().expect("rings");
    let before = file.memory_bytes().expect("a size");
    file.size(8 << 20).expect("a size");
    switch_all(&file, Switch::On);
    assert!(scene.end(), "its memory holds rings");
    assert!(before < 4 << 20, "{before} bytes");
    let (mut all, lost) = found_steps(&file);
    all.dedup();
    assert_eq!((all.len(), lost), (200_000, 0));
}

fn found_steps(file: &RingFile) -> (Vec<u64>, u64) {
    let (mut all, mut lost) = (Vec::new(), 0);
    for ring in 0..file.layout().rings {
        let Some((window, losses)) = file.control(ring).expect("a control") else {
            continue;
        };
        lost += losses.iter().sum::<u64>();
        let mut bytes = Vec::new();
        file.copy(ring, window.tail..window.head, &mut bytes)
            .expect("data");
        let records = Records::new(&bytes, window.tail, file.layout().subbuffer_bytes, 0);
        all.extend(
            records.map(|one| u64::from_le_bytes(one.payload.try_into().expect("a number"))),
        );
    }
    all.sort_unstable();
    (all, lost)
}

/// Writes 1000 events for each byte of its input.
const ANSWERS: &str = "#include <rtscope/event.h>\n#include <unistd.h>\nint main(void) { char c; \
                       while (read(0, &c, 1) == 1) { for (unsigned i = 0; i < 1000; i++) \
                       RTSCOPE_EVENT(app, step, u64(\"i\", i)); if (write(1, &c, 1) < 0) return 1; \
                       } return 0; }";

#[test]
fn a_recorder_that_ends_takes_memory_back_and_the_next_gives_it_anew() {
    let program = build("late_answers", ANSWERS);
    let mut scene = Scene::start(&program, &[], &[], 1);
    for turn in 0..3 {
        let mut file = scene.open().expect("rings");
        file.size(2 << 20).expect("a size");
        let before = file.memory_bytes().expect("a size");
        switch_all(&file, Switch::On);
        let during = file.memory_bytes().expect("a size");
        let stdin = scene.child.stdin.as_mut().expect("its input");
        std::io::Write::write_all(stdin, b"a").expect("asked");
        let stdout = scene.child.stdout.as_mut().expect("its output");
        std::io::Read::read_exact(stdout, &mut [0]).expect("an answer");
        let (steps, lost) = found_steps(&file);
        assert_eq!((steps.len(), lost), (1000, 0), "{turn}");
        // What is not read, and what has still an event, stays.
        file.take_memory_back().expect("looked at");
        switch_all(&file, Switch::Off);
        file.take_memory_back().expect("looked at");
        assert_eq!(found_steps(&file).0.len(), 1000, "{turn}");
        for ring in 0..file.layout().rings {
            // The other rings are absent already.
            if let Some((window, _)) = file.control(ring).expect("a control") {
                file.consumed(ring, window.head).expect("said");
            }
        }
        file.take_memory_back().expect("given back");
        let behind = file.memory_bytes().expect("a size");
        assert!(during - before >= 1 << 20, "{turn}: {before} {during}");
        assert!(behind < during / 2, "{turn}: {during} {behind}");
    }
    assert!(scene.end());
}
