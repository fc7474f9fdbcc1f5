//! Check that a program is none the worse for its events, traced or not.

mod traced;

use std::path::Path;
use std::process::Command;

use testkit::{Traced, build_traced};
use traced::{build, events, files, run};

const EVENTS: [(&str, &str); 1] = [("RTSCOPE_EVENTS", "app")];

/// Runs a shell's script with the program as `$0`.
fn shell(script: &str, program: &Path, folder: &Path) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program);
    let status = command.env("RTSCOPE_DIR", folder).status();
    status.expect("a shell").success()
}

#[test]
fn a_limit_of_file_sizes_ends_no_program_and_is_said() {
    let program = build(
        "limited_files",
        "#include <rtscope/event.h>\nint main(void) { RTSCOPE_EVENT(app, one); return 0; }",
    );
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let directory = ring::Directory::open(folder.path(), rustix::process::geteuid().as_raw());
    let directory = directory.expect("a directory");
    directory.announce(&["app".to_owned()]).expect("a session");
    for kib in [0, 1, 100, 1000] {
        let script = format!("ulimit -f {kib}; exec \"$0\"");
        assert!(shell(&script, &program, folder.path()), "{kib} KiB");
    }
    assert_eq!(files(folder.path()).len(), 0);
    let found = directory.look().expect("who has none").without_rings;
    let too_large = rustix::io::Errno::FBIG.raw_os_error();
    let reasons: Vec<_> = found.iter().map(|process| process.errno).collect();
    assert_eq!(reasons, [too_large; 4]);
}

#[test]
fn a_program_finds_errno_as_if_it_had_no_events() {
    let program = build(
        "errno",
        "#include <errno.h>\n#include <rtscope/event.h>\n#include <sys/wait.h>\n\
         #include <unistd.h>\nint main(void) { if (errno) return errno; errno = 7; \
         int child = fork(); if (!child) _exit(errno != 7); int status; wait(&status); \
         RTSCOPE_EVENT(app, one); return status || errno != 7; }",
    );
    run(&program, &[]);
    run(&program, &EVENTS);
}

/// Says how much of its rings' file a program has in memory, and what it has locked.
const MEMORY: &str = r#"
#define _GNU_SOURCE
#include <rtscope/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
static long sum(const char *path, const char *file, const char *key)
{
    char line[4096];
    long found = 0, kib;
    int ours = !*file;
    FILE *const list = fopen(path, "r");
    while (list && fgets(line, sizeof line, list)) {
        if (*file && strchr(line, '-') && strchr(line, '/'))
            ours = strstr(line, file) != NULL;
        if (ours && strncmp(line, key, strlen(key)) == 0 &&
            sscanf(line + strlen(key), "%ld", &kib) == 1)
            found += kib;
    }
    fclose(list);
    return found;
}
"#;

#[test]
fn rings_take_memory_of_a_process_when_it_records_and_an_8_mib_limit_of_locks_suffices() {
    let program = build(
        "locked",
        &format!(
            "{MEMORY}int main(void) {{
                const long before = sum(\"/proc/self/smaps\", \"/rings-\", \"Rss:\");
                if (!getenv(\"RTSCOPE_EVENTS\"))
                    return before < 4 || before > 128;
                const struct rlimit limit = {{8 << 20, 8 << 20}};
                setrlimit(RLIMIT_MEMLOCK, &limit);
                /* Root has no limits. */
                if (geteuid() == 0 && setuid(65534) != 0) return 1;
                const long locked = sum(\"/proc/self/status\", \"\", \"VmLck:\");
                const int refused = mlockall(MCL_CURRENT | MCL_FUTURE);
                RTSCOPE_EVENT(app, memory, u64(\"before\", before), u64(\"locked\", locked), \
                              u8(\"refused\", refused != 0));
                return 0; }}"
        ),
    );
    // Untraced: a few pages of the front, and none of the rings.
    run(&program, &[]);
    let (_folder, mut files) = run(&program, &EVENTS);
    let found = events(&mut files[0]).remove(0).1;
    assert_eq!(found[1], "locked=[0, 0, 0, 0, 0, 0, 0, 0]");
    assert_eq!(found[2], "refused=[0]");
}

/// A library with events, and a program that opens and closes it 300 times; it ends with an
/// error when its mappings of rings grow.
const OPENS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef OWN
#include <rtscope/event.h>
#endif
static long mappings(void)
{
    char line[4096];
    long found = 0;
    FILE *const list = fopen("/proc/self/maps", "r");
    while (list && fgets(line, sizeof line, list))
        found += strstr(line, "/rings-") != NULL;
    fclose(list);
    return found;
}
int main(int length, char **words)
{
    long first = 0;
#ifdef OWN
    RTSCOPE_EVENT(app, own);
#endif
    for (int turn = 0; turn < 300; turn++) {
        void *const library = length > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
        void (*record)(unsigned) = NULL;
        if (!library)
            return 2;
        *(void **)&record = dlsym(library, "record");
        record((unsigned)turn);
        dlclose(library);
        if (turn == 1)
            first = mappings();
    }
    return mappings() != first;
}
"#;

const OPENED: &str = "#include <rtscope/event.h>\n\
    RTSCOPE_ENUMERATION(one, RTSCOPE_LABEL(\"a\", 1));\n\
    void record(unsigned turn);\nvoid record(unsigned turn)\n\
    { RTSCOPE_EVENT(app, opened, u32(\"turn\", turn), e8(\"e\", one, 1)); }\n";

/// The probe's library and what is linked with it, in a folder.
fn build_opened(folder: &Path) {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    std::fs::write(folder.join("opened.c"), OPENED).expect("a file");
    std::fs::write(folder.join("opens.c"), OPENS).expect("a file");
    let script =
        "make -s -C \"$0\" OUT=\"$1\" \"$1/librtscope-probe.a\" \"$1/librtscope-probe.so\" &&
        cd \"$1\" && flags=\"-O2 -Wall -Wextra -I$0/include\" &&
        cc $flags -fPIC -shared -o static.so opened.c librtscope-probe.a -pthread &&
        cc $flags -fPIC -shared -o shared.so opened.c -L. -lrtscope-probe -Wl,-rpath,\"$1\" &&
        cc $flags -o alone opens.c -ldl &&
        cc $flags -DOWN -o own opens.c -L. -lrtscope-probe -ldl -Wl,-rpath,\"$1\"";
    let mut shell = Command::new("sh");
    let status = shell.args(["-c", script]).arg(probe).arg(folder).status();
    assert!(status.expect("a shell").success());
}

#[test]
fn a_library_that_is_opened_and_closed_takes_room_once() {
    let folder = tempfile::tempdir().expect("a folder");
    build_opened(folder.path());
    let check = |program: &str, library: &str, traced: bool, left: usize, described: usize| {
        let name = format!("{program} opens {library}, traced: {traced}");
        let rings = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new(folder.path().join(program));
        command
            .arg(folder.path().join(library))
            .env("RTSCOPE_DIR", rings.path());
        command.env("RTSCOPE_RING_SIZE", "64K");
        command.envs(traced.then_some(("RTSCOPE_EVENTS", "app")));
        assert!(command.status().expect("it runs").success(), "{name}");
        let mut found = files(rings.path());
        assert_eq!(found.len(), left, "{name}");
        let recorded: usize = found.iter_mut().map(|file| events(file).len()).sum();
        let own = usize::from(program == "own");
        assert_eq!(recorded, if traced { 300 + own } else { 0 }, "{name}");
        for file in found {
            assert_eq!(file.table().events.len(), described, "{name}");
            assert_eq!(file.unregistered().expect("a number"), 0, "{name}");
        }
    };
    check("own", "shared.so", true, 1, 2);
    check("own", "shared.so", false, 0, 0);
    check("alone", "shared.so", true, 1, 1);
    check("alone", "shared.so", false, 0, 0);
    // With a copy of the runtime in it, it takes the rings with it.
    check("alone", "static.so", true, 300, 1);
    check("alone", "static.so", false, 0, 0);
}

/// Forks for as long as another thread opens and closes a library with an event, so many times. Its
/// own handlers of a fork take their time: meanwhile the C library can forget those of others.
const FORKS_MEANWHILE: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int is_over;
static char **words;
static void *open_and_close(void *turns)
{
    for (long turn = 0; turn < (long)turns; turn++) {
        void *const library = dlopen(words[1], RTLD_NOW);
        void (*record)(unsigned) = NULL;
        if (!library)
            _exit(2);
        *(void **)&record = dlsym(library, "record");
        record(7);
        dlclose(library);
    }
    is_over = 1;
    return NULL;
}
static void take_time(void)
{
    usleep(300);
}
int main(int length, char **given)
{
    pthread_t thread;
    int status = 0, bad = length != 3 || pthread_atfork(take_time, take_time, NULL) != 0;
    words = given;
    if (bad || pthread_create(&thread, NULL, open_and_close, (void *)atol(words[2])) != 0)
        return 1;
    while (!is_over) {
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        bad |= waitpid(child, &status, 0) != child || status != 0;
    }
    return pthread_join(thread, NULL) != 0 || bad;
}
"#;

#[test]
fn a_program_forks_while_it_opens_and_closes_a_library() {
    let folder = tempfile::tempdir().expect("a folder");
    build_opened(folder.path());
    let source = folder.path().join("forks.c");
    std::fs::write(&source, FORKS_MEANWHILE).expect("a file");
    let forks = folder.path().join("forks");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-Wall", "-Wextra", "-pthread", "-o"]);
    compile.arg(&forks).arg(source).arg("-ldl");
    assert!(compile.status().expect("a compiler").success());
    // It crashed, or stood still.
    for (library, traced, turns) in [
        ("static.so", false, "300"),
        ("static.so", true, "300"),
        ("shared.so", true, "3000"),
    ] {
        let rings = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "60"]).arg(&forks);
        command.arg(folder.path().join(library)).arg(turns);
        command.env("RTSCOPE_DIR", rings.path());
        command.env("RTSCOPE_RING_SIZE", "32K");
        command.envs(traced.then_some(("RTSCOPE_EVENTS", "app")));
        let status = command.status().expect("it runs");
        assert!(status.success(), "{library}, traced: {traced}: {status}");
    }
}

/// An event and an enumeration as they are written for LTTng-UST.
const PROVIDER: &str = r#"
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER app
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"
#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_ENUM(app, light, \
    LTTNG_UST_TP_ENUM_VALUES(lttng_ust_field_enum_value("red", 0)))
LTTNG_UST_TRACEPOINT_EVENT(app, opened, LTTNG_UST_TP_ARGS(unsigned, turn), \
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, turn, turn) \
                        lttng_ust_field_enum(app, light, int, light, 0)))
#endif
#include <lttng/tracepoint-event.h>
"#;

#[test]
fn a_provider_for_lttng_that_is_opened_and_closed_is_described_once() {
    let folder = tempfile::tempdir().expect("a folder");
    build_opened(folder.path());
    let source = "#define LTTNG_UST_TRACEPOINT_CREATE_PROBES\n\
        #define LTTNG_UST_TRACEPOINT_DEFINE\n#include \"provider.h\"\n\
        void record(unsigned turn);\nvoid record(unsigned turn)\n\
        { lttng_ust_tracepoint(app, opened, turn); }\n";
    let files_of = [("provider.h", PROVIDER), ("provider.c", source)];
    for (name, text) in files_of {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let script = "cd \"$1\" && cc -O2 -I. -I\"$0/include/rtscope/lttng\" -I\"$0/include\" \
        -fPIC -shared -o provider.so provider.c -L. -lrtscope-probe -Wl,-rpath,\"$1\"";
    let mut shell = Command::new("sh");
    let status = shell
        .args(["-c", script])
        .arg(probe)
        .arg(folder.path())
        .status();
    assert!(status.expect("a shell").success());
    let rings = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut opens = Command::new(folder.path().join("alone"));
    opens.arg(folder.path().join("provider.so"));
    let variables = [("RTSCOPE_EVENTS", "app"), ("RTSCOPE_RING_SIZE", "64K")];
    let status = opens
        .env("RTSCOPE_DIR", rings.path())
        .envs(variables)
        .status();
    assert!(status.expect("it runs").success());
    let mut found = files(rings.path());
    assert_eq!(events(&mut found[0]).len(), 300);
    assert_eq!(found[0].table().events.len(), 1);
}

/// Locks all its memory as somebody who is not root, under a limit of 8 MiB from its start on.
const LOCKS: &str = r#"
#define _GNU_SOURCE
#include <rtscope/event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int count, char **words)
{
    const struct rlimit limit = {8 << 20, 8 << 20};
    if (!getenv("LIMITED")) {
        setenv("LIMITED", "yes", 1);
        setrlimit(RLIMIT_MEMLOCK, &limit);
        if (geteuid() == 0 && setuid(65534) != 0)
            return 2;
        return execv("/proc/self/exe", words);
    }
    (void)count;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        return 1;
    RTSCOPE_EVENT(app, locked);
    return malloc(100000) == NULL;
}
"#;

#[test]
fn a_recorded_program_locks_all_its_memory_under_a_limit_of_8_mib() {
    locks_all_its_memory(&build("locks", LOCKS));
}

#[test]
fn so_does_one_whose_events_are_written_for_lttng_and_come_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let defines = "#define LTTNG_UST_TRACEPOINT_CREATE_PROBES\n\
        #define LTTNG_UST_TRACEPOINT_DEFINE\n#include \"provider.h\"\n";
    let source = LOCKS
        .replace("#include <rtscope/event.h>", defines)
        .replace(
            "RTSCOPE_EVENT(app, locked)",
            "lttng_ust_tracepoint(app, opened, 1)",
        );
    for (name, text) in [("provider.h", PROVIDER), ("locks.c", &source)] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let script = "make -s -C \"$0\" OUT=\"$1\" \"$1/librtscope-probe.a\" && cd \"$1\" && \
        cc -O2 -I. -I\"$0/include/rtscope/lttng\" -I\"$0/include\" -o locks locks.c \
        librtscope-probe.a -pthread";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", script]).arg(probe).arg(folder.path());
    assert!(shell.status().expect("a shell").success());
    locks_all_its_memory(&folder.path().join("locks"));
}

fn locks_all_its_memory(program: &Path) {
    let is_root = rustix::process::geteuid().is_root();
    let check = |lines: &[&str]| {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let nobody = is_root.then_some(65534);
        std::os::unix::fs::chown(folder.path(), nobody, None).expect("another's folder");
        let owner = nobody.unwrap_or(rustix::process::geteuid().as_raw());
        let directory = ring::Directory::open(folder.path(), owner).expect("a directory");
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        directory.announce(&lines).expect("a session");
        let mut command = Command::new(program);
        let status = command.env("RTSCOPE_DIR", folder.path()).status();
        assert!(status.expect("it runs").success(), "{lines:?}");
        // Root's own, before it is another, was nobody's to be recorded.
        let names = directory.names().expect("names");
        let mut recorded = 0;
        for name in &names {
            let mut file = directory.rings(name).expect("rings").expect("complete");
            recorded += events(&mut file).len();
        }
        assert_eq!(recorded, 1, "{lines:?}");
    };
    check(&["!ring-at-most 8M", "app"]);
    check(&["app"]);
}

#[test]
fn a_program_under_the_thread_sanitizer_comes_to_its_end() {
    for compiler in ["gcc", "clang"] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let empty = folder.join("empty.c");
        std::fs::write(&empty, "int main(void) { return 0; }\n").expect("a file");
        let mut link = Command::new(compiler);
        link.args(["-fsanitize=thread", "-o"])
            .arg(folder.join("empty"));
        if !link.arg(&empty).output().is_ok_and(|d| d.status.success()) {
            testkit::skip("harmless", &format!("{compiler} has no thread sanitizer"));
            continue;
        }
        let program = Traced {
            compiler,
            flags: &["-O2", "-std=gnu11", "-fsanitize=thread"],
            source: "#include <rtscope/event.h>\n\
                     int main(void) { RTSCOPE_EVENT(app, one); return 0; }\n",
        };
        let program = build_traced(folder, &format!("threads-{compiler}"), program);
        for events in ["app", "none"] {
            // Ends what would never end.
            let mut command = Command::new("timeout");
            command
                .arg("60")
                .arg(&program)
                .env("RTSCOPE_EVENTS", events);
            let rings = tempfile::tempdir_in("/dev/shm").expect("a folder");
            let status = command.env("RTSCOPE_DIR", rings.path()).status();
            assert!(status.expect("timeout").success(), "{compiler}, {events}");
        }
    }
}
