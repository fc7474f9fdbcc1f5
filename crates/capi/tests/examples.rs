//! The examples in C and C++ are built and run; what they print is what they should.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::write_sample;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command to its end; its standard output.
fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{errors}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with the library under the name that programs look for, and a trace.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let built = std::env::current_exe()
            .unwrap()
            .with_file_name("librtscope.so");
        for name in ["librtscope.so", "librtscope.so.1"] {
            std::os::unix::fs::symlink(&built, dir.path().join(name)).unwrap();
        }
        write_sample(&dir.path().join("sample")).unwrap();
        Bench { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles `examples/SOURCE`.
    fn program(&self, source: &str) -> PathBuf {
        let (compiler, standard) = match source.ends_with(".cpp") {
            true => ("c++", "-std=c++17"),
            false => ("cc", "-std=c11"),
        };
        let program = self.path(&source.replace(['/', '.'], "_"));
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-o"]);
        command
            .arg(&program)
            .arg(repository().join("examples").join(source));
        command
            .arg("-I")
            .arg(repository().join("crates/capi/include"));
        command.arg("-L").arg(self.dir.path()).arg("-lrtscope");
        output(&mut command);
        program
    }

    /// Runs a program with the library; `memcheck` looks at each access and at what is left.
    fn run(&self, program: &Path, arguments: &[&str], memcheck: bool) -> String {
        let mut command = match memcheck {
            true => {
                let mut command = Command::new("valgrind");
                command.args(["-q", "--error-exitcode=99", "--leak-check=full"]);
                command.arg(program);
                command
            }
            false => Command::new(program),
        };
        command.env("LD_LIBRARY_PATH", self.dir.path());
        output(command.args(arguments).current_dir(self.dir.path()))
    }
}

const COUNTS: &str = "     100  app:request_begin
     100  app:request_end
     100  app:sizes
       7  lost
";

const SUM: &str = "status (s): 100 of 300 events have it, sum -10, 7 lost\n";

const LATENCY: &str = "pairs 100, least 10000 ns, middle 60000 ns, greatest 109000 ns, \
     7 events lost\n";

const ROUND_TRIP: &str = r#"0 app:step
  level={"value":0,"label":"LOW"} load=0.0 text="" _deltas_length=2 deltas=[0,0]
1000 app:step
  level={"value":6,"label":"LOW"} load=0.25 text="*" _deltas_length=2 deltas=[-1,1]
2000 app:step
  level={"value":12,"label":"HIGH"} load=0.5 text="**" _deltas_length=2 deltas=[-2,2]
lost 5
no event of this trace has a field 'delta'
  fix:  did you mean 'deltas'?
"#;

#[test]
fn the_examples_print_what_they_should() {
    let bench = Bench::new();
    let check = |program: &Path, arguments: &[&str], expect: &str| {
        assert_eq!(bench.run(program, arguments, false), expect, "{program:?}");
    };
    let counts = bench.program("c/event_counts.c");
    check(&counts, &["sample"], COUNTS);
    let filtered = "      10  app:request_end\n       7  lost\n";
    check(&counts, &["sample", "status < 0"], filtered);
    check(&bench.program("c/columns.c"), &["sample", "status"], SUM);
    let latency = ["sample", "app:request_begin", "app:request_end", "id"];
    check(&bench.program("cpp/latency.cpp"), &latency, LATENCY);
    let round_trip = bench.program("cpp/round_trip.cpp");
    check(&round_trip, &["there"], ROUND_TRIP);
    check(&round_trip, &["again", "ctf2"], ROUND_TRIP);
    check(&bench.program("c/write_trace.c"), &["new"], "");
    check(&counts, &["new"], "      10  app:request\n       0  lost\n");
}

/// A hog of a higher priority runs for 1 ms after a wake-up.
const LATE: &str = "\
# tracer: nop
  hog-700 [001] d..2. 10.011010: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=hog next_pid=700 next_prio=19
  hog-700 [001] d.h3. 10.020000: sched_waking: comm=ctrl pid=600 prio=49 target_cpu=001
  hog-700 [001] d..2. 10.021000: sched_switch: prev_comm=hog prev_pid=700 prev_prio=19 \
prev_state=S ==> next_comm=ctrl next_pid=600 next_prio=49
  ctrl-600 [001] d..2. 10.021100: sched_switch: prev_comm=ctrl prev_pid=600 prev_prio=49 \
prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

#[test]
fn c_and_cpp_have_the_same_diagnosis_with_its_culprit_and_advice() {
    let bench = Bench::new();
    std::fs::write(bench.path("late.txt"), LATE).unwrap();
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    let asked = ["late.txt", "ctrl"];
    let in_c = bench.run(&bench.program("c/why_late.c"), &asked, has_valgrind);
    for part in [
        "\"schema\":\"rtscope.diagnosis\"",
        "hog (tid 700, rt 80) ran ahead of it for 1.000 ms",
        "chrt -f -p 49 700",
    ] {
        assert!(in_c.contains(part), "{part}: {in_c}");
    }
    let in_cpp = bench.run(&bench.program("cpp/why_late.cpp"), &asked, has_valgrind);
    assert_eq!(in_c, in_cpp);
}

#[test]
fn the_faces_touch_no_memory_that_is_not_theirs_and_leave_none() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return testkit::skip("faces under valgrind", "valgrind is not installed");
    }
    let bench = Bench::new();
    let sum = bench.run(&bench.program("c/columns.c"), &["sample", "status"], true);
    assert_eq!(sum, SUM);
    let round_trip = bench.program("cpp/round_trip.cpp");
    assert_eq!(bench.run(&round_trip, &["there"], true), ROUND_TRIP);
}

#[test]
fn the_header_is_c99_and_the_wrapper_is_cpp17_without_a_warning() {
    let check = |compiler: &str, arguments: &[&str], header: &str| {
        let mut command = Command::new(compiler);
        command
            .args(arguments)
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        command.arg("-fsyntax-only");
        output(command.arg(repository().join("crates/capi/include").join(header)));
    };
    check("cc", &["-std=c99", "-xc"], "rtscope.h");
    check("c++", &["-std=c++17", "-xc++"], "rtscope.hpp");
}
