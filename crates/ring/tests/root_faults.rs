//! Check what a traced program does on machines that are not as usual: no room in shared memory,
//! thousands of CPUs, huge pages, and what it does for whom it must not trust.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ring::{Directory, Mode, Records, readable};
use testkit::{Traced, build_traced};

/// Events of the program.
const EVENTS: u64 = 2000;
const PROGRAM: &str = r#"
#include <rtscope/event.h>
#include <stdio.h>
#include <string.h>
static void show_huge_pages(void)
{
    char line[256];
    FILE *const maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strncmp(line, "ShmemPmdMapped:", 15) == 0)
            fputs(line, stdout);
    if (maps)
        fclose(maps);
}
int main(void)
{
    for (unsigned i = 0; i < 2000; i++)
        RTSCOPE_EVENT(faults, tick, u64("i", i), u64("j", i));
    show_huge_pages();
    return 0;
}
"#;

fn program() -> PathBuf {
    build_traced(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        "faults",
        Traced::c(PROGRAM),
    )
}

/// Runs a script with file systems of its own. `$0` is the program, `$1` a folder.
fn in_own_mounts(script: &str, program: &Path, folder: &Path) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script]);
    command.arg(program).arg(folder).env("RTSCOPE_EVENTS", "*");
    let output = command.output().expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    output
}

/// What the one process in `folder` left: CPUs with a ring, events, losses.
fn left(folder: &Path) -> Option<(u32, u64, u64)> {
    let owner = rustix::process::geteuid().as_raw();
    let directory = Directory::open(folder, owner).expect("our directory");
    let name = directory.names().expect("names").pop()?;
    let file = directory.rings(&name).expect("rings").expect("complete");
    let (mut events, mut lost) = (0, 0);
    for ring in 0..file.layout().rings {
        let Some((window, losses)) = file.control(ring).expect("a control") else {
            continue;
        };
        lost += losses.iter().sum::<u64>();
        let range = readable(file.layout(), Mode::Discard, window).expect("sound offsets");
        let mut bytes = Vec::new();
        file.copy(ring, range.clone(), &mut bytes).expect("data");
        let records = Records::new(&bytes, range.start, file.layout().subbuffer_bytes, 0);
        events += records.count() as u64;
    }
    Some((file.layout().rings, events, lost))
}

#[test]
fn shared_memory_without_room_leaves_the_program_alone_and_counts_what_it_loses() {
    let _held = testkit::privileged();
    let program = program();
    let mut seen = [0; 2];
    // Of which others have taken 4.
    for kib in [4, 8, 16, 128, 256, 384, 512, 640, 768, 1024, 4096] {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let script = format!(
            "mkdir \"$1/kept\"; mount -t tmpfs -o size={kib}k,mode=0700 none /mnt
             head -c 4096 /dev/zero > /mnt/others
             RTSCOPE_DIR=/mnt \"$0\"; cp --sparse=always /mnt/rings-* \"$1/kept\" || true"
        );
        in_own_mounts(&script, &program, folder.path());
        let found = left(&folder.path().join("kept"));
        seen[usize::from(found.is_some())] += 1;
        if let Some((_, events, lost)) = found {
            // An event that found no place in the table was never on.
            let accounted = events + lost;
            assert!(
                accounted == EVENTS || accounted == 0,
                "{kib} KiB: {events} and {lost}"
            );
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

/// A child writes as many as [`PROGRAM`].
const PARENT: &str = r#"
#include <rtscope/event.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int status;
    const pid_t child = fork();
    if (child)
        return waitpid(child, &status, 0) != child || status != 0;
    for (unsigned i = 0; i < 2000; i++)
        RTSCOPE_EVENT(faults, tick, u64("i", i), u64("j", i));
    _exit(0);
}
"#;

#[test]
fn a_child_whose_first_event_finds_no_room_goes_on_and_counts_what_it_loses() {
    let _held = testkit::privileged();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = build_traced(scratch, "parent", Traced::c(PARENT));
    let mut lost_some = 0;
    // The parent's rings, and so much more.
    for kib in [200, 600, 1000, 1200, 3000] {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let script = format!(
            "mkdir \"$1/kept\"
             rings=$(($(getconf _NPROCESSORS_ONLN) * 1024))
             mount -t tmpfs -o size=$((rings + {kib}))k,mode=0700 none /mnt
             RTSCOPE_RING_SIZE=1M RTSCOPE_DIR=/mnt \"$0\"
             newest=$(ls -v /mnt/rings-* | tail -n 1)
             cp --sparse=always \"$newest\" \"$1/kept\""
        );
        in_own_mounts(&script, &program, folder.path());
        let (_, events, lost) = left(&folder.path().join("kept")).expect("its rings");
        assert_eq!(events + lost, EVENTS, "{kib} KiB: {events} and {lost}");
        lost_some += u32::from(lost > 0);
    }
    assert!((1..5).contains(&lost_some), "{lost_some}");
}

#[test]
fn four_thousand_cpus_have_a_place_and_those_online_a_ring() {
    let _held = testkit::privileged();
    let program = program();
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let script = "echo 0-4095 > \"$1/possible\"; mkdir \"$1/rings\"
        mount --bind \"$1/possible\" /sys/devices/system/cpu/possible
        RTSCOPE_DIR=\"$1/rings\" \"$0\"";
    in_own_mounts(script, &program, folder.path());
    assert_eq!(left(&folder.path().join("rings")), Some((4096, EVENTS, 0)));
}

#[test]
fn a_set_uid_program_believes_no_variable_and_writes_as_whom_it_became() {
    let _held = testkit::privileged();
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().expect("a folder");
    let plain = program();
    let set_uid = folder.path().join("set_uid");
    std::fs::copy(&plain, &set_uid).expect("a copy");
    chown(&set_uid, Some(NOBODY), None).expect("its owner");
    let mode = std::fs::Permissions::from_mode(0o4755);
    std::fs::set_permissions(&set_uid, mode).expect("its mode");
    let run = |program: &Path| {
        let asked = tempfile::tempdir().expect("a folder");
        let script = "mount -t tmpfs -o mode=1777 none /dev/shm; mkdir \"$1/rings\"
            RTSCOPE_DIR=\"$1/rings\" \"$0\" > /dev/null
            cd /dev/shm; stat -c '%n %u' rtscope-* 2> /dev/null || true";
        let said = in_own_mounts(script, program, asked.path());
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        (left(&asked.path().join("rings")), said)
    };
    let (traced, elsewhere) = run(&plain);
    assert_eq!(
        traced.map(|(_, events, lost)| (events, lost)),
        Some((EVENTS, 0))
    );
    assert_eq!(elsewhere, "");
    // Its rings, in which nothing was switched on, went with it.
    assert_eq!(
        run(&set_uid),
        (None, format!("rtscope-{NOBODY} {NOBODY}\n"))
    );
}

/// A switch of the machine that is as before when this is dropped, also by a panic.
struct Restored<'s> {
    switch: &'s str,
    before: String,
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(self.switch, &self.before) {
            eprintln!("{} is not '{}' again: {error}", self.switch, self.before);
        }
    }
}

#[test]
fn rings_are_in_huge_pages_where_asked_for_and_to_be_had() {
    let _held = testkit::privileged();
    let switch = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let Ok(before) = std::fs::read_to_string(switch) else {
        return testkit::skip("huge pages", "this kernel has none for shared memory");
    };
    let now = before
        .split(['[', ']'])
        .nth(1)
        .expect("one is chosen")
        .to_owned();
    let program = program();
    let mapped_kib = |huge: bool| -> u64 {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new(&program);
        command
            .env("RTSCOPE_DIR", folder.path())
            .env("RTSCOPE_EVENTS", "*");
        command.env("RTSCOPE_RING_SIZE", "8M");
        if huge {
            command.env("RTSCOPE_HUGE_PAGES", "1");
        }
        let said = String::from_utf8(command.output().expect("it starts").stdout);
        let number = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
        let (_, events, lost) = left(folder.path()).expect("rings");
        assert_eq!((events, lost), (EVENTS, 0));
        said.expect("text").lines().filter_map(number).sum()
    };
    let restored = Restored {
        switch,
        before: now,
    };
    std::fs::write(switch, "advise").expect("the switch");
    let (small, huge) = (mapped_kib(false), mapped_kib(true));
    drop(restored);
    assert_eq!(small, 0);
    if huge == 0 {
        testkit::skip("huge pages", "the machine has no 2 MiB together");
    }
}

/// Runs the program in a control group that ends who takes more than 32 MiB; `$1` is the folder.
const IN_A_SMALL_GROUP: &str = r#"
group=/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup | sed 's|^/$||')
limit=memory.limit_in_bytes
if [ ! -e "$group/$limit" ]; then
    group=/sys/fs/cgroup limit=memory.max
    grep -qw memory "$group/cgroup.subtree_control" || exit 77
fi
group=$group/rtscope-test-$$
mkdir "$group"
trap 'rmdir "$group"' EXIT
echo 32M >"$group/$limit"
RTSCOPE_DIR=$1 sh -c 'echo $$ >"$1/cgroup.procs" && exec "$0"' "$0" "$group"
"#;

#[test]
fn rings_end_no_process_whose_control_group_has_little_memory() {
    let _held = testkit::privileged();
    let program = program();
    let check = |announced: &[&str], ring_size: &str, expect: Option<u64>| {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        let directory = Directory::open(folder.path(), owner).expect("a directory");
        let lines: Vec<_> = announced.iter().map(|line| (*line).to_owned()).collect();
        directory.announce(&lines).expect("a session");
        let mut shell = Command::new("sh");
        shell.args(["-ec", IN_A_SMALL_GROUP]).arg(&program);
        shell.arg(folder.path()).env("RTSCOPE_RING_SIZE", ring_size);
        let status = shell.status().expect("a shell");
        if status.code() == Some(77) {
            testkit::skip("root_faults", "no control group can have a limit here");
            return;
        }
        assert!(status.success(), "{announced:?} {ring_size}: {status}");
        let found = left(folder.path());
        assert_eq!(
            found.map(|found| found.1),
            expect,
            "{announced:?} {ring_size}"
        );
        let without = directory.look().expect("who has none").without_rings;
        let overflow = rustix::io::Errno::OVERFLOW.raw_os_error();
        let refused = expect.map_or(vec![overflow], |_| Vec::new());
        let reasons: Vec<_> = without.iter().map(|process| process.errno).collect();
        assert_eq!(reasons, refused, "{announced:?} {ring_size}");
    };
    check(&["faults", "!ring-at-most 64M"], "", Some(EVENTS));
    check(&["faults", "!ring 64M"], "", None);
    check(&["faults"], "64M", None);
    check(&["faults"], "256K", Some(EVENTS));
}

#[test]
fn the_newer_interface_of_control_groups_is_understood() {
    let _held = testkit::privileged();
    let program = program();
    let check = |most: &str, used: u64, files: u64, is_recorded: bool| {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let script = format!(
            "mount -t tmpfs none /sys/fs/cgroup
             echo {most} >/sys/fs/cgroup/memory.max
             echo {used} >/sys/fs/cgroup/memory.current
             printf 'anon 1\\ninactive_file {files}\\n' >/sys/fs/cgroup/memory.stat
             RTSCOPE_RING_SIZE=8M RTSCOPE_DIR=\"$1\" \"$0\""
        );
        in_own_mounts(&script, &program, folder.path());
        assert_eq!(left(folder.path()).is_some(), is_recorded, "{most} {used}");
    };
    check("max", 1 << 30, 0, true);
    check("16777216", 0, 0, false);
    check("34359738368", 34_359_730_000, 0, false);
    check("34359738368", 34_359_730_000, 34_359_000_000, true);
}
