//! `rtscope measure eval` on this machine: its report, its verdict, its loads.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn eval(words: &str, folder: &Path) -> Output {
    eval_of(words, folder).1
}

/// The same with its process id.
fn eval_of(words: &str, folder: &Path) -> (u32, Output) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command
        .args(["measure", "eval"])
        .args(words.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.current_dir(folder).spawn();
    let child = child.expect("rtscope starts");
    (child.id(), child.wait_with_output().expect("it ends"))
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

/// Processes whose command line holds `part`.
fn processes(part: &str) -> usize {
    let folders = std::fs::read_dir("/proc").expect("proc").flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    let has = |line: &Vec<u8>| String::from_utf8_lossy(line).contains(part);
    lines.filter(has).count()
}

/// How long each part of an evaluation of six seconds took.
fn check_times(found: &Value) {
    // Two goes of a second, of which a third is looped, between four seconds of samples. On a busy
    // machine they begin and end late.
    let ns = |key: &Value| key.as_i64().unwrap_or_default();
    let looped_ns = ns(&found["hw"]["cpus"][0]["looped_ns"]);
    let hw_ns = ns(&found["hw"]["elapsed_ns"]);
    assert!(
        (500_000_000..hw_ns / 2).contains(&looped_ns),
        "{looped_ns} of {hw_ns}"
    );
    let elapsed_ns = ns(&found["elapsed_ns"]);
    assert!(
        (3_900_000_000..5_500_000_000).contains(&elapsed_ns),
        "{elapsed_ns}"
    );
    // What comes behind the last sample is no part of it, whatever is still to be written then.
    let threads = found["threads"].as_array().expect("threads");
    let instants = |thread: &Value| ns(&thread["samples"]) + ns(&thread["missed"]);
    let sampled_ns = threads.iter().map(instants).max().unwrap_or_default() * 1_000_000;
    let plain_ns = ns(&found["explaining"]["plain_ns"]);
    let besides_ns = elapsed_ns - plain_ns - sampled_ns;
    assert!(besides_ns < 500_000_000, "{besides_ns} of {elapsed_ns}");
}

#[test]
fn an_evaluation_is_a_page_an_object_and_a_test_result_and_leaves_no_load() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let words = "--for 6s --load compile --load-cpu 0 --budget 1us -o a -a before --json";
    let (pid, output) = eval_of(words, folder.path());
    // Nobody wakes up within a microsecond.
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let found = json(&output);
    assert_eq!(
        (&found["verdict"], &found["complete"]),
        (&"fail".into(), &true.into())
    );
    let load = &found["loads"][0];
    let ran = (&load["name"], &load["state"]);
    assert_eq!(ran, (&"compile".into(), &"ran".into()), "{load}");
    let threads = found["threads"].as_array().expect("threads");
    let allowed = capture::capabilities::gather().machine.cpus_allowed;
    assert_eq!(threads.len(), allowed.len());
    for thread in threads {
        assert!(
            thread["series"]
                .as_array()
                .is_some_and(|points| points.len() > 5),
            "{thread}"
        );
        assert!(
            thread["tail"]["refused"].is_string(),
            "four seconds show no tail: {thread}"
        );
    }
    check_times(&found);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("a").join(name));
    assert!(read("report.html").expect("a page").ends_with("</html>\n"));
    assert!(read("junit.xml").expect("results").contains("<failure"));
    let mut check = Command::new("sha256sum");
    let check = check.args(["--check", "eval.json.sha256"]);
    let checked = check.current_dir(folder.path().join("a")).output();
    assert!(checked.is_ok_and(|output| output.status.success()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert_eq!(found["machine"]["identity"]["host"], host.trim());
    assert_eq!(found["annotation"], "before");
    let again = eval("--for 1s --load none --no-hw -o a", folder.path());
    let text = String::from_utf8_lossy(&again.stderr);
    assert!(
        text.contains("never replaced") && text.contains("-o a-2"),
        "{text}"
    );
    let load = format!("rtscope-load-{pid}-");
    assert_eq!(processes(&load), 0, "a load is left");

    let both = eval("--compare a a -o both", folder.path());
    assert!(both.status.success(), "{both:?}");
    assert!(String::from_utf8_lossy(&both.stdout).contains("1.00 x"));
    assert!(folder.path().join("both/compare.html").exists());
}

#[test]
fn a_load_that_was_named_and_is_not_installed_is_refused() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        command.args(["measure", "eval", "--for", "1s", "--no-hw", "--json"]);
        command.args(words.split_whitespace());
        let command = command
            .current_dir(folder.path())
            .env("PATH", folder.path());
        command.output().expect("rtscope starts")
    };
    let refused = run("--load hackbench");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    let parts = [
        "there is no hackbench",
        "found: no hackbench in PATH",
        "fix:  sudo apt install",
    ];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

/// A control group of our own, in the hierarchy that every task can join.
fn own_group() -> Option<PathBuf> {
    let hierarchies = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];
    // Nobody else's, also when a test that was killed left one.
    let name = format!("rtscope-test-load-{}", std::process::id());
    let group = |parent: &str| Path::new(parent).join(&name);
    let made = |group: &PathBuf| std::fs::create_dir(group).is_ok();
    let made = hierarchies.into_iter().map(group).find(made)?;
    if made.join("cgroup.procs").exists() {
        return Some(made);
    }
    std::fs::remove_dir(made).ok();
    None
}

fn members(group: &Path) -> usize {
    let text = std::fs::read_to_string(group.join("cgroup.procs"));
    text.expect("a group").lines().count()
}

#[test]
fn a_load_runs_in_the_control_group_that_was_named_and_leaves_it_empty() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let Some(group) = own_group() else {
        return testkit::skip("--load-cgroup", "no control group can be made here");
    };
    let words = ["measure", "eval", "--for", "4s", "--no-hw", "--json"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .args(words)
        .args(["--load", "compile", "--load-cgroup"])
        .arg(&group)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("rtscope starts");
    let mut most = 0;
    while child.try_wait().expect("a child").is_none() {
        most = most.max(members(&group));
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = members(&group);
    std::fs::remove_dir(&group).expect("an empty group can go");
    // A keeper, a worker and a compiler at least.
    assert!(most >= 3, "{most} tasks at most");
    assert_eq!(left, 0);

    let gone = group.display().to_string();
    let refused = eval(&format!("--for 1s --load-cgroup {gone}"), folder.path());
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot join this control group"), "{text}");
    assert!(text.contains(&format!("sudo mkdir {gone}")), "{text}");
}

#[test]
fn the_worst_samples_have_a_ledger_not_the_first() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    // Each sample is longer than a microsecond: all are candidates.
    let words = "--for 4s --no-hw --load none --cpu 0 --budget 1us -o a --json";
    let output = eval(words, folder.path());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let found = json(&output);
    let worst = found["worst"].as_array().expect("the worst");
    assert_eq!(worst.len(), 20);
    let latencies: Vec<i64> = worst
        .iter()
        .filter_map(|one| one["diagnosis"]["activations"][0]["latency_ns"].as_i64())
        .collect();
    assert!(
        latencies.len() >= 15,
        "most windows hold their samples: {latencies:?}"
    );
    let ids = worst.iter().filter_map(|one| one["hit"]["id"].as_u64());
    assert!(ids.max() > Some(20), "later ones are among them: {found}");
    let of = |key: &str| found["exceedances"][key].as_u64().unwrap_or(0);
    assert!(of("seen") > 3_000, "{}", found["exceedances"]);
    assert_eq!(of("samples"), of("explained") + of("unexplained"));
    // Those that fell out of the list went with their snapshots.
    let snapshots = std::fs::read_dir(folder.path().join("a/snapshots")).expect("a folder");
    let hits = snapshots
        .flatten()
        .filter(|one| one.file_name().to_string_lossy().starts_with("hit-"));
    assert!((1..=20).contains(&hits.count()));
}
