//! Check that no value of a variable that the library reads hangs a program, ends it, or takes
//! memory beyond all measure, and that what is not followed is said by name.

mod traced;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ring::{Directory, Mode, RingFile};
use traced::{build, events, files};

/// Three events; another title in the place of its environment, as daemons have it; three more in a
/// child.
const PROGRAM: &str = r#"
#include <rtscope/event.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void record(void)
{
    for (unsigned i = 0; i < 3; i++)
        RTSCOPE_EVENT(app, tick, u32("i", i));
}
int main(int count, char **words)
{
    int status = 0;
    (void)words;
    record();
    if (count == 1)
        return 0;
    for (char **one = environ; *one; one++)
        memset(*one, '/', strlen(*one));
    if (fork() == 0) {
        record();
        return 0;
    }
    return wait(&status) < 0 || status != 0;
}
"#;

fn program() -> &'static Path {
    static PROGRAM_BUILT: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM_BUILT.get_or_init(|| build("hostile_environment", PROGRAM))
}

/// What a run takes at most: the rings that nobody asked for, of a machine with many CPUs.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Runs the program with one variable, for so long at most; gives its rings.
fn run(name: &str, value: &str, words: &[&str]) -> Vec<RingFile> {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "20"]).arg(program()).args(words);
    command
        .env("RTSCOPE_DIR", folder.path())
        .env("RTSCOPE_EVENTS", "app")
        .env(name, value);
    let status = command.status().expect("timeout");
    let shown: String = value.chars().take(60).collect();
    assert!(status.success(), "{name}={shown}: {status}");
    let found = files(folder.path());
    for file in &found {
        let bytes = file.memory_bytes().expect("a size");
        assert!(bytes <= MEMORY_BYTES_MAX, "{name}={shown}: {bytes} bytes");
    }
    found
}

/// What is said of variables that are not followed.
fn told(file: &mut RingFile) -> Vec<String> {
    file.read_table().expect("a table");
    let notes = file.table().notes.iter();
    notes
        .map(|note| format!("{}: {}; {}", note.what, note.found, note.fix))
        .collect()
}

/// Values that make no sense for anything.
const NONSENSE: [&str; 22] = [
    "-1",
    "0x10",
    "1e9",
    "4MB",
    "1T",
    "1.5G",
    " 4M",
    "4M ",
    "M",
    "99999999999999999999999999",
    "18446744073709551615",
    "18446744073709551616K",
    "99999999G",
    "\u{1b}]0;title\u{7}",
    "%s%s%s%n%n%n",
    "*:*:*:*",
    "[[[[[[[[",
    "../../../../../../etc",
    "\n\n!ring 4G\n!overwrite\n",
    "\u{202e}drow",
    "NaN",
    "discard,overwrite",
];

const NUMBERS: [&str; 3] = [
    "RTSCOPE_RING_SIZE",
    "RTSCOPE_SUBBUFFERS",
    "RTSCOPE_BLOCK_US",
];
const WORDS: [&str; 3] = ["RTSCOPE_MODE", "RTSCOPE_CLOCK", "RTSCOPE_RSEQ"];

#[test]
fn a_number_or_word_that_makes_no_sense_is_not_followed_and_said_by_name() {
    for variable in NUMBERS.into_iter().chain(WORDS) {
        let long = "9".repeat(100_000);
        for value in NONSENSE.into_iter().chain([long.as_str()]) {
            let mut found = run(variable, value, &[]);
            assert_eq!(found.len(), 1, "{variable}={value:.60}");
            let layout = found[0].layout();
            assert_eq!(layout.ring_bytes, 256 << 10, "{variable}={value:.60}");
            let told = told(&mut found[0]);
            assert_eq!(told.len(), 1, "{variable}={value:.60}: {told:?}");
            let starts = format!("{variable} is not followed by rtscope_probe:");
            assert!(told[0].starts_with(&starts), "{value:.60}: {told:?}");
            let steers = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!told[0].contains(steers), "{told:?}");
            assert_eq!(events(&mut found[0]).len(), 3, "{variable}={value:.60}");
        }
    }
}

#[test]
fn what_makes_sense_is_followed_without_a_word() {
    let check = |variable: &str, value: &str, holds: &dyn Fn(&RingFile) -> bool| {
        let mut found = run(variable, value, &[]);
        assert_eq!(told(&mut found[0]), [""; 0], "{variable}={value}");
        assert!(holds(&found[0]), "{variable}={value}");
        assert_eq!(events(&mut found[0]).len(), 3, "{variable}={value}");
    };
    check("RTSCOPE_RING_SIZE", "1M", &|file| {
        file.layout().ring_bytes == 1 << 20
    });
    check("RTSCOPE_RING_SIZE", "0", &|file| {
        file.layout().ring_bytes == 256 << 10
    });
    check("RTSCOPE_RING_SIZE", "", &|file| {
        file.layout().ring_bytes == 256 << 10
    });
    check("RTSCOPE_SUBBUFFERS", "3", &|file| {
        file.layout().subbuffer_bytes == 64 << 10
    });
    check("RTSCOPE_BLOCK_US", "1000000", &|_| true);
    check("RTSCOPE_MODE", "overwrite", &|file| {
        file.mode().expect("a mode") == Mode::Overwrite
    });
    check("RTSCOPE_CLOCK", "monotonic", &|file| {
        file.layout().clock == ring::ClockKind::Monotonic
    });
    check("RTSCOPE_RSEQ", "off", &|file| !file.layout().rseq);
    check("RTSCOPE_HUGE_PAGES", "no", &|_| true);
    check("RTSCOPE_EVENTS", "app:tick:13,web", &|_| true);
}

#[test]
fn lists_of_events_that_make_no_sense_switch_nothing_on_and_take_no_time() {
    let stars = "*a".repeat(2000);
    let many = "x:y,".repeat(25_000);
    let classes = "*[!b-a]".repeat(500);
    for value in NONSENSE.into_iter().chain([&*stars, &many, &classes]) {
        let found = run("RTSCOPE_EVENTS", value, &[]);
        assert_eq!(found.len(), 0, "{value:.60}");
    }
    let check = |value: &str, expect: &str| {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        let directory = Directory::open(folder.path(), owner).expect("a directory");
        directory.announce(&["app".to_owned()]).expect("a session");
        let mut command = Command::new(program());
        command
            .env("RTSCOPE_DIR", folder.path())
            .env("RTSCOPE_EVENTS", value);
        assert!(command.status().expect("it runs").success());
        let told = told(&mut files(folder.path())[0]);
        assert!(told.len() == 1 && told[0].contains(expect), "{told:?}");
    };
    check("app:*:info", "no number as level: app:*:info");
    check(&many, "it has more than 4095 bytes");
}

#[test]
fn a_directory_that_cannot_be_used_leaves_the_program_untraced() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let inside = |name: &str| folder.path().join(name);
    let mode = rustix::fs::Mode::RWXU;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, inside("fifo"), fifo, mode, 0).expect("a pipe");
    std::fs::write(inside("file"), "").expect("a file");
    std::os::unix::fs::symlink("/dev/shm", inside("link")).expect("a link");
    std::os::unix::fs::symlink("loop", inside("loop")).expect("a link");
    std::fs::create_dir(inside("open")).expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(inside("open"), open).expect("open to all");
    let names = ["fifo", "file", "link", "loop", "open", "none/below"];
    let ours = names.map(|name| inside(name).display().to_string());
    let theirs = ["/proc", "/proc/self", "/sys/none", "/dev/null", "/dev/full"];
    for value in ours.iter().map(String::as_str).chain(theirs) {
        run("RTSCOPE_DIR", value, &[]);
    }
    assert_eq!(std::fs::read_dir(inside("open")).expect("it").count(), 0);
}

#[test]
fn a_directory_may_be_named_from_where_the_program_starts() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut command = Command::new(program());
    command
        .current_dir(folder.path())
        .env("RTSCOPE_DIR", "rings");
    let status = command.env("RTSCOPE_EVENTS", "app").status();
    assert!(status.expect("it runs").success());
    let mut found = files(&folder.path().join("rings"));
    assert_eq!(events(&mut found[0]).len(), 3);
}

#[test]
fn what_a_program_writes_over_its_environment_later_changes_nothing() {
    let mut found = run("RTSCOPE_SUBBUFFERS", "many", &["child"]);
    assert_eq!(found.len(), 2);
    for file in &mut found {
        let told = told(file);
        assert!(told[0].starts_with("RTSCOPE_SUBBUFFERS"), "{told:?}");
        assert_eq!(events(file).len(), 3);
    }
}

/// Files that are called as sessions are, beside a recorder's, of which a program may see the
/// newest first.
#[test]
fn a_folder_full_of_sessions_costs_no_event_or_the_program_says_so() {
    let long = "a-pattern:".repeat(9);
    for (others, line, says) in [(300, "x", false), (3000, "x", true), (300, &*long, true)] {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let owner = rustix::process::geteuid().as_raw();
        let directory = Directory::open(folder.path(), owner).expect("a directory");
        directory.announce(&["app".to_owned()]).expect("a session");
        for other in 0..others {
            let path = folder.path().join(format!("session-other-{other}"));
            std::fs::write(path, format!("{line}-{other}\n").repeat(2)).expect("a file");
        }
        let mut command = Command::new(program());
        let status = command.env("RTSCOPE_DIR", folder.path()).status();
        assert!(status.expect("it starts").success());
        let mut found = files(folder.path());
        let (mut recorded, mut said) = (0, 0);
        for file in &mut found {
            recorded += events(file).len();
            said += file.table().notes.len();
        }
        assert_eq!(said > 0, says, "{others} {line}");
        assert!(says || recorded == 3, "{others} {line}: {recorded}");
    }
}
