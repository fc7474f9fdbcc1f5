//! Recordings on this kernel, checked against babeltrace2 and the kernel's own counters. Needs
//! root.

use std::path::Path;
use std::process::Command;

use capture::{CommandEnd, EventSelection, RecordConfig, RecordSummary, capabilities, record};
use event::{Duration, ErrorKind};

/// What babeltrace2 makes of a trace.
struct Read {
    events: u64,
    warnings: String,
    discarded: u64,
    text: String,
}

/// Reads the trace with babeltrace2; none when it is not installed.
fn babeltrace(path: &Path) -> Option<Read> {
    let output = Command::new("babeltrace2").arg(path).output().ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let (mut discarded, mut warnings) = (0, String::new());
    for line in stderr.lines() {
        // "WARNING: Tracer discarded 12 events between …": how it tells of losses.
        match line
            .split_once("Tracer discarded ")
            .and_then(|(_, rest)| rest.split_once(' '))
        {
            Some((count, _)) => discarded += count.parse::<u64>().expect("a number"),
            None => warnings.push_str(line),
        }
    }
    Some(Read {
        // Who has a CPU is the recorder's own event, and in no count.
        events: text
            .lines()
            .filter(|line| !line.contains("rtscope_current"))
            .count() as u64,
        warnings,
        discarded,
        text,
    })
}

fn check_read(summary: &RecordSummary) -> Option<Read> {
    let Some(read) = babeltrace(&summary.path) else {
        testkit::skip(
            "babeltrace2 reads a recording",
            "babeltrace2 is not installed",
        );
        return None;
    };
    assert_eq!(read.warnings, "");
    assert_eq!(read.events, summary.events() + summary.dump_events);
    assert_eq!(read.discarded, summary.lost());
    Some(read)
}

fn run(directory: &Path, terms: &[&str], buffer_bytes: usize, shell: &str) -> RecordSummary {
    let config = RecordConfig {
        events: EventSelection::new(terms),
        buffer_bytes_per_cpu: buffer_bytes,
        command: Some(["sh", "-c", shell].map(Into::into).into()),
        ..RecordConfig::new(directory.join("trace"))
    };
    let summary = record(&config, &capabilities::gather(), "test").expect("it records");
    let ended = summary.command;
    assert!(matches!(ended, Some(CommandEnd::Ended(status)) if status.success()));
    for cpu in &summary.cpus {
        assert!(cpu.reconciles(), "{cpu:?}");
        assert_eq!(
            (cpu.written.unknown, cpu.written.backwards),
            (0, 0),
            "{cpu:?}"
        );
        assert_eq!(cpu.written.damaged_pages, 0, "{cpu:?}");
    }
    summary
}

#[test]
fn a_recording_holds_every_event_and_babeltrace_reads_it_as_a_kernel_trace() {
    let _lock = testkit::privileged();
    let directory = tempfile::tempdir().expect("a directory");
    let load = "for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'sleep 0.01'; done";
    let summary = run(directory.path(), &[], 4 << 20, load);
    assert_eq!(summary.lost(), 0);
    assert!(summary.events() > 500);
    let Some(read) = check_read(&summary) else {
        return;
    };
    let count = |text: &str| read.text.lines().filter(|line| line.contains(text)).count();
    assert!(count("sched_switch: ") > 20 && count("timer_hrtimer_expire_entry: ") > 10);
    assert!(
        count("sched_process_fork: ") >= 20,
        "ten shells and ten sleeps"
    );
    assert!(count("sched_process_exec: ") >= 20);
    assert_eq!(
        (count("lttng_statedump_start"), count("lttng_statedump_end")),
        (1, 1)
    );
    assert!(count("rtscope_statedump_task: ") > 5);
    assert!(summary.path.join("rtscope/kallsyms").exists());
}

#[test]
fn a_command_that_outlives_its_recording_is_told() {
    let _lock = testkit::privileged();
    let directory = tempfile::tempdir().expect("a directory");
    let config = RecordConfig {
        duration: Some(Duration::from_ms(50)),
        command: Some(["sleep", "60"].map(Into::into).into()),
        ..RecordConfig::new(directory.path().join("trace"))
    };
    let summary = record(&config, &capabilities::gather(), "test").expect("it records");
    let Some(end @ CommandEnd::GoesOn(pid)) = summary.command else {
        panic!("{:?}", summary.command);
    };
    assert!(end.to_string().contains(&format!("kill {pid} ends it")));
    let killed = Command::new("kill").arg(pid.to_string()).status();
    assert!(killed.is_ok_and(|status| status.success()), "it lives");
}

#[test]
fn losses_of_a_tiny_ring_are_counted_at_their_places() {
    let _lock = testkit::privileged();
    let directory = tempfile::tempdir().expect("a directory");
    let load = "i=0; while [ $i -lt 60000 ]; do echo $i; i=$((i+1)); done > /dev/null";
    let summary = run(directory.path(), &["syscall,sched"], 16 << 10, load);
    assert!(
        summary.lost() > 0,
        "16 KiB cannot hold 20 ms of system calls"
    );
    check_read(&summary);
}

#[test]
fn every_event_of_this_kernel_can_be_recorded_at_once() {
    let _lock = testkit::privileged();
    let directory = tempfile::tempdir().expect("a directory");
    let summary = run(
        directory.path(),
        &["all"],
        8 << 20,
        "ls -lR /usr/lib/systemd > /dev/null; true",
    );
    assert!(summary.events() > 1000);
    check_read(&summary);
}

#[test]
fn what_cannot_be_recorded_is_explained_and_leaves_nothing_behind() {
    let _lock = testkit::privileged();
    let directory = tempfile::tempdir().expect("a directory");
    let capabilities = capabilities::gather();
    let check = |change: &dyn Fn(&mut RecordConfig), expect: ErrorKind| {
        let mut config = RecordConfig::new(directory.path().join("trace"));
        config.duration = Some(Duration::from_ms(10));
        change(&mut config);
        let error = record(&config, &capabilities, "test").expect_err("it cannot work");
        assert_eq!(error.kind(), expect, "{error:?}");
        assert!(
            error.value_found().is_some() && error.fixed_by().is_some(),
            "{error:?}"
        );
    };
    check(
        &|c| c.output = directory.path().to_owned(),
        ErrorKind::AlreadyExists,
    );
    check(
        &|c| c.events = EventSelection::new(["sched_swich"]),
        ErrorKind::NotFound,
    );
    check(
        &|c| c.command = Some(vec!["/no/such/program".into()]),
        ErrorKind::NotFound,
    );
    check(
        &|c| c.cpus = Some(vec![event::Cpu(4000)]),
        ErrorKind::InvalidInput,
    );
    let left = std::fs::read_dir(directory.path())
        .expect("a directory")
        .count();
    assert_eq!(left, 0);
}

#[test]
fn a_full_disk_ends_a_recording_cleanly() {
    let _lock = testkit::privileged();
    let mount = tempfile::tempdir().expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=300k", "rtscope-test"])
        .arg(mount.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        testkit::skip("a full disk ends a recording", "cannot mount a tmpfs");
        return;
    }
    let config = RecordConfig {
        events: EventSelection::new(["all"]),
        duration: Some(Duration::from_ms(5000)),
        ..RecordConfig::new(mount.path().join("trace"))
    };
    let result = record(&config, &capabilities::gather(), "test");
    let left = std::fs::read_dir(mount.path()).map(|entries| entries.count());
    let unmounted = Command::new("umount").arg(mount.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    let error = result.expect_err("300 KiB do not hold it");
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error:?}");
    assert_eq!(left.ok(), Some(0));
}
