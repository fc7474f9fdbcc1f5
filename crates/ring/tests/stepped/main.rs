//! Check that a writer that is killed, interrupted by a handler that writes too, or moved to
//! another CPU before any instruction of an event leaves whole records alone, each number read once
//! or counted as lost. No luck: each instruction that an event executes has its turn.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use ring::{Directory, LOSS_NAMES, Liveness, Mode, Records, RingFile, readable};
use testkit::{Traced, build_traced};

/// Events behind the one in question, and the number of the handler's; as in stepped.c.
const AFTER: u64 = 2;
const NESTED: u64 = 1_000_000;
/// Events of 40 bytes after which the next does not fit into the sub-buffer, and into the ring of
/// 32 KiB.
const TO_BOUNDARY: u64 = 102;
const TO_FULL: u64 = 8 * TO_BOUNDARY;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

/// How the events are written.
#[derive(Clone, Copy, Debug)]
struct Way {
    kind: &'static str,
    before: u64,
    mode: &'static str,
    rseq: &'static str,
    clock: &'static str,
    /// Whether its rings have no size before the event in question.
    late: bool,
}

const PLAIN: Way = Way {
    kind: "fixed",
    before: 3,
    mode: "discard",
    rseq: "on",
    clock: "counter",
    late: false,
};

/// Of a program that ran before its recorder, the first event.
const LATE: Way = Way {
    before: 0,
    late: true,
    ..PLAIN
};

/// What a run left: numbers by time, and losses by cause.
#[derive(Debug, Default)]
struct Left {
    numbers: Vec<u64>,
    lost: u64,
}

fn program() -> Option<&'static Path> {
    static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        if !cfg!(target_arch = "x86_64") || Command::new("objdump").arg("-v").output().is_err() {
            testkit::skip("stepped", "it wants x86-64 and objdump: install binutils");
            return None;
        }
        let program = Traced {
            flags: &["-O2", "-std=gnu11", "-no-pie"],
            ..Traced::c(include_str!("stepped.c"))
        };
        Some(build_traced(
            Path::new(env!("CARGO_TARGET_TMPDIR")),
            "stepped",
            program,
        ))
    });
    PROGRAM.as_deref()
}

/// Where the program's instructions are.
fn instructions(program: &Path) -> BTreeSet<String> {
    let mut objdump = Command::new("objdump");
    let said = objdump
        .args(["-d", "--no-show-raw-insn"])
        .arg(program)
        .output();
    let said = String::from_utf8(said.expect("objdump").stdout).expect("text");
    let address = |line: &str| {
        let (address, instruction) = line.trim_start().split_once(":\t")?;
        (!instruction.is_empty()).then(|| address.to_owned())
    };
    said.lines().filter_map(address).collect()
}

fn command(program: &Path, way: Way, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("RTSCOPE_DIR", folder)
        .env("RTSCOPE_SUBBUFFERS", "8");
    match way.late {
        true => command.env("LATE", "1"),
        false => command
            .env("RTSCOPE_EVENTS", "steps")
            .env("RTSCOPE_RING_SIZE", "32K"),
    };
    command
        .env("RTSCOPE_MODE", way.mode)
        .env("RTSCOPE_CLOCK", way.clock);
    command.env("RTSCOPE_RSEQ", way.rseq);
    command
}

/// The instructions that the event in question executes. A trap aborts the section that it is in,
/// so that one run does not come by all of them: runs go on until one finds nothing new.
fn reached(program: &Path, way: Way) -> BTreeSet<String> {
    let mut unknown = instructions(program);
    let mut reached = BTreeSet::new();
    loop {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
        let mut command = command(program, way, folder.path());
        command.args(["reach", way.kind, &way.before.to_string()]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = piped.expect("it starts");
        let words: Vec<&str> = unknown.iter().map(String::as_str).collect();
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin
            .write_all(words.join("\n").as_bytes())
            .expect("written");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{way:?}: {}", output.status);
        let said = String::from_utf8(output.stdout).expect("text");
        if said.is_empty() {
            return reached;
        }
        for address in said.lines() {
            assert!(unknown.remove(address), "{address} twice");
            reached.insert(address.to_owned());
        }
    }
}

/// Does `what` before the instruction at `address`; `None` when the event does not come by.
fn run(program: &Path, way: Way, what: &str, address: &str) -> Option<Left> {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
    let mut command = command(program, way, folder.path());
    command.args([what, address, way.kind, &way.before.to_string()]);
    let output = command.output().expect("it starts");
    let came_by = match output.status.code() {
        Some(0) => true,
        Some(1) => false,
        _ => panic!("{way:?}, {what} at {address}: {}", output.status),
    };
    let owner = rustix::process::geteuid().as_raw();
    let directory = Directory::open(folder.path(), owner).expect("our directory");
    // Others have rings too: who stopped it, and whom it forked.
    let called = String::from_utf8(output.stdout).expect("text");
    let names = directory.names().expect("names");
    if what == "fork" {
        for name in &names {
            read(&opened(&directory, name), way);
        }
    }
    let is_own = |name: &String| name.starts_with(called.trim_end());
    let Some(name) = names.into_iter().find(is_own) else {
        // Killed before anything was recorded, its rings are useless to all.
        assert_eq!((what, way.before), ("kill", 0), "{way:?} at {address}");
        return Some(Left::default());
    };
    let file = opened(&directory, &name);
    assert_eq!(file.liveness(), Liveness::Dead);
    let left = read(&file, way);
    came_by.then_some(left)
}

fn opened(directory: &Directory, name: &str) -> RingFile {
    let file = directory.rings(name).expect("rings");
    let mut file = file.expect("complete");
    file.read_table().expect("a table");
    file
}

/// All records, each of which must be as it was meant.
fn read(file: &RingFile, way: Way) -> Left {
    let mode = match way.mode {
        "overwrite" => Mode::Overwrite,
        _ => Mode::Discard,
    };
    let mut left = Left::default();
    let mut found = Vec::new();
    for ring in 0..file.layout().rings {
        let Some((window, losses)) = file.control(ring).expect("a control") else {
            continue;
        };
        left.lost += losses.iter().sum::<u64>();
        assert_eq!(losses.len(), LOSS_NAMES.len());
        let range = readable(file.layout(), mode, window).expect("sound offsets");
        assert!(window.tail <= window.head, "{way:?}: {window:?}");
        let mut bytes = Vec::new();
        file.copy(ring, range.clone(), &mut bytes).expect("data");
        let mut records = Records::new(&bytes, range.start, file.layout().subbuffer_bytes, 0);
        while let Some(record) = records.next() {
            let place = file
                .table()
                .place_of(record.id)
                .expect("an id of the table");
            let mut fields = Vec::new();
            let event = &file.table().events[place];
            assert!(
                event.split(record.payload, |_, bytes| fields.push(bytes)),
                "{record:?}"
            );
            let number = u64::from_le_bytes(fields[0].try_into().expect("8 bytes"));
            let expect = match event.name.as_str() {
                "fixed" => (!number).wrapping_mul(31).to_le_bytes().to_vec(),
                _ => LETTERS[(number % 26) as usize..][..(number % 23) as usize].to_vec(),
            };
            assert_eq!(fields[1], expect, "{record:?}");
            found.push((record.time, ring, records.position(), number));
        }
        assert_eq!(records.malformed(), 0, "a torn record, or time that falls");
        assert_eq!(
            records.position(),
            range.end,
            "the head is behind a whole record"
        );
    }
    found.sort_unstable();
    left.numbers = found.into_iter().map(|(.., number)| number).collect();
    left
}

/// Runs `what` at each instruction and judges what it left; returns how often the event in question
/// was there.
fn at_each_instruction(way: Way, what: &str, judge: impl Fn(&Left)) -> Option<[usize; 2]> {
    let program = program()?;
    let mut seen = [0; 2];
    for address in reached(program, way) {
        // The part behind an abort is executed only where something aborts.
        let Some(left) = run(program, way, what, &address) else {
            continue;
        };
        judge(&left);
        seen[usize::from(left.numbers.contains(&way.before))] += 1;
    }
    Some(seen)
}

/// Killed there, the event is whole or was never; nothing else is touched.
fn check_kills(way: Way) -> Option<[usize; 2]> {
    at_each_instruction(way, "kill", |left| {
        // A flight recorder gave up the oldest, and nothing in between.
        let first = match way.mode {
            "overwrite" => left.numbers.first().copied().unwrap_or_default(),
            _ => 0,
        };
        let behind = left.numbers.last().map_or(0, |last| last + 1);
        let without_a_gap: Vec<u64> = (first..behind).collect();
        assert_eq!(left.numbers, without_a_gap, "{way:?}");
        let accounted = behind + left.lost;
        let written = way.before..=way.before + 1;
        assert!(written.contains(&accounted), "{way:?}: {accounted}");
    })
}

fn check_both_ends(seen: Option<[usize; 2]>) {
    let Some([without, with]) = seen else { return };
    assert!(
        without > 20,
        "an event is not there before its last store: {without} instructions"
    );
    assert!(with > 0, "an event is there after its last store");
}

#[test]
fn killed_before_any_instruction_an_event_is_whole_or_was_never() {
    check_both_ends(check_kills(PLAIN));
    check_both_ends(check_kills(Way {
        kind: "text",
        ..PLAIN
    }));
    check_both_ends(check_kills(Way {
        clock: "monotonic",
        ..PLAIN
    }));
}

#[test]
fn killed_before_any_instruction_at_a_boundary_an_event_is_whole_or_was_never() {
    check_both_ends(check_kills(Way {
        before: TO_BOUNDARY,
        ..PLAIN
    }));
    check_both_ends(check_kills(Way {
        before: TO_FULL,
        mode: "overwrite",
        ..PLAIN
    }));
}

#[test]
fn killed_before_any_instruction_without_rseq_an_event_is_whole_or_was_never() {
    check_both_ends(check_kills(Way {
        rseq: "off",
        ..PLAIN
    }));
    check_both_ends(check_kills(Way {
        rseq: "off",
        before: TO_BOUNDARY,
        ..PLAIN
    }));
}

#[test]
fn killed_before_any_instruction_of_a_loss_it_is_counted_or_was_never() {
    let way = Way {
        before: TO_FULL,
        ..PLAIN
    };
    let Some([without, with]) = check_kills(way) else {
        return;
    };
    assert!(without > 20 && with == 0, "{without} {with}");
}

/// Interrupted there by a handler that writes an event, both are read once, or counted.
fn check_handlers(way: Way) {
    let all: Vec<u64> = (0..=way.before + AFTER).chain([NESTED]).collect();
    let seen = at_each_instruction(way, "signal", |left| {
        let mut numbers = left.numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), left.numbers.len(), "{way:?}: {left:?}");
        assert_eq!(
            numbers.len() as u64 + left.lost,
            all.len() as u64,
            "{way:?}: {left:?}"
        );
        // A handler above a thread that takes a size over finds none.
        let may_lose = way.rseq == "off" || way.late;
        assert!(may_lose || numbers == all, "{way:?}: {left:?}");
    });
    assert!(seen.is_none_or(|[_, with]| with > 20), "{way:?}: {seen:?}");
}

#[test]
fn a_handler_that_writes_before_any_instruction_loses_nothing_uncounted() {
    check_handlers(PLAIN);
    check_handlers(Way {
        kind: "text",
        ..PLAIN
    });
    check_handlers(Way {
        before: TO_BOUNDARY,
        ..PLAIN
    });
    check_handlers(Way {
        rseq: "off",
        ..PLAIN
    });
}

/// Moved there to another CPU, all are read once, in the order in which they were written.
fn check_moves(way: Way) {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        testkit::skip("stepped: moves", "one CPU");
        return;
    }
    let all: Vec<u64> = (0..=way.before + AFTER).collect();
    let seen = at_each_instruction(way, "move", |left| {
        assert_eq!(left.numbers, all, "{way:?}: {left:?}");
        assert_eq!(left.lost, 0, "{way:?}");
    });
    assert!(seen.is_none_or(|[_, with]| with > 20), "{way:?}: {seen:?}");
}

#[test]
fn moved_before_any_instruction_an_event_is_written_once() {
    check_moves(PLAIN);
    check_moves(Way {
        kind: "text",
        ..PLAIN
    });
    check_moves(Way {
        before: TO_BOUNDARY,
        ..PLAIN
    });
    check_moves(Way {
        rseq: "off",
        ..PLAIN
    });
}

/// Forked there by a handler, the event is there once in its own process, and the child, which
/// goes on in the middle of it, ends by itself and harms nobody.
fn check_forks(way: Way) {
    let all: Vec<u64> = (0..=way.before + AFTER).collect();
    let seen = at_each_instruction(way, "fork", |left| {
        assert_eq!((&left.numbers, left.lost), (&all, 0), "{way:?}");
    });
    assert!(seen.is_none_or(|[_, with]| with > 20), "{way:?}: {seen:?}");
}

#[test]
fn forked_before_any_instruction_an_event_is_written_once() {
    for (rseq, mode) in [("on", "discard"), ("off", "discard"), ("off", "overwrite")] {
        check_forks(Way {
            rseq,
            mode,
            ..PLAIN
        });
    }
}

/// All of it where the event is the first that finds rings with a size.
#[test]
fn so_it_is_at_each_instruction_that_takes_over_the_size_of_rings() {
    for rseq in ["on", "off"] {
        let way = Way { rseq, ..LATE };
        check_both_ends(check_kills(way));
        check_handlers(way);
        check_moves(way);
        check_forks(way);
    }
}
