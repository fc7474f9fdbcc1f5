//! Check that real programs are in one trace with the kernel: jackd and memcached, their memory and
//! their mutexes by the libraries to preload, and each of their events between the system calls of
//! its thread.

mod recorded;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use event::TimeRange;
use recorded::{Scene, exists, libraries};
use trace::{Item, Trace};

/// How long memcached may take to listen.
const CONNECT_MAX: Duration = Duration::from_secs(20);

/// How often a user event lay inside a system call of its thread, beyond the clock's error, and
/// how many were looked at. Who runs is told by the switches; one that the kernel left out
/// (docs/ledger.md) shows behind it, and what is known of its thread is forgotten.
fn inside_calls(trace: &Trace) -> (u64, u64) {
    let error_ns = error_ns(trace);
    let (mut running, mut entered) = (BTreeMap::new(), BTreeMap::new());
    // User events since the entry of their thread: inside, if the exit is not as near as that.
    let mut suspects: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let (mut inside, mut looked) = (0, 0);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("sound") {
        let Item::Event(event) = item else { continue };
        let class = &trace.classes()[event.class().0 as usize];
        let (now_ns, cpu) = (event.time().as_ns(), event.cpu());
        let number = |name: &str| class.field(name).map(|field| event.i64(field));
        match (class.name.as_str(), running.get(&cpu).copied()) {
            ("sched_switch", before) => {
                let prev = number("prev_tid").expect("a thread");
                if before != Some(prev) {
                    entered.remove(&prev);
                    suspects.remove(&prev);
                }
                running.insert(cpu, number("next_tid").expect("a thread"));
            }
            ("sys_enter", Some(tid)) => {
                entered.insert(tid, now_ns);
                suspects.remove(&tid);
            }
            ("sys_exit", Some(tid)) => {
                let before = suspects.remove(&tid).unwrap_or_default();
                let far = before.iter().filter(|at_ns| now_ns - **at_ns > error_ns);
                inside += far.count() as u64;
                entered.insert(tid, i64::MAX);
            }
            // The recorder wrote the map of the process: no thread of its own was there.
            (name, _) if name.starts_with("lttng_ust_statedump:") => {}
            (name, before)
                if name.starts_with("lttng_ust") || name.starts_with("rtscope_mutex") =>
            {
                let tid = number("vtid").expect("a thread");
                if before != Some(tid) {
                    running.insert(cpu, tid);
                    entered.remove(&tid);
                    suspects.remove(&tid);
                }
                let Some(entry_ns) = entered.get(&tid) else {
                    continue;
                };
                looked += 1;
                if now_ns.saturating_sub(*entry_ns) > error_ns {
                    suspects.entry(tid).or_default().push(now_ns);
                }
            }
            _ => {}
        }
    }
    (inside, looked)
}

/// How far the instants of user events may be from the kernel's, as their trace says.
fn error_ns(trace: &Trace) -> i64 {
    let user = trace
        .classes()
        .iter()
        .filter(|class| class.name.starts_with("lttng_ust"));
    let stated = user.filter_map(|class| {
        let environment = trace.environment_of(class.id);
        environment
            .get("rtscope_clock_error_ns")?
            .parse::<i64>()
            .ok()
    });
    stated.max().expect("a stated error")
}

/// Records `command` with both helpers preloaded, `beside` it whatever makes it work, and checks
/// that the trace is sound and no event lies inside a system call.
fn check(command: &[&str], beside: impl FnOnce() + Send) {
    let scene = Scene::new();
    let preload = ["malloc", "mutex"].map(|name| {
        let path = libraries().join(format!("librtscope-{name}.so"));
        path.to_str().expect("a path in UTF-8").to_owned()
    });
    let preload = format!("LD_PRELOAD={}", preload.join(" "));
    let words = [
        "--user",
        "lttng_ust_libc,lttng_ust_pthread,rtscope_mutex",
        "--events",
        "sched:sched_switch,raw_syscalls:*",
        "--buffer",
        "16M",
    ];
    // It never ends by itself.
    let ended = ["env", &preload, "timeout", "--preserve-status", "2"];
    std::thread::scope(|scope| {
        scope.spawn(beside);
        scene.record(&words, &[&ended[..], command].concat());
    });
    scene.check_babeltrace("root_preload");
    let trace = Trace::open(scene.trace()).expect("a trace");
    for name in [
        "sched_switch",
        "lttng_ust_libc:malloc",
        "lttng_ust_pthread:pthread_mutex_lock_acq",
    ] {
        let known = trace.classes().iter().any(|class| class.name == name);
        assert!(known, "no {name}");
    }
    let (inside, looked) = inside_calls(&trace);
    assert!(looked > 100, "{looked} events between system calls");
    assert_eq!(
        inside, 0,
        "of {looked} events inside a system call of their thread"
    );
}

#[test]
fn jackds_memory_and_mutexes_are_in_one_trace_with_the_kernel() {
    let _alone = testkit::privileged();
    if !exists("jackd") {
        testkit::skip("root_preload", "jackd is not installed");
        return;
    }
    check(&["jackd", "-r", "-d", "dummy"], || {});
}

/// Asks the server for what it keeps, until it is gone.
fn requests(socket: &Path) {
    let begin = Instant::now();
    let mut stream = loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            Err(error) if begin.elapsed() > CONNECT_MAX => panic!("memcached: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut answers = BufReader::new(stream.try_clone().expect("the other direction"));
    for number in 0.. {
        let value = "x".repeat(100 + number % 1000);
        let key = number % 50;
        let request = format!(
            "set k{key} 0 0 {}\r\n{value}\r\nget k{key}\r\n",
            value.len()
        );
        let mut answer = String::new();
        let asked = stream.write_all(request.as_bytes());
        while asked.is_ok() && !answer.ends_with("END\r\n") {
            if !matches!(answers.read_line(&mut answer), Ok(1..)) {
                break;
            }
        }
        if !answer.ends_with("END\r\n") {
            assert!(number > 100, "only {number} requests were answered");
            return;
        }
        assert!(answer.starts_with("STORED\r\nVALUE "), "{answer}");
        // A few thousand a second fill no ring.
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn memcacheds_memory_and_mutexes_are_in_one_trace_with_the_kernel() {
    let _alone = testkit::privileged();
    if !exists("memcached") {
        testkit::skip("root_preload", "memcached is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let path = socket.to_str().expect("a path in UTF-8");
    let command = ["memcached", "-u", "root", "-t", "2", "-m", "16", "-s", path];
    check(&command, || requests(&socket));
}
