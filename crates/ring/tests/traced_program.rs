//! Check that what programs record is what a reader finds, whoever compiled them and however their
//! threads write.

mod traced;

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ring::{Directory, Liveness};
use testkit::{Traced, build_traced};
use traced::{Event, build, events, files, run};

const ALL_TYPES: &str = r#"
#include <rtscope/event.h>
enum light { RED, GREEN };
RTSCOPE_ENUMERATION(light, RTSCOPE_LABEL("red", RED), RTSCOPE_LABELS("green", GREEN, 2));
int main(void)
{
    const short numbers[] = {1, -2, 3};
    for (int i = 0; i < 2; i++)
        RTSCOPE_EVENT(app, numbers, u8("a", 1), u16("b", 2), u32("c", 3), u64("d", 4), i8("e", -1),
                      i16("f", -2), i32("g", -3), i64("h", -4));
    RTSCOPE_EVENT(app, hex, x8("a", 1), x16("b", 2), x32("c", 3), x64("d", 4), f32("e", 0.5),
                  f64("f", -0.25));
    RTSCOPE_EVENT_LEVEL(RTSCOPE_LEVEL_INFO, app, texts, text("s", "hello"), u8("n", 7),
                        text_n("t", "abcdef", 3), bytes("b", "\1\2", 2), text("none", (char *)0));
    RTSCOPE_EVENT(app, rows, array("a", i16, numbers, 2), chars("c", "abc", 4),
                  sequence("s", u16, numbers, 3), n32("n", 0x01020304), e8("light", light, GREEN),
                  nowrite(u64("hidden", 9)), nowrite(text("unseen", "x")));
    RTSCOPE_BEGIN(app, work, 7, u8("a", 1));
    RTSCOPE_END(app, work, 7);
    RTSCOPE_PRINT(app, words, "%d of %s", 3, "three");
    RTSCOPE_EVENT(app, nothing);
    RTSCOPE_EVENT(other, never, u8("a", 1));
    return 0;
}
"#;

fn expected() -> Vec<Event> {
    let event = |name: &str, fields: &[&str]| {
        (
            name.to_owned(),
            fields.iter().map(|f| (*f).to_owned()).collect(),
        )
    };
    let numbers = event(
        "app:numbers",
        &[
            "a=[1]",
            "b=[2, 0]",
            "c=[3, 0, 0, 0]",
            "d=[4, 0, 0, 0, 0, 0, 0, 0]",
            "e=[255]",
            "f=[254, 255]",
            "g=[253, 255, 255, 255]",
            "h=[252, 255, 255, 255, 255, 255, 255, 255]",
        ],
    );
    let hex = [
        "a=[1]",
        "b=[2, 0]",
        "c=[3, 0, 0, 0]",
        "d=[4, 0, 0, 0, 0, 0, 0, 0]",
        "e=[0, 0, 0, 63]",
        "f=[0, 0, 0, 0, 0, 0, 208, 191]",
    ];
    let texts = [
        "s=[104, 101, 108, 108, 111]",
        "n=[7]",
        "t=[97, 98, 99]",
        "b=[1, 2]",
        "none=[]",
    ];
    vec![
        numbers.clone(),
        numbers,
        event("app:hex", &hex),
        event("app:texts", &texts),
        event(
            "app:rows",
            &[
                "a=[1, 0, 254, 255]",
                "c=[97, 98, 99, 0]",
                "s=[1, 0, 254, 255, 3, 0]",
                "n=[4, 3, 2, 1]",
                "light=[1]",
            ],
        ),
        event(
            "app:work_begin",
            &["cookie=[7, 0, 0, 0, 0, 0, 0, 0]", "a=[1]"],
        ),
        event("app:work_end", &["cookie=[7, 0, 0, 0, 0, 0, 0, 0]"]),
        event(
            "app:words",
            &["msg=[51, 32, 111, 102, 32, 116, 104, 114, 101, 101]"],
        ),
        event("app:nothing", &[]),
    ]
}

#[test]
fn every_type_of_field_arrives_on_every_way_of_writing() {
    let program = build("all_types", ALL_TYPES);
    let check = |variables: &[(&str, &str)]| {
        let wanted = [&[("RTSCOPE_EVENTS", "app:*")], variables].concat();
        let (_folder, mut files) = run(&program, &wanted);
        assert_eq!(files.len(), 1);
        let mut found = events(&mut files[0]);
        // A migration in the middle leaves events in two rings.
        found.sort_by_key(|event| expected().iter().position(|e| e == event));
        assert_eq!(found, expected(), "{variables:?}");
    };
    check(&[]);
    check(&[("RTSCOPE_CLOCK", "monotonic")]);
    check(&[("RTSCOPE_RSEQ", "off")]);
    check(&[("RTSCOPE_MODE", "overwrite"), ("RTSCOPE_RING_SIZE", "1M")]);
}

#[test]
fn every_compiler_and_language_gives_the_same_events() {
    let check = |name: &str, compiler: &str, flags: &[&str]| {
        if Command::new(compiler).arg("--version").output().is_err() {
            testkit::skip("traced_program", &format!("no {compiler} here"));
            return;
        }
        let program = Traced {
            compiler,
            flags,
            source: ALL_TYPES,
        };
        let program = build_traced(Path::new(env!("CARGO_TARGET_TMPDIR")), name, program);
        let (_folder, mut files) = run(&program, &[("RTSCOPE_EVENTS", "app")]);
        assert_eq!(events(&mut files[0]).len(), expected().len(), "{name}");
    };
    for compiler in ["gcc", "clang"] {
        for optimise in ["-O0", "-O2"] {
            let flags = [optimise, "-std=c11", "-Wpedantic"];
            check(&format!("{compiler}{optimise}"), compiler, &flags);
        }
        let flags = ["-O2", "-std=c11", "-Wpedantic", "-fPIC", "-flto"];
        check(&format!("{compiler}-lto"), compiler, &flags);
    }
    for compiler in ["g++", "clang++"] {
        let flags = ["-O2", "-std=c++17", "-Wpedantic"];
        check(compiler, compiler, &flags);
    }
}

#[test]
fn a_process_without_events_leaves_no_file() {
    let program = build("no_events", ALL_TYPES);
    assert_eq!(run(&program, &[]).1.len(), 0);
    let disabled = [("RTSCOPE_EVENTS", "app"), ("RTSCOPE_DISABLE", "1")];
    assert_eq!(run(&program, &disabled).1.len(), 0);
}

#[test]
fn a_session_enables_what_starts_after_it_and_rings_die_with_their_process() {
    let program = build(
        "sessions",
        "#include <rtscope/event.h>\n#include <unistd.h>\nint main(void) { \
         RTSCOPE_EVENT(app, start); char c; return read(0, &c, 1) < 0; }",
    );
    let folder = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let owner = rustix::process::geteuid().as_raw();
    let directory = Directory::open(folder.path(), owner).expect("a directory");
    let session = directory
        .announce(&["app:st*".to_owned()])
        .expect("a session");
    let mut child = Command::new(&program)
        .env("RTSCOPE_DIR", folder.path())
        .arg0("traced")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let file = loop {
        let mut all = directory.names().expect("names").into_iter();
        if let Some(file) = all.find_map(|name| directory.rings(&name).expect("rings")) {
            break file;
        }
        std::thread::yield_now();
    };
    assert_eq!(file.liveness(), Liveness::Alive);
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert_eq!(file.liveness(), Liveness::Dead);
    directory.remove(&session).expect("removed");
    directory.remove(&session).expect("removing twice is fine");
    assert_eq!(
        directory.sessions().expect("sessions"),
        Vec::<String>::new()
    );
}

#[test]
fn a_child_of_fork_has_rings_of_its_own() {
    let program = build(
        "forks",
        "#include <rtscope/event.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) { \
         RTSCOPE_EVENT(app, before); int child = fork(); \
         for (int i = 0; i < 3; i++) RTSCOPE_EVENT(app, after, u8(\"child\", child == 0)); \
         if (child) wait(0); return 0; }",
    );
    let (_folder, mut files) = run(&program, &[("RTSCOPE_EVENTS", "app")]);
    assert_eq!(files.len(), 2);
    files.sort_by_key(|file| file.layout().begin_ns);
    let after = |child: u8| ("app:after".to_owned(), vec![format!("child=[{child}]")]);
    let before = ("app:before".to_owned(), vec![]);
    let mut parent = events(&mut files[0]);
    parent.sort_by_key(|event| event.0 != "app:before");
    assert_eq!(parent, [before, after(0), after(0), after(0)]);
    assert_eq!(events(&mut files[1]), [after(1), after(1), after(1)]);
}

#[test]
fn a_process_takes_little_more_memory_than_its_rings() {
    let program = build(
        "memory",
        "#include <rtscope/event.h>\nint main(void) { RTSCOPE_EVENT(app, one); return 0; }",
    );
    let variables = [("RTSCOPE_EVENTS", "app"), ("RTSCOPE_RING_SIZE", "32K")];
    let (folder, files) = run(&program, &variables);
    let rings = (0..files[0].layout().rings).filter(|ring| {
        let control = files[0].control(*ring);
        control.expect("a control").is_some()
    });
    let rings_bytes = rings.count() as u64 * files[0].layout().ring_bytes;
    let taken = std::fs::metadata(folder.path().join(files[0].name())).expect("the file");
    let besides = (taken.blocks() * 512).saturating_sub(rings_bytes);
    assert!(
        (1..=32 << 10).contains(&besides),
        "{besides} bytes beside {rings_bytes}"
    );
}

#[test]
fn children_that_run_another_program_leave_no_rings_behind() {
    let program = build(
        "execs",
        "#include <rtscope/event.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) { \
         for (int i = 0; i < 20; i++) { \
         if (!fork()) { if (i == 7) RTSCOPE_EVENT(app, child); \
         execlp(\"true\", \"true\", (char *)0); } \
         wait(0); } return 0; }",
    );
    let (_folder, files) = run(&program, &[]);
    assert_eq!(files.len(), 0, "nobody recorded, and nothing is left");
    // But for what a recorder may want: events that were recorded.
    let (_folder, mut files) = run(&program, &[("RTSCOPE_EVENTS", "app")]);
    let found: Vec<_> = files.iter_mut().flat_map(events).collect();
    assert_eq!(found, [("app:child".to_owned(), vec![])]);
}

#[test]
fn rings_of_others_and_rings_that_others_may_write_are_refused() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let owner = rustix::process::geteuid().as_raw();
    let refused = Directory::open(folder.path(), owner + 1).expect_err("another owner");
    assert!(refused.to_string().contains("is not to be trusted"));
    let directory = Directory::open(folder.path(), owner).expect("ours");
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("rings-1-1")).expect("a link");
    assert!(directory.rings("rings-1-1").is_err());
    std::fs::write(folder.path().join("rings-2-2"), b"short").expect("a file");
    assert!(directory.rings("rings-2-2").expect("no error").is_none());
    std::fs::write(folder.path().join("rings-3-3"), vec![7; 4096]).expect("a file");
    let corrupt = directory.rings("rings-3-3").expect_err("no header");
    assert!(corrupt.to_string().contains("another magic number"));
    assert!(directory.rings("rings-4-4").expect("no error").is_none());
}

#[test]
fn a_32_bit_program_is_refused_when_it_is_compiled() {
    if !cfg!(target_arch = "x86_64") {
        return testkit::skip("traced_program of 32 bits", "it wants x86-64's -m32");
    }
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("narrow.c");
    std::fs::write(&source, "#include <rtscope/event.h>\n").expect("the program's text");
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let mut compile = Command::new("cc");
    // Freestanding: the compiler needs no C library of 32 bits to come as far as this.
    compile.args(["-m32", "-ffreestanding", "-fsyntax-only", "-I"]);
    let done = compile.arg(probe.join("include")).arg(&source).output();
    let done = done.expect("a compiler");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success());
    assert!(
        said.contains("rtscope's probe is for 64-bit ELF systems"),
        "{said}"
    );
}

/// An emulator gives no rseq area: the program makes one of its own, and says that its thread is on
/// CPU 0, or (SECTION=1) on another one than it said before, which aborts every section.
const OWN_SECTION: &str = r#"
/* As where the kernel keeps its time by the counter that is read: the library's own. */
extern uint32_t rtscope_write_clock;
static __thread struct { uint32_t before, now; uint64_t section; uint64_t more[2]; } area
    __attribute__((aligned(32)));
static void take_section(void)
{
    const char *const wanted = getenv("SECTION");
    if (!wanted)
        return;
    area.now = (uint32_t)atoi(wanted);
    rtscope_write_clock = RTSCOPE_CLOCK_COUNTER;
    rtscope_object_.area_offset = (char *)&area - rtscope_thread_pointer_();
    rtscope_object_.fast = 1;
}
int main(void)
{
    take_section();
"#;

/// Builds the program for arm64; nothing when that cannot be done or run here.
fn build_arm64() -> Option<PathBuf> {
    let compiler = "aarch64-linux-gnu-gcc";
    let is_there = |program| Command::new(program).arg("--version").output().is_ok();
    if !is_there(compiler) || !is_there("qemu-aarch64") {
        let why = "install gcc-aarch64-linux-gnu and qemu-user";
        testkit::skip("traced_program on arm64", why);
        return None;
    }
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("arm64");
    std::fs::create_dir_all(&folder).expect("a folder");
    // Debian's compiler only suggests the headers of its C library.
    let header = folder.join("header.c");
    std::fs::write(&header, "#include <stdlib.h>\n").expect("a file");
    let found = Command::new(compiler)
        .arg("-fsyntax-only")
        .arg(header)
        .output();
    if !found.is_ok_and(|done| done.status.success()) {
        testkit::skip("traced_program on arm64", "install libc6-dev-arm64-cross");
        return None;
    }
    let (begin, text) = ALL_TYPES.split_once("int main(void)\n{\n").expect("a main");
    let source = format!("#include <stdlib.h>\n{begin}{OWN_SECTION}{text}");
    std::fs::write(folder.join("main.c"), source).expect("the program's text");
    let sources = std::fs::read_dir(probe.join("src")).expect("sources");
    let sources = sources.map(|entry| entry.expect("a source").path());
    let program = folder.join("all_types");
    let mut compile = Command::new(compiler);
    compile.args([
        "-O2",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-static",
    ]);
    compile
        .arg("-I")
        .arg(probe.join("include"))
        .arg("-o")
        .arg(&program);
    compile.arg(folder.join("main.c"));
    compile.args(sources.filter(|path| path.extension().is_some_and(|end| end == "c")));
    let said = compile.output().expect("a compiler");
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    Some(program)
}

#[test]
fn arm64_records_the_same_by_turns_and_through_its_sections() {
    let Some(program) = build_arm64() else { return };
    let run = |section: Option<&str>| {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a directory in shared memory");
        let mut command = Command::new("qemu-aarch64");
        command.arg(&program).env("RTSCOPE_DIR", folder.path());
        command.env("RTSCOPE_EVENTS", "app:*");
        command.envs(section.map(|cpu| ("SECTION", cpu)));
        assert!(command.status().expect("the emulator runs").success());
        (files(folder.path()), folder)
    };
    for section in [None, Some("0")] {
        let (mut files, _folder) = run(section);
        let mut found = events(&mut files[0]);
        found.sort_by_key(|event| expected().iter().position(|e| e == event));
        assert_eq!(found, expected(), "section {section:?}");
    }
    let (mut files, _folder) = run(Some("1"));
    assert_eq!(events(&mut files[0]), []);
    let lost = (0..files[0].layout().rings).filter_map(|ring| files[0].control(ring).ok()?);
    let aborted: u64 = lost.map(|(_, losses)| losses.iter().sum::<u64>()).sum();
    assert_eq!(aborted, expected().len() as u64);
}
