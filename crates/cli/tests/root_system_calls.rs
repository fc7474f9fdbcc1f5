//! System calls with their contents: a program whose calls are known, recorded and read back, and
//! what strace says of the same program.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::Command;

use recorded::compile;
use serde_json::Value;

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Its first argument is a folder. The path in `cold` is in no page of its own memory until the
/// kernel reads it; `int $0x80` is how programs of 32 bits call.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static void cold(const char *folder)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/cold", folder);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    char *text = "/nowhere/cold";
    if (write(fd, text, strlen(text) + 1) < 0)
        return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    char *mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    open(mapped, O_RDONLY | O_NOFOLLOW);
}
static void other_word_size(void)
{
#ifdef __x86_64__
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT;
    char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    strcpy(low, "/nowhere/compat");
    long result = 295;
    __asm__ volatile("int $0x80" : "+a"(result) : "b"(AT_FDCWD), "c"(low), "d"(O_RDONLY), "S"(0)
                     : "memory", "r8", "r9", "r10", "r11");
#endif
}
int main(int count, char **words)
{
    char path[300], bytes[5000];
    memset(bytes, 'x', sizeof(bytes));
    snprintf(path, sizeof(path), "%s/file", count > 1 ? words[1] : "/tmp");
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    for (int i = 1; i <= 5; i++)
        if (write(fd, bytes, 1000 * i) < 0)
            return 1;
    lseek(fd, 0, SEEK_SET);
    if (read(fd, bytes, 4096) < 0)
        return 1;
    open("/no/such/file", O_RDONLY);
    int inet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(inet, (void *)&to, sizeof(to));
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/nowhere/socket"};
    connect(socket(AF_UNIX, SOCK_DGRAM, 0), (void *)&local, sizeof(local));
    struct timespec time = {0, 1500000};
    syscall(SYS_nanosleep, &time, 0);
    struct iovec parts[2] = {{"hello\n", 6}, {"you", 3}};
    if (writev(fd, parts, 2) < 0)
        return 1;
    cold(words[1]);
    other_word_size();
    return 0;
}
"#;

struct Recording {
    _folder: tempfile::TempDir,
    folder: PathBuf,
    program: PathBuf,
    calls: Vec<Value>,
    said: String,
}

fn record(name: &str, words: &[&str]) -> Recording {
    let program = compile("cc", name, PROGRAM, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    let mut command = Command::new(RTSCOPE);
    command.args(["record", "--buffer", "32M", "--events", "syscall", "-o"]);
    command.arg(path.join("trace")).args(words).arg("--");
    let output = command
        .arg(&program)
        .arg(&path)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    Recording {
        calls: calls(&path),
        _folder: folder,
        folder: path,
        program,
        said,
    }
}

/// Every system call of a recording, as JSON.
fn calls(folder: &Path) -> Vec<Value> {
    let to = folder.join("events.json");
    let mut convert = Command::new(RTSCOPE);
    convert.args(["convert", "--to", "json", "-o"]).arg(&to);
    convert.args(["--filter", "$name == \"*syscall_*\""]);
    let output = convert
        .arg(folder.join("trace"))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&to).expect("what was converted");
    let json = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(json).collect()
}

impl Recording {
    /// Events of that name.
    fn events(&self, name: &str) -> Vec<&Value> {
        self.calls
            .iter()
            .filter(|call| call["name"] == *name)
            .collect()
    }
}

/// Whether an event holds all of these.
fn holds(event: &Value, expect: &Value) -> bool {
    let fields = expect.as_object().expect("an object");
    fields
        .iter()
        .all(|(name, value)| event["fields"][name] == *value)
}

fn check(recording: &Recording, name: &str, expect: &Value) {
    let events = recording.events(name);
    assert!(
        events.iter().any(|event| holds(event, expect)),
        "no {name} with {expect} among {events:#?}"
    );
}

#[test]
fn a_recording_has_what_the_arguments_of_each_call_mean() {
    let _alone = testkit::privileged();
    let recording = record("known-calls", &[]);
    if recording.said.contains("without their contents") {
        return testkit::skip("contents of system calls", &recording.said);
    }
    let file = recording.folder.join("file");
    let file = file.to_str().expect("UTF-8");
    let check = |name, expect| check(&recording, name, &expect);
    use serde_json::json;
    check(
        "syscall_entry_openat",
        json!({"filename": file, "mode": 0o640, "flags_names": "O_RDWR|O_CREAT|O_TRUNC|O_CLOEXEC"}),
    );
    check("syscall_entry_openat", json!({"filename": "/no/such/file"}));
    check("syscall_exit_openat", json!({"ret": -2, "error": "ENOENT"}));
    for size in [1000, 2000, 3000, 4000, 5000] {
        let head = "x".repeat(32);
        check(
            "syscall_entry_write",
            json!({"count": size, "buf_head": head}),
        );
        check("syscall_exit_write", json!({"ret": size, "error": ""}));
    }
    check(
        "syscall_exit_read",
        json!({"ret": 4096, "buf_head": "x".repeat(32)}),
    );
    check("syscall_entry_lseek", json!({"whence_names": "SEEK_SET"}));
    check(
        "syscall_entry_socket",
        json!({"family_names": "AF_INET", "type_names": "SOCK_STREAM|SOCK_CLOEXEC"}),
    );
    check(
        "syscall_entry_connect",
        json!({"address": "127.0.0.1:9", "family": 2, "dport": 9, "v4addr": [127, 0, 0, 1]}),
    );
    check(
        "syscall_entry_connect",
        json!({"address": "unix:/nowhere/socket", "dport": 0}),
    );
    check("syscall_entry_nanosleep", json!({"rqtp_ns": 1_500_000}));
    check(
        "syscall_entry_writev",
        json!({"vec_head": "hello\n", "vlen": 2}),
    );
    // In no page that was there when the call began.
    check("syscall_entry_openat", json!({"filename": "/nowhere/cold"}));
    let words_of_32_bits = recording.events("compat_syscall_entry_openat");
    match words_of_32_bits.first() {
        Some(_) => check(
            "compat_syscall_entry_openat",
            json!({"filename": "/nowhere/compat"}),
        ),
        None => testkit::skip("calls by programs of 32 bits", "this kernel has none"),
    }
    assert!(recording.said.contains("left out: "), "{}", recording.said);
    check_strace(&recording);
}

/// The paths that strace shows are those that were recorded, in their order.
fn check_strace(recording: &Recording) {
    if !recorded::exists("strace") {
        return testkit::skip("strace shows the same paths", "strace is not installed");
    }
    let mut strace = Command::new("strace");
    strace
        .args(["-e", "trace=openat,execve"])
        .arg(&recording.program);
    let output = strace
        .arg(&recording.folder)
        .output()
        .expect("strace starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let quoted = |line: &str| Some(line.split('"').nth(1)?.to_owned());
    let opened = text.lines().filter(|line| line.starts_with("openat("));
    let expect: Vec<_> = opened.filter_map(quoted).collect();
    let is_opening = |call: &&Value| {
        let name = call["name"].as_str().unwrap_or_default();
        name.ends_with("syscall_entry_openat")
    };
    let entries: Vec<_> = recording.calls.iter().filter(is_opening).collect();
    let mut paths = entries
        .iter()
        .filter_map(|event| event["fields"]["filename"].as_str());
    // Others open files too meanwhile: those of the program are among all, in their order.
    for path in &expect {
        assert!(
            paths.any(|found| found == path),
            "{path} in {expect:#?} of {entries:#?}"
        );
    }
    assert!(expect.len() > 4, "{text}");
}

/// Its first argument is a folder, in which it moves known numbers of bytes.
const MOVER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>
static int in(const char *folder, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}
int main(int count, char **words)
{
    const char *folder = count > 1 ? words[1] : "/tmp";
    static char bytes[9000];
    int ends[2], from = in(folder, "from");
    if (write(from, bytes, sizeof(bytes)) < 0 || pipe(ends))
        return 1;
    lseek(from, 0, SEEK_SET);
    if (sendfile(in(folder, "sent"), from, 0, 1111) != 1111)
        return 2;
    if (splice(from, 0, ends[1], 0, 2222, 0) != 2222)
        return 3;
    if (splice(ends[0], 0, in(folder, "spliced"), 0, 2222, 0) != 2222)
        return 4;
    if (copy_file_range(from, 0, in(folder, "copied"), 0, 3333, 0) != 3333)
        return 5;
    struct iovec parts[2] = {{bytes, 400}, {bytes, 44}};
    if (pwritev2(in(folder, "put"), parts, 2, 0, 0) != 444)
        return 6;
    if (preadv(from, parts, 2, 0) != 444 || preadv2(from, parts, 1, 0, 0) != 400)
        return 7;
    return 0;
}
"#;

/// What `report iousagetop` says of the files in a folder: the bytes that were read, or written.
fn bytes_of_files(trace: &Path, folder: &Path, table: &str) -> Vec<(String, u64)> {
    let mut report = Command::new(RTSCOPE);
    report
        .args(["report", "iousagetop", "--limit", "1000", "--json"])
        .arg(trace);
    let output = report.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let tables = found["windows"][0]["tables"].as_array().expect("tables");
    let is_asked = |found: &&Value| found["table"] == "per-file-top" && found["of"] == table;
    let rows = tables.iter().filter(is_asked);
    let rows = rows.flat_map(|table| table["rows"].as_array().expect("rows"));
    let size = |row: &Value| {
        let path = Path::new(row["path"].as_str()?).strip_prefix(folder).ok()?;
        // The trace itself is there too.
        let is_its_own = path.components().count() == 1;
        let size = row["size_bytes"].as_u64().filter(|_| is_its_own)?;
        Some((path.display().to_string(), size))
    };
    let mut sizes: Vec<_> = rows.filter_map(size).collect();
    sizes.sort();
    sizes
}

#[test]
fn bytes_that_go_from_file_to_file_or_by_newer_calls_are_in_the_usage() {
    let _alone = testkit::privileged();
    let program = compile("cc", "mover", MOVER, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let mut command = Command::new(RTSCOPE);
    command.args(["record", "--buffer", "32M", "--events", "syscall", "-o"]);
    let output = command
        .arg(&trace)
        .arg("--")
        .arg(&program)
        .arg(folder.path())
        .output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
    if String::from_utf8_lossy(&output.stdout).contains("without their contents") {
        return testkit::skip(
            "bytes from file to file",
            "no contents of system calls here",
        );
    }
    let check = |table: &str, expect: &[(&str, u64)]| {
        let found = bytes_of_files(&trace, folder.path(), table);
        let expect: Vec<_> = expect
            .iter()
            .map(|(name, size)| ((*name).to_owned(), *size))
            .collect();
        assert_eq!(found, expect, "{table}");
    };
    check("read", &[("from", 1111 + 2222 + 3333 + 444 + 400)]);
    let written = [
        ("copied", 3333),
        ("from", 9000),
        ("put", 444),
        ("sent", 1111),
        ("spliced", 2222),
    ];
    check("written", &written);
}

#[test]
fn the_recorder_leaves_itself_out_unless_it_is_asked_for() {
    let _alone = testkit::privileged();
    let own = |words: &[&str]| {
        let recording = record("own-calls", words);
        if recording.said.contains("without their contents") {
            return None;
        }
        // Nobody else looks at tracefs here: its readers ask for the state of their rings.
        let opened = recording.events("syscall_entry_openat");
        let in_tracefs = |event: &&&Value| {
            let path = event["fields"]["filename"].as_str().unwrap_or_default();
            Path::new(path).ends_with("stats") && path.contains("/instances/rtscope-")
        };
        Some(opened.iter().filter(in_tracefs).count())
    };
    let (Some(without), Some(with)) = (own(&[]), own(&["--self"])) else {
        return testkit::skip(
            "the recorder's own calls",
            "no contents of system calls here",
        );
    };
    assert_eq!(without, 0);
    assert!(with > 0, "with --self they are there");
}
