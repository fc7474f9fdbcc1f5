//! Check that nothing that one traced process does ends, stalls or discards the recording of
//! another: beside each attack an honest process is recorded to its last event, and babeltrace2
//! reads the trace. Needs no privilege.

mod forged;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use abi::rings::{self, Ring};
use capture::{RecordConfig, RecordSummary, UserConfig, record};
use event::{Result, TimeRange};
use forged::{Forged, entry, event, name, now_ns};
use host::capabilities::Capabilities;
use testkit::{Traced, build_traced};
use trace::{Item, Trace};

/// Writes 2,000 events in bursts that its rings hold, when its input ends.
const HONEST: &str = r#"
#include <rtscope/event.h>
#include <unistd.h>
int main(void)
{
    char byte;
    if (read(0, &byte, 1) < 0)
        return 1;
    for (int i = 0; i < 2000; i++) {
        RTSCOPE_EVENT(honest, tick, i32("i", i));
        if (i % 20 == 0)
            usleep(1000);
    }
    return 0;
}
"#;
const EVENTS: u64 = 2000;

struct Scene {
    folder: tempfile::TempDir,
    shared: tempfile::TempDir,
    program: PathBuf,
}

struct Recording {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<RecordSummary>>,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Scene {
            folder: tempfile::tempdir().expect("a folder"),
            shared: tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory"),
            program: build_traced(scratch, name, Traced::c(HONEST)),
        }
    }

    fn begin(&self) -> Recording {
        let stop = Arc::new(AtomicBool::new(false));
        let user = UserConfig::new(&["*".to_owned()]).expect("a pattern");
        let config = RecordConfig {
            kernel: false,
            user: Some(user.in_directory(self.shared.path())),
            stop: Arc::clone(&stop),
            ..RecordConfig::new(self.folder.path().join("trace"))
        };
        let thread = std::thread::spawn(move || record(&config, &Capabilities::default(), "test"));
        let is_announced = || {
            entries(self.shared.path()).any(|path| {
                let name = path.file_name().expect("a name").as_encoded_bytes();
                name.starts_with(b"session-") && path.is_file()
            })
        };
        while !is_announced() {
            std::thread::yield_now();
        }
        Recording { stop, thread }
    }

    fn honest(&self) -> Child {
        let mut command = Command::new(&self.program);
        command.env("RTSCOPE_DIR", self.shared.path());
        command.stdin(Stdio::piped());
        command.spawn().expect("it starts")
    }

    /// Leaves nothing for the next recording. It would take a file that it finds for that of a dead
    /// process, and know it already when the next attack writes into the same one.
    fn clear(&self) {
        for entry in fs::read_dir(self.shared.path()).expect("the folder") {
            let path = entry.expect("a name").path();
            let removed = match path.symlink_metadata().expect("its facts").is_dir() {
                true => fs::remove_dir(&path),
                false => fs::remove_file(&path),
            };
            removed.expect("ours");
        }
    }

    /// Records an honest process beside what `attack` does in the folder of rings. What it gives
    /// lives until the recording ends.
    fn beside<T>(&self, attack: impl FnOnce(&Path) -> T) -> RecordSummary {
        let recording = self.begin();
        let mut honest = self.honest();
        let held = attack(self.shared.path());
        drop(honest.stdin.take());
        assert!(honest.wait().expect("it ends").success());
        recording.stop.store(true, Ordering::Release);
        let summary = recording
            .thread
            .join()
            .expect("no panic")
            .expect("it records");
        drop(held);
        self.clear();
        check_honest(&summary);
        fs::remove_dir_all(&summary.path).expect("the trace");
        summary
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder");
    entries.map(|entry| entry.expect("a name").path())
}

/// Whether these are the rings of a process that has come as far as to read its first byte.
fn waits_for_input(rings: &Path) -> bool {
    let name = rings.file_name().expect("a name").to_string_lossy();
    let pid = name
        .strip_prefix("rings-")
        .and_then(|name| name.split('-').next());
    let call = pid.map(|pid| fs::read_to_string(format!("/proc/{pid}/syscall")));
    // The number of `read` on x86-64 and on arm64, and its first argument.
    let is_read = |call: String| call.starts_with("0 0x0 ") || call.starts_with("63 0x0 ");
    call.and_then(|call| call.ok()).is_some_and(is_read)
}

/// All events of the honest process are there, in order, and others read the trace.
fn check_honest(summary: &RecordSummary) {
    let trace = Trace::open(&summary.path).expect("a trace");
    let mut numbers = Vec::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("sound") {
        if let Item::Event(event) = item
            && let class = &trace.classes()[event.class().0 as usize]
            && class.name == "honest:tick"
        {
            numbers.push(event.u64(class.field("i").expect("a field")));
        }
    }
    assert!(numbers.iter().copied().eq(0..EVENTS), "{numbers:?}");
    let name = |process: &&capture::UserProcess| {
        process.name.starts_with("user_hostile") || process.events == EVENTS
    };
    let honest = summary
        .user
        .processes
        .iter()
        .find(name)
        .expect("the honest one");
    assert_eq!(
        (honest.events, honest.lost(), honest.malformed),
        (EVENTS, 0, 0)
    );
    let Ok(output) = Command::new("babeltrace2").arg(&summary.path).output() else {
        testkit::skip("user_hostile", "babeltrace2 is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "babeltrace2: {said}");
    let text = String::from_utf8_lossy(&output.stdout);
    let count = text
        .lines()
        .filter(|line| line.contains(" honest:tick: "))
        .count();
    assert_eq!(count as u64, EVENTS, "{said}");
}

/// Whether somebody is told this of a process that is called so.
fn is_told(summary: &RecordSummary, parts: &[&str]) -> bool {
    let mut refused = summary.user.refused.iter();
    refused.any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn processes_that_say_the_same_of_themselves_are_all_recorded() {
    let scene = Scene::new("same_names");
    let summary = scene.beside(|folder| {
        let forged = Forged::new();
        let write = |number: u32| forged.write(&folder.join(format!("rings-1-{number}")));
        (0..5).map(write).collect::<Vec<_>>()
    });
    let evil = summary
        .user
        .processes
        .iter()
        .filter(|process| process.name == "evil");
    assert_eq!(
        evil.map(|process| process.events).collect::<Vec<_>>(),
        [1; 5]
    );
}

#[test]
fn counters_of_losses_may_say_what_they_like() {
    let scene = Scene::new("losses");
    for lost in [u64::MAX, 1 << 63, 1 << 48] {
        scene.beside(|folder| {
            let mut forged = Forged::new();
            forged.control.lost = [lost; rings::LOSSES];
            forged.unregistered = u64::MAX;
            let file = forged.write(&folder.join("rings-1-1"));
            for turn in 0..200 {
                let head = forged.control.head;
                Forged::set_control(&file, head, if turn % 2 == 0 { u64::MAX } else { turn });
                std::thread::yield_now();
            }
            file
        });
    }
}

#[test]
fn rings_that_claim_what_no_memory_holds_are_given_up() {
    let scene = Scene::new("sparse");
    for head in [4 << 30, !7, 1 << 63] {
        let summary = scene.beside(|folder| {
            let mut forged = Forged::new();
            (forged.rings, forged.ring_bytes) = (2, 1 << 32);
            forged.control = Ring {
                head,
                tail: head - (1 << 32),
                ..Ring::default()
            };
            forged.write(&folder.join("rings-1-1"))
        });
        let is_evil = |process: &&capture::UserProcess| process.name == "evil";
        let evil = summary.user.processes.iter().find(is_evil);
        assert!(evil.is_some_and(|evil| evil.malformed > 0), "{summary:?}");
    }
}

#[test]
fn a_table_of_gigabytes_and_more_rings_than_cpus_are_refused() {
    let scene = Scene::new("tables");
    let summary = scene.beside(|folder| {
        let mut huge = Forged::new();
        huge.table_bytes = 8 << 30;
        let mut many = Forged::new();
        many.rings = rings::CPUS_MAX;
        let names = ["rings-1-1", "rings-1-2"].map(|name| folder.join(name));
        (huge.write(&names[0]), many.write(&names[1]))
    });
    let refused = &summary.user.refused;
    assert!(is_told(&summary, &["impossible table"]), "{refused:?}");
    assert!(
        is_told(&summary, &["rings-1-2", "4096 rings"]),
        "{refused:?}"
    );
}

#[test]
fn a_file_is_recorded_once_whatever_it_is_called() {
    let scene = Scene::new("links");
    let summary = scene.beside(|folder| {
        let first = folder.join("rings-1-1");
        let file = Forged::new().write(&first);
        for number in 2..1000 {
            let link = folder.join(format!("rings-1-{number}"));
            fs::hard_link(&first, link).expect("a link");
        }
        file
    });
    let evil = summary
        .user
        .processes
        .iter()
        .filter(|process| process.name == "evil");
    assert_eq!(evil.map(|process| process.events).sum::<u64>(), 1);
    assert!(is_told(&summary, &["another name of rings-1-"]));
}

#[test]
fn nothing_of_a_name_reaches_a_terminal_but_letters() {
    let scene = Scene::new("names");
    let summary = scene.beside(|folder| {
        let mut forged = Forged::new();
        forged.name = name(b"\x1b]0;x\x07\xc2\x9b2J\xff");
        let rings = forged.write(&folder.join("rings-1-1"));
        forged.name = [0x1b; 16];
        forged.table[0] = 3;
        let broken = forged.write(&folder.join("rings-1-2"));
        let bad = folder.join("rings-\x1b[2J");
        let named = Forged::new().write(&bad);
        let link = folder.join("without-1-0-\x1b[2J");
        let target = "28 \x1b[31mred";
        std::os::unix::fs::symlink(target, link).expect("a link");
        std::os::unix::fs::symlink(target, folder.join(format!("without-1-{:x}", now_ns())))
            .expect("a link");
        (rings, broken, named)
    });
    let names = summary.user.processes.iter().map(|process| &process.name);
    for text in names.chain(&summary.user.refused) {
        let steers = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(steers), "{text:?}");
    }
    assert!(
        is_told(&summary, &["?[31mred"]),
        "{:?}",
        summary.user.refused
    );
}

/// The text of an enumeration with these labels.
fn labels(name: &str, labels: &[(i64, i64, &[u8])]) -> Vec<u8> {
    let mut text = [name.as_bytes(), &[0]].concat();
    for (first, last, label) in labels {
        text.extend(first.to_le_bytes());
        text.extend(last.to_le_bytes());
        text.extend(*label);
        text.push(0);
    }
    entry(rings::ENTRY_ENUMERATION, 0, &text)
}

#[test]
fn descriptions_that_make_no_sense_leave_the_trace_readable() {
    let scene = Scene::new("descriptions");
    let check = |table: Vec<u8>, payload: &[u8]| {
        let records = forged::record(1, now_ns(), payload);
        let summary = scene.beside(|folder| {
            let mut forged = Forged::new().with_records(records);
            forged.table = table;
            forged.write(&folder.join("rings-1-1"))
        });
        let mut processes = summary.user.processes.iter();
        assert!(processes.any(|process| process.name == "evil"));
        summary
    };
    let payload = [0; 64];
    let ranges: &[(i64, i64, &[u8])] = &[
        (5, 1, b"back"),
        (-1, 1, b"over"),
        (300, 400, b"far"),
        (i64::MIN, i64::MAX, b"all"),
        (1, 1, b"one"),
        (1, 1, b"one"),
        (0, 0, b""),
        (2, 2, b"\"} \\ \n \x1b \xff"),
    ];
    for code in 1..=12_u8 {
        let field = [&[66], &b"odd\0"[..], &[code], b"f\0"].concat();
        let table = [labels("odd", ranges), event(1, "tick", &field)].concat();
        check(table, &payload);
    }
    // The length of a sequence is a field too.
    let fields = b"\x03_s_length\0\x44\x01s\0";
    let summary = check(event(1, "tick", fields), &payload);
    assert!(
        is_told(&summary, &["evil", "two fields of one name"]),
        "{:?}",
        summary.user.refused
    );
    check(event(1, "tick", b"\x43\0\0\0\0\x01a\0"), &payload);
    check(event(1, "tick", b"\x43\0\0\0\0\x0fa\0"), &payload);
    check(
        event(1, "tick", &[&[1], &vec![b'x'; 5000][..], &[0]].concat()),
        &payload,
    );
    let words = b"\x01int\0\x01struct\0\x01event\0\x01_\0\x01__\0\x019\0";
    check(event(1, "tick", words), &payload);
    check(event(1, &"n".repeat(9000), b"\x01a\0"), &payload);
    check(
        entry(rings::ENTRY_EVENT, 1, b"\xffevil\0tick\0\0"),
        &payload,
    );
}

#[test]
fn times_that_no_clock_said_leave_the_trace_readable() {
    let scene = Scene::new("times");
    let now = now_ns();
    for times in [
        [u64::MAX, 0, now],
        [i64::MAX as u64, 1, 2],
        [now, now - 1_000_000_000, now],
        [0, 0, 0],
        [1 << 62, 1 << 62, 1 << 62],
    ] {
        let records = times.map(|time| forged::record(1, time, &[0; 8])).concat();
        scene.beside(|folder| {
            let mut forged = Forged::new().with_records(records);
            forged.begin_ns = times[0];
            forged.control.lost = [1; rings::LOSSES];
            forged.write(&folder.join("rings-1-1"))
        });
    }
}

#[test]
fn what_stands_in_place_of_a_file_is_refused_and_not_waited_for() {
    let scene = Scene::new("no_files");
    let summary = scene.beside(|folder| {
        let place = |number: u32| folder.join(format!("rings-1-{number}"));
        let fifo = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, place(1), fifo, mode, 0).expect("a pipe");
        fs::create_dir(place(2)).expect("a folder");
        std::os::unix::fs::symlink("/dev/zero", place(3)).expect("a link");
        let socket = std::os::unix::net::UnixListener::bind(place(4)).expect("a socket");
        fs::write(place(5), [0xff; 5000]).expect("a file");
        fs::write(place(6), "").expect("a file");
        rustix::fs::mknodat(rustix::fs::CWD, folder.join("session-1-1"), fifo, mode, 0)
            .expect("a pipe");
        fs::create_dir(folder.join("without-1-1")).expect("a folder");
        socket
    });
    for number in 1..=4 {
        let name = format!("rings-1-{number}");
        assert!(
            is_told(&summary, &[&name]),
            "{name}: {:?}",
            summary.user.refused
        );
    }
}

#[test]
fn a_process_without_rings_may_give_any_reason() {
    let scene = Scene::new("reasons");
    let summary = scene.beside(|folder| {
        let reasons = ["99999 evil", "-7 evil", "0 evil", "4096 evil", "evil", " "];
        let own = std::process::id();
        for (number, reason) in reasons.iter().enumerate() {
            let link = folder.join(format!("without-{own}-{:x}", now_ns() + number as u64));
            std::os::unix::fs::symlink(reason, link).expect("a link");
        }
        let link = folder.join(format!("without-{own}-{:x}", now_ns()));
        std::os::unix::fs::symlink("28 \u{1b}[2Jfull", link).expect("a link");
    });
    assert!(
        is_told(&summary, &["?[2Jfull", "No space left"]),
        "{:?}",
        summary.user.refused
    );
    assert!(!is_told(&summary, &["evil"]), "{:?}", summary.user.refused);
}

#[test]
fn who_puts_something_else_in_the_place_of_a_recorders_files_is_told() {
    let scene = Scene::new("taken");
    let summary = scene.beside(|folder| {
        let is_announced = |path: &PathBuf| {
            let name = path.file_name().expect("a name").as_encoded_bytes();
            name.starts_with(b"session-")
        };
        // Who comes later is told nothing.
        while !entries(folder).any(|path| waits_for_input(&path)) {
            std::thread::yield_now();
        }
        for path in entries(folder).filter(is_announced) {
            fs::remove_file(&path).expect("removed");
            fs::create_dir(&path).expect("a folder");
        }
        let lock = folder.join("recorder");
        fs::remove_file(&lock).expect("removed");
        fs::create_dir(&lock).expect("a folder");
    });
    let refused = &summary.user.refused;
    assert!(
        is_told(&summary, &["cannot remove session-"]),
        "{refused:?}"
    );
    // What a dead recorder cannot have left does not keep the next from recording.
    scene.beside(|folder| fs::create_dir(folder.join("session-99999999-1")).expect("a folder"));
    fs::create_dir(scene.shared.path().join("session-99999999-2")).expect("a folder");
    scene.beside(|_| ());
}

#[test]
fn a_file_that_is_exchanged_cut_off_and_grown_harms_itself() {
    let scene = Scene::new("exchanged");
    scene.beside(|folder| {
        let path = folder.join("rings-1-1");
        for turn in 0..300_u64 {
            let file = Forged::new().write(&path);
            let harmed = match turn % 5 {
                0 => file.set_len(4096),
                1 => fs::remove_file(&path),
                2 => fs::rename(&path, folder.join("rings-1-2")),
                3 => file.set_len(1 << 40),
                _ => file.set_len(0),
            };
            // Nobody holds the lock of the file between two turns: the recorder may take it for
            // that of a dead process, and remove it.
            if let Err(error) = harmed {
                assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "turn {turn}");
            }
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_writer_that_never_stops_is_not_waited_for() {
    let scene = Scene::new("hot");
    let stop = Arc::new(AtomicBool::new(false));
    let writer_stops = Arc::clone(&stop);
    let summary = scene.beside(|folder| {
        let path = folder.join("rings-1-1");
        std::thread::spawn(move || {
            let forged = Forged::new();
            let file = forged.write(&path);
            // As if its ring were filled anew at every moment.
            let mut head = forged.ring_bytes;
            while !writer_stops.load(Ordering::Acquire) {
                head += forged.ring_bytes / 2;
                Forged::set_control(&file, head, 0);
            }
        })
    });
    stop.store(true, Ordering::Release);
    assert!(summary.user.processes.len() >= 2);
}

#[test]
fn a_folder_with_many_entries_hides_nobody() {
    let scene = Scene::new("many");
    scene.beside(|folder| {
        for number in 0..20_000 {
            File::create(folder.join(format!("rings-9-{number:x}"))).expect("a file");
            File::create(folder.join(format!("x{number}"))).expect("a file");
        }
    });
}

#[test]
fn tens_of_thousands_that_are_refused_hide_nobody() {
    let scene = Scene::new("refused");
    let summary = scene.beside(|folder| {
        let own = std::process::id();
        for number in 0..30_000 {
            let link = |name: String, target| {
                std::os::unix::fs::symlink(target, folder.join(name)).expect("a link");
            };
            link(format!("rings-9-{number:x}"), "/");
            link(format!("without-{own}-{:x}", now_ns() + number), "28 evil");
        }
    });
    let refused = &summary.user.refused;
    assert!(is_told(&summary, &["evil", "No space left"]), "{refused:?}");
    assert!(is_told(&summary, &[" more in "]), "{refused:?}");
}

#[test]
fn who_describes_more_events_than_anybody_reads_is_not_listed_and_the_others_are() {
    let scene = Scene::new("listed");
    let mut forged = Forged::new();
    let described = |number: u32| event(1 + number % 60_000, &format!("e{number}"), b"\x04i\0");
    forged.table = (0..60_000).flat_map(described).collect();
    forged.table_bytes = (forged.table.len() as u64).next_multiple_of(4096);
    let _many = forged.write(&scene.shared.path().join("rings-1-1"));
    let _sound = Forged::new().write(&scene.shared.path().join("rings-1-2"));
    let user = UserConfig::new(&["*".to_owned()]).expect("a pattern");
    let (listed, refused) = capture::list(&user.in_directory(scene.shared.path())).expect("a list");
    assert_eq!(listed.len(), 1, "{listed:?}");
    let is_told = |line: &String| line.contains("rings-1-1") && line.contains("more than 4096");
    assert!(refused.iter().any(is_told), "{refused:?}");
}

/// What this process had in memory at most, in KiB.
fn memory_most_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("our status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    number.expect("our memory").parse().expect("a number")
}

#[test]
fn who_looks_into_rings_takes_no_memory_for_what_they_claim() {
    let scene = Scene::new("looked_into");
    let mut forged = Forged::new();
    (forged.rings, forged.ring_bytes) = (2, 1 << 32);
    forged.control = Ring {
        head: 1 << 32,
        ..Ring::default()
    };
    let _rings = forged.write(&scene.shared.path().join("rings-1-1"));
    let sound = Forged::new().write(&scene.shared.path().join("rings-1-2"));
    let before = memory_most_kib();
    let output = scene.folder.path().join("looked");
    let found = capture::look(
        &output,
        Some(scene.shared.path()),
        capture::Whose::All,
        false,
    );
    drop(sound);
    let user = found.expect("the sound one").user;
    assert_eq!(user.events(), 1, "{user:?}");
    let taken = memory_most_kib() - before;
    assert!(taken < 1 << 20, "{taken} KiB");
}

/// Holds the one lease on a file: who opens it would wait until it is given back.
fn lease(path: &Path) -> File {
    let file = File::create(path).expect("a file");
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: no memory is involved. The signal that tells of who waits would end us.
    let leased = unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_WRLCK)
    };
    assert_eq!(leased, 0, "{}", std::io::Error::last_os_error());
    file
}

#[test]
fn what_others_say_and_hold_on_to_hides_nobody_who_is_looked_at() {
    let scene = Scene::new("looked_at_beside");
    let folder = scene.shared.path();
    let mut losing = Forged::new();
    losing.control.lost = [u64::MAX; rings::LOSSES];
    let _losing = losing.write(&folder.join("rings-1-1"));
    let _sound = Forged::new().write(&folder.join("rings-1-2"));
    let _leased = ["session-1-1", "rings-1-3"].map(|name| lease(&folder.join(name)));
    let output = scene.folder.path().join("looked");
    let looked = capture::look(&output, Some(folder), capture::Whose::All, false);
    let user = looked.expect("two that are sound").user;
    assert_eq!((user.events(), user.lost()), (2, 0), "{user:?}");
}

/// Waits until the recorder, which is a thread of ours, has let go of one of the files of `folder`
/// that it had mapped; for a minute at most. Other tests of this process have files of their own.
fn wait_until_one_goes(folder: &Path) {
    let rings = format!("{}/rings-1-", folder.display());
    let begin = std::time::Instant::now();
    let mut most = 0;
    while begin.elapsed() < std::time::Duration::from_secs(60) {
        let maps = fs::read_to_string("/proc/self/maps").expect("our mappings");
        let files = maps
            .lines()
            .filter_map(|line| line.split(rings.as_str()).nth(1));
        let count = files.collect::<std::collections::BTreeSet<_>>().len();
        if count < most {
            return;
        }
        most = count;
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn processes_that_describe_more_than_the_recorder_has_memory_for_go() {
    let scene = Scene::new("described");
    let summary = scene.beside(|folder| {
        let write = |number: u32| {
            let mut forged = Forged::new();
            for id in 2..1000 {
                let field = |n: u8| [1, b'a' + n / 8, b'a' + n % 8, 0];
                let fields: Vec<u8> = (0..64).flat_map(field).collect();
                forged.table.extend(event(id, &format!("e{id}"), &fields));
            }
            forged.table_bytes = (forged.table.len() as u64).next_multiple_of(4096);
            forged.write(&folder.join(format!("rings-1-{number}")))
        };
        let held: Vec<_> = (0..6).map(write).collect();
        wait_until_one_goes(folder);
        held
    });
    assert!(
        is_told(
            &summary,
            &["has too many events", "of all in its directory"]
        ),
        "{:?}",
        summary.user.refused
    );
}

#[test]
fn a_table_that_grows_and_grows_stalls_nobody() {
    let scene = Scene::new("growing");
    let summary = scene.beside(|folder| {
        let mut forged = Forged::new();
        // As many fields as an event can have, a thousand events, each refers to many labels.
        let many: Vec<(i64, i64, &[u8])> = (0..2000).map(|n| (n, n, &b"a label"[..])).collect();
        forged.table.extend(labels("many", &many));
        for id in 2..3000 {
            let field =
                |n: u8| [&[66], &b"many\0"[..], &[4, b'a' + n / 8, b'a' + n % 8, 0]].concat();
            let fields: Vec<u8> = (0..64).flat_map(field).collect();
            forged.table.extend(event(id, &format!("e{id}"), &fields));
        }
        forged.table_bytes = (forged.table.len() as u64).next_multiple_of(4096);
        forged.write(&folder.join("rings-1-1"))
    });
    assert!(
        is_told(&summary, &["evil", "more labels"]),
        "{:?}",
        summary.user.refused
    );
}

/// Numbers that a seed draws (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// What readers stumble over: borders, small numbers, and anything.
    fn word(&mut self) -> u64 {
        let small = self.below(100_000);
        match self.below(6) {
            0 => 1 << self.below(64),
            1 => (1_u64 << self.below(64)).wrapping_sub(1 + self.below(16)),
            2 => u64::MAX - self.below(1 << 20),
            3 => now_ns(),
            4 => self.next(),
            _ => small,
        }
    }
}

/// Changes a file that a recorder reads, in one of the ways that its owner has.
fn tamper(file: &File, path: &Path, file_bytes: u64, random: &mut Random) {
    use rustix::fs::{FlockOperation, flock};
    use std::os::unix::fs::FileExt;
    // Header, controls and table are more often looked at than all else.
    let word = |random: &mut Random, within: u64| {
        let at = random.below(within / 8) * 8;
        let _ = file.write_all_at(&random.word().to_le_bytes(), at);
    };
    match random.below(40) {
        0 => drop(file.set_len(random.below(file_bytes))),
        1 => drop(file.set_len(0)),
        2 => drop(file.set_len(file_bytes + random.below(1 << 40))),
        3..=6 => drop(file.set_len(file_bytes)),
        7 => drop(flock(file, FlockOperation::Unlock)),
        8 => drop(flock(file, FlockOperation::NonBlockingLockShared)),
        9 => drop(fs::rename(path, path.with_extension("gone"))),
        10 => drop(fs::set_permissions(
            path,
            std::os::unix::fs::PermissionsExt::from_mode(random.below(0o1000) as u32),
        )),
        11..=15 => word(random, size_of::<rings::Header>() as u64),
        16..=25 => word(random, 8192),
        _ => word(random, file_bytes),
    }
}

/// Files whose every word changes under the reader, for as long as it records: headers, controls,
/// tables and records, sizes, locks and names. `RTSCOPE_ATTACKS` says how many recordings.
#[test]
fn files_that_change_in_every_way_under_the_reader_harm_themselves() {
    let scene = Scene::new("tampered");
    let count = std::env::var("RTSCOPE_ATTACKS").map_or(4, |count| count.parse().expect("a count"));
    let first =
        std::env::var("RTSCOPE_ATTACK_SEED").map_or(1, |seed| seed.parse().expect("a seed"));
    for seed in first..first + count {
        println!("RTSCOPE_ATTACK_SEED={seed}");
        let stop = Arc::new(AtomicBool::new(false));
        let attacker_stops = Arc::clone(&stop);
        let attacker = scene.beside(|folder| {
            let folder = folder.to_owned();
            let attacker = std::thread::spawn(move || {
                let mut random = Random(seed);
                let mut number = 0;
                while !attacker_stops.load(Ordering::Acquire) {
                    number += 1;
                    let path = folder.join(format!("rings-1-{number:x}"));
                    let mut forged = Forged::new();
                    let records: Vec<_> = (0..40)
                        .map(|_| forged::record(1, now_ns(), &random.word().to_le_bytes()))
                        .collect();
                    forged = forged.with_records(records.concat());
                    let file = forged.write(&path);
                    let file_bytes = file.metadata().expect("its size").len();
                    // Long enough to be found, and then to be read again and again.
                    for _ in 0..random.below(2000) {
                        tamper(&file, &path, file_bytes, &mut random);
                        std::thread::sleep(std::time::Duration::from_micros(random.below(100)));
                    }
                }
            });
            std::thread::sleep(std::time::Duration::from_millis(300));
            Attacker {
                stop: Arc::clone(&stop),
                thread: Some(attacker),
            }
        });
        drop(attacker);
    }
}

/// Goes on until the recording has ended.
struct Attacker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            ended.is_some_and(|ended| ended.is_ok()),
            "the attacker failed"
        );
    }
}
