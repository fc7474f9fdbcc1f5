//! Under cyclictest's name the same threads as cyclictest's: each command line is given to both.

use std::process::Command;

/// Command lines whose threads were asked for in another way each.
const LINES: &[&str] = &[
    "",
    "-t2",
    "-t 2",
    "-t 0",
    "-t",
    "-t5",
    "-t2 -p80",
    "-t3 -p2",
    "-t -p 80",
    "-t2 -p80 --priospread",
    "-t3 -p2 --priospread",
    "-t2 -p80 -i 2000",
    "-t2 -p80 -i250 -d 0",
    "-t2 -p80 --interval=300 --distance=100",
    "-S",
    "-S -p80",
    "-S -p 95 -m",
    "-S -d 200",
    "-S -i 200 -d 0 --priority=90",
    "--smp --mlockall",
    "-a -t2 -p 80",
    "-a all -t2 -p 80",
    "-a !0 -t 2 -p 80",
    "-a 1 -t2",
    "-a 0,1 -t3 -p10",
    "-a 0-1 -t -p10",
    "-t2 --policy=rr",
    "-t2 -p80 --policy=rr",
    "-t2 -p80 --policy=other",
    "-p0 --policy=fifo",
    "-t2 --policy=batch",
    "-t2 --policy=idle",
    "-t2 --policy=normal",
    "-N -t2 -p1",
    "-c 1 -t2",
    "-p80 -t2 -A 100",
    "-t2 --secaligned",
    "-t2 --default-system",
    "-t2 --latency=100",
    "-t2 --mainaffinity=0",
    "-t2 -u -M",
];

/// `T:` lines without what was measured: number, priority, interval and how many samples the first
/// thread took, which ends the run.
fn threads(program: &mut Command, line: &str) -> Vec<String> {
    program
        .args(["-q", "-l", "3"])
        .args(line.split_whitespace());
    let output = program.output().expect("it starts");
    assert!(output.status.success(), "{line}: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let layout = |line: &str| -> String {
        let (number, rest) = line.split_once('(').expect("a thread's id");
        let (_, rest) = rest.split_once(") ").expect("its end");
        let (rest, _) = rest.split_once("C:").expect("its samples");
        format!("{number}{rest}")
    };
    text.lines()
        .filter(|line| line.starts_with("T:"))
        .map(layout)
        .collect()
}

#[test]
fn the_same_command_line_starts_the_same_threads() {
    let _alone = testkit::privileged();
    if !Command::new("cyclictest")
        .arg("--help")
        .output()
        .is_ok_and(|ran| ran.status.success())
    {
        return testkit::skip("threads beside cyclictest's", "there is no cyclictest");
    }
    if !testkit::two_cpus("threads beside cyclictest's") {
        return;
    }
    let mut unlike = Vec::new();
    for line in testkit::core_of(LINES, 20) {
        let theirs = threads(&mut Command::new("cyclictest"), line);
        let mut ours = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        let ours = threads(ours.args(["measure", "cyclic", "--cyclictest"]), line);
        assert!(!theirs.is_empty(), "{line}");
        if ours != theirs {
            unlike.push(format!("{line}:\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
}
