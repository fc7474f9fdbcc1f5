//! Probes in programs: functions with their arguments and results, markers, and nothing left
//! behind. Needs root.

mod recorded;

use std::path::Path;
use std::process::Command;

use recorded::{compile, run};

const RTSCOPE: &str = env!("CARGO_BIN_EXE_rtscope");

/// Calls `step` three times and passes a marker, written as SystemTap's `sdt.h` writes one.
const PROGRAM: &str = r#"
struct box { long first; int second; };
__attribute__((noinline)) int step(int n, const char *name, struct box *box)
{
    __asm__ volatile("" : : "r"(name), "r"(box) : "memory");
    return n * 2;
}
static void marker(int count)
{
    __asm__ volatile(
        "990: nop\n"
        ".pushsection .note.stapsdt,\"\",\"note\"\n"
        ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"
        "991: .asciz \"stapsdt\"\n992: .balign 4\n"
        "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n"
        ".asciz \"robot\"\n.asciz \"tick\"\n.asciz \"-4@%[count]\"\n"
        "994: .balign 4\n.popsection\n"
        ".ifndef _.stapsdt.base\n"
        ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
        ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n.endif\n"
        : : [count] "r"(count));
}
int main(void)
{
    struct box box = {1, 0};
    const char *names[] = {"arm", "", 0};
    for (int i = 1; i <= 3; i++) {
        box.second = 100 + i;
        if (step(i, names[i - 1], &box) != 2 * i)
            return 1;
        marker(7 * i);
    }
    return 0;
}
"#;

/// The events of the kernel in this program.
fn dynamic_events(program: &Path) -> String {
    let text = std::fs::read_to_string("/sys/kernel/tracing/dynamic_events");
    let text = text.unwrap_or_default();
    let file = program.to_str().expect("UTF-8");
    let in_file = text.lines().filter(|line| line.contains(file));
    in_file.collect()
}

fn record(words: &[String], trace: &Path, program: &Path) -> (bool, String) {
    let mut command = Command::new(RTSCOPE);
    command.arg("record").args(words).arg("-o").arg(trace);
    let output = command.arg("--").arg(program).output();
    let output = output.expect("rtscope starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

#[test]
fn functions_and_markers_are_recorded_with_their_values_and_nothing_stays() {
    let _alone = testkit::privileged();
    if !Path::new("/sys/kernel/tracing/uprobe_events").exists() {
        return testkit::skip("functions_and_markers", "this kernel has no uprobe_events");
    }
    let program = compile("cc", "probed", PROGRAM, &["-O1"]);
    let file = program.to_str().expect("UTF-8");
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let words = [
        "--uprobe",
        &format!("step={file}:step n=arg1:int name=arg2:string second=*(arg3+8):s32"),
        "--uretprobe",
        &format!("stepped={file}:step result=ret:int"),
        "--usdt",
        &format!("{file}:robot:tick"),
        "--filter",
        "stepped: result > 2",
    ];
    let (is_done, said) = record(&words.map(str::to_owned), &trace, &program);
    assert!(is_done, "{said}");
    assert_eq!(dynamic_events(&program), "", "nothing stays");
    let text = run(Command::new(RTSCOPE).arg("cat").arg(&trace));
    let of = |name: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| line.contains(&format!(" {name}: ")));
        lines
            .map(|line| line.rsplit_once("ip = ").map_or(line, |(_, rest)| rest))
            .map(|rest| {
                rest.split_once(", ")
                    .map_or("", |(_, rest)| rest)
                    .to_owned()
            })
            .collect()
    };
    let steps: Vec<String> = (1..=3)
        .zip(["arm", "", "(fault)"])
        .map(|(i, name)| format!("n = {i}, name = \"{name}\", second = {} }}", 100 + i))
        .collect();
    assert_eq!(of("step"), steps, "{text}");
    let ticks: Vec<String> = (1..=3).map(|i| format!("arg1 = {} }}", 7 * i)).collect();
    assert_eq!(of("robot_tick"), ticks, "{text}");
    assert_eq!(of("stepped").len(), 2, "filtered in the kernel: {text}");
    assert!(of("stepped")[0].ends_with("result = 4 }"), "{text}");
}

#[test]
fn a_process_is_probed_in_the_file_that_it_runs_though_another_one_took_its_place() {
    let _alone = testkit::privileged();
    if !Path::new("/sys/kernel/tracing/uprobe_events").exists() {
        return testkit::skip("a_process_is_probed", "this kernel has no uprobe_events");
    }
    let source = "__attribute__((noinline)) int step(int n) { __asm__ volatile(\"\"); return n; }\n\
                  int usleep(unsigned);\n\
                  int main(void) { for (;;) { step(5); usleep(1000); } }\n";
    let program = compile("cc", "replaced", source, &["-O1"]);
    let mut process = Command::new(&program).spawn().expect("it runs");
    std::fs::remove_file(&program).expect("removed");
    std::fs::copy("/bin/true", &program).expect("replaced");
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let probe = format!("step=pid:{}:step n=arg1:int", process.id());
    let words = ["--uprobe", &probe, "--duration", "100ms", "-o"];
    let mut command = Command::new(RTSCOPE);
    let output = command.arg("record").args(words).arg(&trace).output();
    let output = output.expect("rtscope starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    process.kill().and_then(|()| process.wait()).expect("ended");
    assert!(output.status.success(), "{said}");
    let text = run(Command::new(RTSCOPE).arg("cat").arg(&trace));
    assert!(
        text.contains(" step: ") && text.contains("n = 5"),
        "{said}{text}"
    );
}

#[test]
fn a_probe_that_cannot_be_is_refused_before_anything_is_recorded() {
    let _alone = testkit::privileged();
    let program = compile("cc", "refused", PROGRAM, &["-O1"]);
    let file = program.to_str().expect("UTF-8");
    let stripped = program.with_file_name("stripped");
    run(Command::new("strip").arg("-o").arg(&stripped).arg(&program));
    let stripped = stripped.to_str().expect("UTF-8");
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let check = |flag: &str, probe: String, expect: &[&str]| {
        let (is_done, said) = record(&[flag.to_owned(), probe.clone()], &trace, &program);
        assert!(!is_done, "{probe}: {said}");
        for part in expect.iter().chain(&["found:", "fix:"]) {
            assert!(said.contains(part), "{probe}: {said}");
        }
        assert!(
            !trace.exists() && dynamic_events(&program).is_empty(),
            "{probe}"
        );
    };
    check(
        "--uprobe",
        format!("{file}:stpe"),
        &["no function stpe", "did you mean step"],
    );
    check("--uprobe", format!("{stripped}:step"), &["stripped"]);
    check(
        "--uprobe",
        format!("{file}:step n=arg1:nit"),
        &["at column", "did you mean int"],
    );
    check("--uprobe", "/no/such:f".to_owned(), &["no such program"]);
    check("--uprobe", "/bin/sh/..:f".to_owned(), &["no such program"]);
    check(
        "--uprobe",
        "libc.so.6:strlen".to_owned(),
        &["strlen", "IFUNC"],
    );
    check(
        "--usdt",
        format!("{file}:robot:tikc"),
        &["no marker robot:tikc", "robot:tick"],
    );
    check(
        "--usdt",
        format!("{file}:robot:tick x=arg2"),
        &["column", "the marker has 1"],
    );
    check("--usdt", "pid:0:a:b".to_owned(), &["process 0"]);
    check(
        "--uprobe",
        format!("sched_switch={file}:step"),
        &["two events of one name"],
    );
    check("--uprobe", format!("{file}:0xffffffff"), &["no such place"]);
    check(
        "--uprobe",
        format!("{file}:0x1"),
        &["there is no code at 0x1"],
    );
    check(
        "--uprobe",
        format!("{file}:step+1"),
        &["no instruction begins at", "one begins 1 before it"],
    );
    if !Path::new("/sys/kernel/tracing/kprobe_events").exists() {
        check("--probe", "vfs_read".to_owned(), &["CONFIG_KPROBE_EVENTS"]);
    }
}
