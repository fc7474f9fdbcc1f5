//! Sessions of the kernel's events: archives without a gap, a snapshot of both worlds, and nothing
//! left in tracefs. Needs root.

mod recorded;
mod session;

use std::path::Path;
use std::process::Command;

use recorded::run;
use session::Night;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// The threads that were made, in the order of time, in all archives.
fn forks(output: &Path) -> Vec<i64> {
    let mut names: Vec<_> = std::fs::read_dir(output)
        .expect("archives")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    let mut all = Vec::new();
    for path in names {
        let text = run(Command::new(RTSCOPE)
            .args(["cat", "--filter", "$name == \"sched_process_fork\""])
            .arg(path));
        let child = |line: &str| {
            let (_, behind) = line.split_once("child_tid = ")?;
            behind.split([',', ' ']).next()?.parse::<i64>().ok()
        };
        all.extend(text.lines().filter_map(child));
    }
    all
}

fn instances() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/kernel/tracing/instances");
    let names = entries.into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("rtscope-"))
        .collect()
}

#[test]
fn each_fork_is_in_one_archive_and_each_archive_knows_the_tasks() {
    let _alone = testkit::privileged();
    let before = instances();
    let night = Night::new();
    night.says("start", &["--events", "sched"]);
    let mut children = Vec::new();
    for round in 0..3 {
        for _ in 0..20 {
            let mut child = Command::new("true").spawn().expect("a child");
            children.push(i64::from(child.id()));
            child.wait().expect("it ends");
        }
        if round < 2 {
            night.says("rotate", &[]);
        }
    }
    let status = night.status();
    assert!(
        status["cpus"]
            .as_array()
            .is_some_and(|cpus| !cpus.is_empty())
    );
    assert!(status["cpus"][0]["filled_percent"].is_number(), "{status}");
    night.says("dump", &[]);
    night.says("stop", &[]);
    assert_eq!(instances(), before, "nothing is left");
    let seen = forks(&night.output());
    let ours: Vec<i64> = seen
        .into_iter()
        .filter(|tid| children.contains(tid))
        .collect();
    assert_eq!(ours, children, "each once, in order");
    let archives = std::fs::read_dir(night.output()).expect("archives");
    for archive in archives.flatten() {
        let info = run(Command::new(RTSCOPE).arg("info").arg(archive.path()));
        assert!(info.contains("lttng_statedump_process_state"), "{info}");
        night.check_babeltrace(
            "each_fork_is_in_one_archive",
            &archive.file_name().to_string_lossy(),
        );
    }
}

/// In a mount namespace of its own: a disk, a session, another archive, and no more room.
const FULL: &str = r#"
mount -t tmpfs -o size=24m none "$1" || { echo no disk; exit; }
disk=$1 rtscope=$2
"$rtscope" record start night -o "$disk/archives" --events sched || exit
"$rtscope" record rotate night
until [ -s "$(echo "$disk"/archives/.000002*/.written-until)" ]; do :; done
head -c 100M /dev/zero > "$disk/fill"
until "$rtscope" record status night > "$3"; [ $? = 3 ]; do :; done
cat "$3"
"$rtscope" record rotate night
"$rtscope" record stop night
echo "code $?"
for archive in "$disk"/archives/0*; do
    "$rtscope" info "$archive" > "$3" || exit
    echo "$(basename "$archive") $(grep ^lost "$3")"
    echo "holds $(grep ^events "$3" | tr -s ' ' | cut -d' ' -f2) events"
done
"#;

#[test]
fn an_archive_ends_where_the_next_one_begins() {
    let _alone = testkit::privileged();
    let night = Night::new();
    night.says("start", &["--events", "sched"]);
    for _ in 0..3 {
        night.says("rotate", &[]);
    }
    night.says("stop", &[]);
    let archives = night.archives();
    let times = |archive: &Path, filter: &str| -> Vec<u64> {
        let archive = archive.to_str().expect("UTF-8");
        let text = night.rtscope(&["cat", archive, "--clock-cycles", "--filter", filter]);
        let time = |line: &str| line.strip_prefix('[')?.split(']').next()?.parse().ok();
        text.lines().filter_map(time).collect()
    };
    for pair in archives.windows(2) {
        let last = times(&pair[0], "$name == \"*\"").into_iter().max();
        let next = times(&pair[1], "$name == \"sched_*\"").into_iter().min();
        assert!(last.is_some() && last <= next, "{last:?} {next:?} {pair:?}");
    }
    assert_eq!(archives.len(), 4);
}

#[test]
fn what_a_flight_has_overwritten_is_not_lost_at_its_end_either() {
    let _alone = testkit::privileged();
    let night = Night::new();
    let small = ["--flight", "--events", "sched", "--buffer", "8K"];
    night.says("start", &small);
    night.await_status(|status| {
        let rings = status["cpus"].as_array();
        rings.is_some_and(|rings| rings.iter().any(|ring| ring["lost"].as_u64() > Some(0)))
    });
    let said = night.says("stop", &[]);
    let rings = said.lines().filter(|line| line.contains("% full"));
    let rings: Vec<&str> = rings.collect();
    let are_overwritten = rings.iter().all(|ring| ring.ends_with(" overwritten"));
    assert!(!rings.is_empty() && are_overwritten, "{said}");
}

#[test]
fn a_full_disk_ends_a_session_and_what_came_before_is_a_trace() {
    let _alone = testkit::privileged();
    let before = instances();
    let night = Night::new();
    let disk = night.scene.beside("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mut shell = Command::new("unshare");
    shell.args(["-m", "--propagation", "private", "sh", "-c", FULL, "sh"]);
    shell
        .arg(&disk)
        .arg(RTSCOPE)
        .arg(night.scene.beside("said"));
    shell.env("RTSCOPE_RUNTIME_DIR", night.scene.beside("runtime"));
    let output = shell.output().expect("unshare starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if said.contains("no disk") {
        return testkit::skip("a_full_disk_ends_a_session", "no tmpfs can be mounted here");
    }
    assert!(said.contains("ended by an error"), "{said}{errors}");
    assert!(
        said.contains("ended when its disk was full"),
        "{said}{errors}"
    );
    assert!(said.contains("code 1"), "{said}{errors}");
    assert!(errors.contains("free some space"), "{errors}");
    let archives: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("0000"))
        .collect();
    assert!(archives[0].contains("none"), "the first is whole: {said}");
    // The last word of the session counts what its last archive holds.
    let holds = said.lines().rfind(|line| line.starts_with("holds "));
    let holds = holds.map(|line| line.replace("holds", ":"));
    let holds = holds.expect("a count").replace(": ", "Z: ");
    let told = said.rsplit_once("archives: 2").map(|(_, told)| told);
    assert!(told.is_some_and(|told| told.contains(&holds)), "{said}");
    assert_eq!(instances(), before, "nothing is left");
}
