//! Check that writers that are migrated, interrupted by handlers that write too, or killed at any
//! moment leave whole records alone, and that every number is read or counted as lost.

mod checker;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use checker::{Checker, Counters};
use ring::{Directory, Liveness, RingFile};
use testkit::{Traced, build_traced};

/// How the writers write.
#[derive(Clone, Copy, Debug)]
struct Way {
    threads: u32,
    signals: bool,
    rseq: bool,
    overwrite: bool,
    ring_size: &'static str,
}

const PLAIN: Way = Way {
    threads: 3,
    signals: true,
    rseq: true,
    overwrite: false,
    ring_size: "64K",
};

/// Writers in a process of their own, with their rings and counters.
struct Writers {
    child: Child,
    file: RingFile,
    counters: Counters,
    _shared: tempfile::TempDir,
}

impl Writers {
    fn start(program: &Path, way: Way, events: u64) -> Writers {
        let shared = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
        let counters = Counters::create(&shared.path().join("counters"));
        let mut command = Command::new(program);
        command.arg(shared.path().join("counters"));
        command.args([way.threads.to_string(), events.to_string()]);
        command.arg(u8::from(way.signals).to_string());
        command.env("RTSCOPE_DIR", shared.path());
        command.env("RTSCOPE_EVENTS", "stress");
        command.env("RTSCOPE_RING_SIZE", way.ring_size);
        command.env("RTSCOPE_RSEQ", if way.rseq { "on" } else { "off" });
        command.env(
            "RTSCOPE_MODE",
            if way.overwrite {
                "overwrite"
            } else {
                "discard"
            },
        );
        let child = command.spawn().expect("the writers start");
        let owner = rustix::process::geteuid().as_raw();
        let directory = Directory::open(shared.path(), owner).expect("our directory");
        let mut file = loop {
            let mut names = directory.names().expect("names").into_iter();
            if let Some(file) = names.find_map(|name| directory.rings(&name).expect("rings")) {
                break file;
            }
            std::thread::yield_now();
        };
        while counters.begun() == 0 {
            std::thread::yield_now();
        }
        file.read_table().expect("a table");
        assert_eq!(file.layout().rseq, way.rseq);
        Writers {
            child,
            file,
            counters,
            _shared: shared,
        }
    }

    fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_some()
    }
}

fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        build_traced(scratch, "writers", Traced::c(include_str!("writers.c")))
    });
    &PROGRAM
}

/// Sends every thread of the process from CPU to CPU, a thousand times a second.
fn migrate(pid: u32) {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    static TURN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    for task in tasks.flatten() {
        let turn = TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let tid = task.file_name().to_str().and_then(|tid| tid.parse().ok());
        let mut set = rustix::thread::CpuSet::new();
        set.set(turn % cpus);
        if let Some(tid) = tid.and_then(rustix::process::Pid::from_raw) {
            // A thread that has just ended is no harm.
            let _ = rustix::thread::sched_setaffinity(Some(tid), &set);
        }
    }
}

fn check_all_are_accounted_for(way: Way, events: u64) {
    let mut writers = Writers::start(program(), way, events);
    let mut checker = Checker::new(&writers.file);
    let mut next = Instant::now();
    loop {
        let over = writers.is_over();
        checker.drain(&writers.file);
        if over {
            break;
        }
        if Instant::now() >= next {
            migrate(writers.child.id());
            next += Duration::from_millis(1);
        }
    }
    assert_eq!(writers.file.liveness(), Liveness::Dead);
    let read = checker.check(&writers.counters);
    let lost = checker.lost(&writers.file);
    assert_eq!(read + lost, writers.counters.done(), "{way:?}");
    assert_eq!(writers.counters.begun(), writers.counters.done());
    assert!(read > 0, "{way:?}");
}

#[test]
fn migrated_threads_and_nested_handlers_lose_nothing_uncounted() {
    check_all_are_accounted_for(PLAIN, 200_000);
    check_all_are_accounted_for(
        Way {
            rseq: false,
            ..PLAIN
        },
        100_000,
    );
    let roomy = Way {
        ring_size: "4M",
        threads: 2,
        ..PLAIN
    };
    check_all_are_accounted_for(roomy, 200_000);
}

/// 500 kills; `RTSCOPE_RUNS=200` makes them 10,000.
#[test]
fn a_kill_at_any_moment_leaves_whole_records_and_true_counts() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut all_read = 0;
    for run in 0..testkit::runs(10) * 50 {
        let way = Way {
            threads: 2,
            signals: run % 2 == 0,
            rseq: run % 5 != 4,
            overwrite: run % 3 == 2,
            ring_size: "64K",
        };
        let mut writers = Writers::start(program(), way, u64::MAX);
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let until = Instant::now() + Duration::from_nanos((random >> 33) % 1_000_000);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        writers.child.kill().expect("killed");
        writers.child.wait().expect("gone");
        assert_eq!(writers.file.liveness(), Liveness::Dead);

        let mut checker = Checker::new(&writers.file);
        let counters = &writers.counters;
        if way.overwrite {
            checker.read_kept(&writers.file);
            all_read += checker.check(counters);
            continue;
        }
        checker.drain(&writers.file);
        let accounted = checker.check(counters) + checker.lost(&writers.file);
        all_read += accounted;
        let written = counters.done()..=counters.begun();
        assert!(
            written.contains(&accounted),
            "{accounted} of {written:?}, {way:?}"
        );
    }
    assert!(all_read > 0);
}

#[test]
fn an_overwriting_ring_keeps_the_newest_while_it_is_read() {
    let way = Way {
        overwrite: true,
        ..PLAIN
    };
    let mut writers = Writers::start(program(), way, 300_000);
    let mut checker = Checker::new(&writers.file);
    let mut looks = 0;
    while !writers.is_over() {
        checker.read_kept(&writers.file);
        checker.check(&writers.counters);
        looks += 1;
    }
    checker.read_kept(&writers.file);
    let kept = checker.check(&writers.counters);
    assert!(looks > 0 && kept > 0);
    assert_eq!(checker.lost(&writers.file), 0);
    // Of each ring that was filled, all sub-buffers but one are kept.
    let layout = writers.file.layout();
    assert!(checker.read_bytes() >= layout.ring_bytes - 2 * layout.subbuffer_bytes);
}
