//! Check that the kernel and the application explain a hit together: its snapshot holds what the
//! application recorded before the miss, on the clock of the kernel's events.

mod scene;

use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use event::TimeRange;
use host::task::{self, Policy};
use scene::{Watch, burn, pause, thread};
use testkit::{Traced, build_traced};
use trace::{Item, Trace};

/// Real-time, on one CPU, wakes every millisecond and says so.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <rtscope/event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int count, char **words)
{
    struct sched_param priority = {.sched_priority = 20};
    struct timespec due;
    cpu_set_t cpus;
    if (count < 2)
        return 2;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(words[1]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) || sched_setscheduler(0, SCHED_FIFO, &priority))
        return 3;
    puts("ready");
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (unsigned i = 0; i < 60000; i++) {
        due.tv_nsec += 1000000;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        RTSCOPE_EVENT(control, cycle, u32("i", i));
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, 0);
    }
    return 0;
}
"#;

/// Ends it with the test.
struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The times of the application's cycles and of the kernel's switches in a trace of one order.
fn times(path: &str) -> (Vec<i64>, Vec<i64>) {
    let trace = Trace::open(path).expect("it opens");
    let (mut cycles, mut switches, mut last_ns) = (Vec::new(), Vec::new(), i64::MIN);
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(item) = cursor.next().expect("sound") {
        let Item::Event(event) = item else { continue };
        let time_ns = event.time().as_ns();
        assert!(last_ns <= time_ns, "one order of time");
        last_ns = time_ns;
        match trace.classes()[event.class().0 as usize].name.as_str() {
            "control:cycle" => cycles.push(time_ns),
            "sched_switch" => switches.push(time_ns),
            _ => (),
        }
    }
    (cycles, switches)
}

#[test]
fn a_hits_snapshot_holds_the_applications_events_among_the_kernels() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_hits_snapshot_holds_the_applications_events_among_the_kernels") {
        return;
    }
    let (cpu, _) = scene::cpus();
    let _off = task::stay_off(cpu).expect("out of the way");
    let shared = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = build_traced(scratch, "controller", Traced::c(PROGRAM));
    let mut command = Command::new(program);
    command.arg(cpu.0.to_string()).stdout(Stdio::piped());
    command.env("RTSCOPE_DIR", shared.path());
    let mut controller = Controller(command.spawn().expect("it starts"));
    let mut ready = String::new();
    let stdout = controller.0.stdout.take().expect("its output");
    let mut stdout = std::io::BufReader::new(stdout);
    stdout.read_line(&mut ready).expect("it says so");

    let more = [
        "--user",
        "control",
        "--over",
        "2ms",
        "--max-hits",
        "1",
        "--for",
        "60s",
    ];
    let directory = [("RTSCOPE_DIR", shared.path())];
    let tid = controller.0.id() as i32;
    let mut watch = Watch::start_with("user", tid, &more, &directory);
    let hog = thread("hog", cpu, Policy::Fifo(60), || {
        for _ in 0..3 {
            pause(100);
            burn(4);
        }
    });
    let lines = watch.finish();
    hog.join().expect("ended");
    let hits = scene::hits(&lines);
    let hit = hits.first().expect("a hit");
    let end_ns = hit["hit"]["end_ns"].as_i64().expect("its end");
    let latency_ns = hit["hit"]["latency_ns"].as_i64().expect("its length");

    let (cycles, switches) = times(hit["snapshot"]["path"].as_str().expect("a snapshot"));
    let before = cycles.iter().filter(|time_ns| **time_ns < end_ns).max();
    let before = *before.expect("what the application did before the miss");
    let after = cycles.iter().filter(|time_ns| **time_ns >= end_ns).min();
    // It was to wake after its last event, and its next one is behind the miss.
    assert!(
        end_ns - before >= latency_ns,
        "{before} {end_ns} {latency_ns}"
    );
    assert!(after.is_none_or(|after| after - before >= latency_ns));
    // The kernel's events stand on both sides of the last one.
    assert!(switches.iter().any(|time_ns| *time_ns < before));
    assert!(
        switches
            .iter()
            .any(|time_ns| (before..=end_ns).contains(time_ns))
    );
    assert!(cycles.len() > 10, "{} cycles", cycles.len());
}
