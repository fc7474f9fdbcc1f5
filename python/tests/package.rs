//! The Python package: its claims, its examples, its wheel, its types.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use event::{Cpu, Instant};
use face::{Given, Writer};
use testkit::write_sample;

/// What the tests of the wheel install, each pinned.
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// That of the other tests, which have built most of what the library needs.
const PROFILE: &str = "tested";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where cargo builds.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Runs a command to its end; its standard output.
fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{out}\n{errors}",
        output.status
    );
    out
}

/// A folder with the traces that tests and examples read.
struct Bench {
    dir: tempfile::TempDir,
}

/// An interpreter that has the package.
struct Python {
    program: PathBuf,
    /// Where the package lies, when it is not installed.
    path: Option<PathBuf>,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        write_sample(&dir.path().join("sample")).unwrap();
        write_switches(&dir.path().join("switches"));
        Bench { dir }
    }

    /// The package beside the library that cargo builds, without pip.
    fn package(&self) -> Python {
        let mut build = Command::new(env!("CARGO"));
        output(
            build
                .args(["build", "--package", "python", "--profile", PROFILE])
                .current_dir(repository()),
        );
        let path = self.dir.path().join("path");
        let package = path.join("rtscope");
        fs::create_dir_all(&package).unwrap();
        for name in ["__init__.py", "__init__.pyi", "py.typed"] {
            fs::copy(
                repository().join("python/rtscope").join(name),
                package.join(name),
            )
            .unwrap();
        }
        let library = target().join(PROFILE).join("lib_native.so");
        fs::copy(library, package.join("_native.abi3.so")).unwrap();
        Python {
            program: "python3".into(),
            path: Some(path),
        }
    }

    fn run(&self, python: &Python, script: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(&python.program);
        // Losses of the sample are told as warnings; the outputs count them.
        command
            .args(["-W", "ignore::UserWarning"])
            .arg(repository().join(script));
        command.args(arguments).current_dir(self.dir.path());
        command.env("RTSCOPE_SAMPLE", self.dir.path().join("sample"));
        match &python.path {
            Some(path) => command.env("PYTHONPATH", path),
            None => command.env_remove("PYTHONPATH"),
        };
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        output(&mut command)
    }

    fn examples(&self, python: &Python) {
        let check = |name: &str, arguments: &[&str], expect: &str| {
            let script = format!("examples/python/{name}.py");
            assert_eq!(self.run(python, &script, arguments), expect, "{name}");
        };
        let counts =
            "     100  app:request_begin\n     100  app:sizes\n     100  app:request_end\n";
        check(
            "event_counts",
            &["sample"],
            &format!("{counts}       7  lost\n"),
        );
        let latency = "pairs 100, least 10000 ns, middle 60000 ns, greatest 109000 ns, \
             7 events lost\n";
        let pair = ["sample", "app:request_begin", "app:request_end", "id"];
        check("latency", &pair, latency);
        let count = |name: &str| format!("[\"{name}\", {{\"class\": \"number\", \"value\": 100}}]");
        let names = ["app:request_begin", "app:sizes", "app:request_end"].map(count);
        let lami = format!(
            "{{\"results\": [{{\"class\": \"events\", \"data\": [{}]}}]}}\n",
            names.join(", ")
        );
        check("lami_report", &["sample"], &lami);
        let top = "       7.000 ms  hog (7)\n       3.000 ms  jackd (5)\n";
        check("top_cpu", &["switches"], top);
        let csv = "time_ns,cpu,event,id,status\n\
             1000010000,0,app:request_end,0,-1\n1010020000,0,app:request_end,10,-1\n";
        check(
            "to_csv",
            &["sample", "status < 0 && id < 20", "id", "status"],
            csv,
        );
    }
}

/// `jackd` runs for 3 ms, `hog` for 7 ms, in turns with the idle task.
fn write_switches(path: &Path) {
    let mut writer = Writer::create(path).unwrap();
    let stream = writer.stream("sched").unwrap();
    let class = writer.class(stream, "sched_switch").unwrap();
    writer.field(class, "prev_comm", "string").unwrap();
    writer.field(class, "prev_tid", "i32").unwrap();
    let switches = [
        (0, "swapper", 0),
        (3, "jackd", 5),
        (4, "swapper", 0),
        (11, "hog", 7),
    ];
    for (time_ms, comm, tid) in switches {
        writer.set(class, 0, Given::Text(comm.as_bytes())).unwrap();
        writer.set(class, 1, Given::Signed(tid)).unwrap();
        let time = Instant::from_ns(time_ms * 1_000_000);
        writer.event(class, Cpu(0), time).unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn the_package_keeps_its_claims_and_its_examples_print_what_they_should() {
    let bench = Bench::new();
    let package = bench.package();
    bench.run(&package, "python/tests/test_rtscope.py", &[]);
    bench.examples(&package);
}

/// An environment with what the tests of the wheel need; none, and why, when it cannot be had.
fn environment() -> Result<PathBuf, String> {
    let dir = target().join("python-environment");
    let stamp = dir.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == REQUIREMENTS) {
        return Ok(dir);
    }
    let step = |command: &mut Command| {
        let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or_default().to_owned();
        output.status.success().then_some(()).ok_or(last)
    };
    step(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&dir),
    )?;
    let mut pip = Command::new(dir.join("bin/pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries=1",
    ]);
    pip.args(["--timeout=20", "--requirement"]);
    step(pip.arg(repository().join("python/tests/requirements.txt")))?;
    fs::write(stamp, REQUIREMENTS).map_err(|error| error.to_string())?;
    Ok(dir)
}

#[test]
fn the_wheel_installs_and_other_libraries_take_its_tables() {
    let environment = match environment() {
        Ok(environment) => environment,
        Err(why) => return testkit::skip("the Python wheel", &format!("pip: {why}")),
    };
    let bench = Bench::new();
    let bin = environment.join("bin");
    let mut maturin = Command::new(bin.join("maturin"));
    maturin
        .args([
            "build",
            "--quiet",
            "--auditwheel=skip",
            "--profile",
            PROFILE,
        ])
        .arg("--out")
        .arg(bench.dir.path());
    maturin
        .arg("--manifest-path")
        .arg(repository().join("python/Cargo.toml"));
    output(&mut maturin);
    let wheels = fs::read_dir(bench.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let wheels: Vec<PathBuf> = wheels
        .filter(|p| p.extension() == Some("whl".as_ref()))
        .collect();
    let [wheel] = wheels.as_slice() else {
        panic!("one wheel, not {wheels:?}");
    };
    assert!(wheel.to_string_lossy().contains("-cp39-abi3-"), "{wheel:?}");
    let mut pip = Command::new(bin.join("pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
    ]);
    output(pip.arg("--force-reinstall").arg(wheel));

    let python = Python {
        program: bin.join("python"),
        path: None,
    };
    bench.run(&python, "python/tests/test_rtscope.py", &[]);
    bench.examples(&python);
    let table = "ann: 34 requests, mean load 0.495\nbob: 33 requests, mean load 0.490\n\
         eve: 33 requests, mean load 0.500\n";
    assert_eq!(
        bench.run(&python, "examples/python/table.py", &["sample"]),
        table
    );
    let mut mypy = Command::new(bin.join("mypy"));
    mypy.args(["--strict", "--no-incremental", "--cache-dir=/dev/null"]);
    for name in [
        "event_counts",
        "lami_report",
        "latency",
        "top_cpu",
        "to_csv",
        "write_trace",
    ] {
        mypy.arg(repository().join(format!("examples/python/{name}.py")));
    }
    output(mypy.current_dir(bench.dir.path()));
}
