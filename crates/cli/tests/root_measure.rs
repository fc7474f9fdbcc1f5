//! `rtscope measure cyclic` on this machine: its figures, its culprit, its other name.

mod scene;

use std::process::{Command, Output};

use host::task::{self, Policy};
use scene::{burn, pause, thread};
use serde_json::Value;

fn rtscope(words: &[&str], folder: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(words).current_dir(folder);
    command.output().expect("rtscope starts")
}

#[test]
fn every_cpu_has_a_thread_that_took_its_samples() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let output = rtscope(
        &["measure", "cyclic", "--samples", "50", "--json"],
        folder.path(),
    );
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let threads = found["threads"].as_array().expect("threads");
    let cpus: Vec<_> = threads
        .iter()
        .map(|thread| thread["cpu"].as_u64())
        .collect();
    let allowed = capture::capabilities::gather().machine.cpus_allowed;
    let expect: Vec<_> = allowed.iter().map(|cpu| Some(u64::from(cpu.0))).collect();
    assert_eq!(cpus, expect);
    assert!(
        threads.iter().all(|thread| thread["samples"] == 50),
        "{found}"
    );
}

#[test]
fn a_late_sample_is_explained_by_the_hog_that_caused_it() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_late_sample_is_explained_by_the_hog_that_caused_it") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (cpu, _) = scene::cpus();
    let _off = task::stay_off(cpu).expect("out of the way");
    let hog = thread("cyc-hog", cpu, Policy::Fifo(90), move || {
        // More than once: what the host takes from us is late too, and one report a second is all.
        for _ in 0..3 {
            pause(1_500);
            burn(20);
        }
    });
    let cpu = cpu.0.to_string();
    let words = [
        "measure", "cyclic", "--cpu", &cpu, "--over", "10ms", "--for", "6s",
    ];
    let output = rtscope(&words, folder.path());
    hog.join().expect("ended");
    assert_eq!(
        output.status.code(),
        Some(2),
        "a budget was broken: {output:?}"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let accuses = |line: &str| line.contains(": cyc-hog (") && line.contains("rt 90) ran ahead");
    assert!(text.lines().any(accuses), "{text}");
    assert!(
        text.contains("samples in"),
        "the table is there too: {text}"
    );
    // Also those at the begin, while the watch was armed.
    assert!(!text.contains("not seen by the watch"), "{text}");
}

#[test]
fn the_longest_late_samples_are_kept_in_whatever_order_they_come() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("the_longest_late_samples_are_kept_in_whatever_order_they_come") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (cpu, _) = scene::cpus();
    let _off = task::stay_off(cpu).expect("out of the way");
    // The longest are neither the first nor the last, and one comes before the threshold has risen.
    let lengths_ms = [20, 90, 30, 120, 40, 60, 25];
    let hog = thread("cyc-hog", cpu, Policy::Fifo(90), move || {
        pause(2_500);
        for ms in lengths_ms {
            burn(ms);
            pause(500);
        }
    });
    let cpu = cpu.0.to_string();
    let words = "measure cyclic --over 10ms --worst 2 --for 8s --json --cpu";
    let words: Vec<&str> = words.split(' ').chain([&*cpu]).collect();
    let output = rtscope(&words, folder.path());
    hog.join().expect("ended");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let late = &found["late"];
    let samples = late["samples"].as_array().expect("late samples");
    let ms = |sample: &Value| {
        let latency_ns = sample["diagnosis"]["activations"][0]["latency_ns"].as_i64();
        latency_ns.map(|ns| ns / 1_000_000)
    };
    let kept: Vec<Option<i64>> = samples.iter().map(ms).collect();
    let is_one = |at: usize, least: i64| kept.get(at).is_some_and(|ms| *ms >= Some(least));
    // What the host takes makes them longer, never shorter.
    assert!(
        kept.len() == 2 && is_one(0, 119) && is_one(1, 89),
        "{kept:?}"
    );
    let accuses = |sample: &Value| sample.to_string().contains("cyc-hog");
    assert!(samples.iter().all(accuses), "{late}");
    assert!(late["suppressed"].as_u64() >= Some(1), "{late}");
    let folders = std::fs::read_dir(folder.path().join("rtscope-snapshots")).expect("a folder");
    assert_eq!(folders.count(), 2, "those that fell out went with theirs");
}

#[test]
fn who_explains_each_sample_as_it_comes_measures_no_longer_than_was_asked() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // Each is late, and as many are explained as there is room for.
    let words = "measure cyclic --cpu 0 --over 1us --worst 1000 --for 1s --quiet";
    let words: Vec<&str> = words.split(' ').collect();
    let output = rtscope(&words, folder.path());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let count = text
        .lines()
        .find_map(|line| line.split_once(" samples in "));
    let count: Option<u64> = count.and_then(|(count, _)| count.parse().ok());
    assert!(count.is_some_and(|count| count <= 1_001), "{count:?}");
}

#[test]
fn old_scripts_find_cyclictest_under_both_names() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |output: Output| {
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let begins = [
            "# Histogram\n000000 ",
            "\n# Min Latencies: ",
            "\n# Thread 1:",
        ];
        assert!(begins.iter().all(|begin| text.contains(begin)), "{text}");
    };
    let options = [
        "-t2", "-p", "80", "-i", "1000", "-l", "50", "-h", "100", "-q",
    ];
    let words = ["measure", "cyclic", "--cyclictest"]
        .into_iter()
        .chain(options);
    check(rtscope(&words.collect::<Vec<_>>(), folder.path()));
    let link = folder.path().join("cyclictest");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rtscope"), &link).expect("linked");
    check(Command::new(link).args(options).output().expect("starts"));
}

#[test]
fn a_gap_is_put_to_the_account_of_the_task_that_made_it() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("a_gap_is_put_to_the_account_of_the_task_that_made_it") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (cpu, _) = scene::cpus();
    let _off = task::stay_off(cpu).expect("out of the way");
    let hog = thread("gap-hog", cpu, Policy::Fifo(95), move || {
        for _ in 0..4 {
            pause(700);
            burn(20);
        }
    });
    let number = cpu.0.to_string();
    let words = [
        "measure", "hw", "--cpu", &number, "--for", "4s", "--width", "800ms", "--json",
    ];
    let output = rtscope(&words, folder.path());
    hog.join().expect("ended");
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let gaps = found["gaps"].as_array().expect("gaps");
    for gap in gaps {
        let parts = gap["parts"].as_array().expect("parts").iter();
        let sum: i64 = parts.filter_map(|part| part["duration_ns"].as_i64()).sum();
        assert_eq!(gap["duration_ns"], sum, "{gap}");
    }
    let of_hog = gaps
        .iter()
        .find(|gap| gap["parts"][0]["name"] == "task gap-hog");
    let longest_ns = of_hog.and_then(|gap| gap["parts"][0]["duration_ns"].as_i64());
    // It ran for 20 ms of CPU time, and all of that lies in one gap or was not looked at.
    assert!(longest_ns >= Some(19_000_000), "{}", found["noise"]);
}

#[test]
fn deadline_threads_run_where_the_scheduler_puts_them() {
    let _alone = testkit::privileged();
    if !testkit::two_cpus("deadline_threads_run_where_the_scheduler_puts_them") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |more: &[&str]| {
        let words = ["measure", "cyclic", "--policy", "deadline", "--json"].into_iter();
        let words = words.chain(["--samples", "50", "--interval", "5ms"]);
        rtscope(
            &words.chain(more.iter().copied()).collect::<Vec<_>>(),
            folder.path(),
        )
    };
    let output = run(&[]);
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let first = &found["threads"][0];
    assert_eq!(
        (&first["policy"], &first["cpu"]),
        (&"deadline".into(), &Value::Null)
    );
    assert_eq!(first["samples"], 50);
    let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    if limit.is_ok_and(|limit| limit.trim() == "-1") {
        return testkit::skip(
            "a pinned deadline thread",
            "kernel.sched_rt_runtime_us is -1",
        );
    }
    let refused = run(&["--cpu", "0"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("name no --cpu"), "{text}");
}

#[test]
fn without_events_a_gap_has_a_length_and_no_taker() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        "measure",
        "hw",
        "--no-events",
        "--for",
        "1s",
        "--over",
        "1us",
        "--json",
    ];
    let output = rtscope(&words, folder.path());
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(found["gaps"], Value::Null);
    let cpus = found["cpus"].as_array().expect("CPUs");
    assert!(
        cpus.iter().all(|cpu| cpu["gaps"].as_u64() > Some(0)),
        "a tick is a gap: {found}"
    );
    let resolution_ns = cpus.iter().map(|cpu| cpu["step_min_ns"].as_i64());
    assert!(
        resolution_ns
            .into_iter()
            .all(|ns| ns.is_some_and(|ns| (1..1_000).contains(&ns))),
        "a reading takes its time: {found}"
    );
}

#[test]
fn a_lock_that_does_not_inherit_is_named_and_one_that_does_is_not() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let check = |mutex: &str, expect_code: i32, expect_defects: usize| {
        let words = [
            "measure", "preempt", "--cpu", "0", "--rounds", "20", "--mutex", mutex, "--json",
        ];
        let output = rtscope(&words, folder.path());
        assert_eq!(output.status.code(), Some(expect_code), "{output:?}");
        let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        let defects = found["defects"].as_array().expect("defects");
        assert_eq!(defects.len(), expect_defects, "{found}");
        for defect in defects {
            let what = defect["what"].as_str().expect("a sentence");
            assert!(what.starts_with("priority inversion on CPU 0"), "{what}");
        }
        let messages = found["messages"].as_array().expect("messages");
        let tried = messages.len() + found["skipped"].as_array().map_or(0, Vec::len);
        // Eight ways, to a thread; to a process unless there is none of that.
        assert_eq!(tried, 16, "{found}");
    };
    check("inherit", 0, 0);
    check("plain", 2, 1);
}

#[test]
fn the_phases_of_the_longest_sample_are_the_sample() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        "measure",
        "cyclic",
        "--samples",
        "300",
        "--phases",
        "--json",
    ];
    let output = rtscope(&words, folder.path());
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert!(found["phases_cost_ns"].as_i64() > Some(0), "{found}");
    for thread in found["threads"].as_array().expect("threads") {
        let phases = &thread["phases"];
        let parts = phases["longest"].as_object().expect("parts").values();
        let sum: i64 = parts.filter_map(Value::as_i64).sum();
        let unsplit = phases["unsplit"].as_u64().expect("a number");
        let split = phases["parts"]["timer"]["samples"]
            .as_u64()
            .expect("a number");
        assert_eq!(
            unsplit + split,
            300,
            "every sample is split, or said not to be"
        );
        assert!(split > 200, "{phases}");
        // The longest of all is the longest of those that were split, when all were.
        assert!(
            sum > 0 && (unsplit > 0 || Some(sum) == thread["max_ns"].as_i64()),
            "{thread}"
        );
        let means: i64 = ["timer", "wakeup", "switch", "return"]
            .iter()
            .filter_map(|name| phases["parts"][name]["mean_ns"].as_i64())
            .sum();
        let off = (means - thread["mean_ns"].as_i64().expect("a mean")).abs();
        assert!(
            unsplit > 0 || off <= 4,
            "the means are rounded each: {thread}"
        );
    }
}
