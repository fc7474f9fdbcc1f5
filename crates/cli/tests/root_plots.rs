//! Histograms of `measure cyclic` in the hands of gnuplot, as scripts for cyclictest's plot them.

use std::path::Path;
use std::process::{Command, Output};

/// What such scripts do: comments off, a file of two columns for each thread, one curve for each,
/// the longest latencies out of the comment below the histogram into its key.
const SCRIPT: &str = r#"
set -e
grep -v -e '^#' -e '^$' "$1" | tr ' ' '\t' > rows
grep '^# Max Latencies' "$1" | cut -d: -f2 | tr ' ' '\n' | grep . > longest
{
    echo 'set terminal svg; set output "plot.svg"; set logscale y; set yrange [0.8:*]'
    echo 'set xlabel "Latency (us)"; set ylabel "Number of latency samples"'
    column=2
    for longest in $(cat longest); do
        cut -f1,$column rows > "histogram$column"
        separator=$([ $column = 2 ] && echo plot || echo ,)
        name="thread $((column - 2)), longest $((10#$longest)) us"
        printf '%s "histogram%s" using 1:2 title "%s" with histeps' "$separator" $column "$name"
        column=$((column + 1))
    done
    echo
} > commands
gnuplot commands
"#;

fn has(program: &str) -> bool {
    Command::new(program).arg("--help").output().is_ok()
}

fn rtscope(options: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(["measure", "cyclic", "--cyclictest"]);
    let command = command.args(options).current_dir(folder);
    command.output().expect("rtscope starts")
}

/// The picture that the script makes of what was printed.
fn picture(printed: &Output, folder: &Path) -> String {
    assert!(printed.status.success(), "{printed:?}");
    std::fs::write(folder.join("printed"), &printed.stdout).expect("written");
    let script = Command::new("bash")
        .args(["-c", SCRIPT, "plot", "printed"])
        .current_dir(folder)
        .output()
        .expect("bash starts");
    assert!(script.status.success(), "{script:?}");
    let said = String::from_utf8_lossy(&script.stderr).into_owned();
    assert_eq!(said, "", "gnuplot complains of nothing");
    std::fs::read_to_string(folder.join("plot.svg")).expect("a picture")
}

#[test]
fn a_plotting_script_for_cyclictest_takes_our_histograms_without_a_change() {
    let _alone = testkit::privileged();
    if !has("gnuplot") {
        return testkit::skip(
            "histograms drawn",
            "there is no gnuplot: apt install gnuplot-nox",
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["-t2", "-a0", "-p80", "-i1000", "-l200", "-h2000", "-q"];
    let check = |printed: &Output| {
        let drawn = picture(printed, folder.path());
        for thread in ["thread 0, longest ", "thread 1, longest "] {
            assert!(drawn.contains(thread), "{drawn}");
        }
        let curves = drawn.matches("id=\"gnuplot_plot_").count();
        assert_eq!(curves, 2, "{drawn}");
    };
    check(&rtscope(&options, folder.path()));
    if !has("cyclictest") {
        return testkit::skip("the script beside cyclictest", "there is no cyclictest");
    }
    let theirs = Command::new("cyclictest").args(options).output();
    check(&theirs.expect("cyclictest starts"));
}

/// Number and sum of a column of a histogram, to the plotting program.
fn plotted(file: &std::path::Path, column: u32) -> [u64; 2] {
    let script = format!(
        "stats '{}' using {column} name 'A' nooutput; set print '-'; print A_records, A_sum",
        file.display()
    );
    let output = Command::new("gnuplot").args(["-e", &script]).output();
    let output = output.expect("gnuplot starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = text.split_whitespace().map(|word| {
        let number: f64 = word.parse().expect("a number");
        number as u64
    });
    let numbers: Vec<u64> = numbers.collect();
    numbers.try_into().expect("two numbers")
}

#[test]
fn a_plotting_program_reads_our_histograms_as_cyclictests() {
    let _alone = testkit::privileged();
    if !has("gnuplot") {
        return testkit::skip(
            "histograms read",
            "there is no gnuplot: apt install gnuplot-nox",
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("histogram");
    let path = file.to_str().expect("text");
    let options = [
        "-t1",
        "-a0",
        "-p80",
        "-l200",
        "-h1000000",
        "-q",
        "--histfile",
        path,
    ];
    let output = rtscope(&options, folder.path());
    assert!(output.status.success(), "{output:?}");
    // Nobody is late by a second: a row for each microsecond, and no sample beyond them.
    assert_eq!(plotted(&file, 1)[0], 1_000_000);
    assert_eq!(plotted(&file, 2), [1_000_000, 200]);
}
