//! Check that a program written for LTTng-UST gives the same events with the same fields under
//! LTTng and under us: a provider of every macro, and the examples that come with LTTng's headers.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use measure::looping::lttng::Daemon;
use recorded::{Scene, bare, exists, libraries, probe, run, scratch};

const EXAMPLES: &str = "/usr/share/doc/liblttng-ust-dev/examples";

/// The flags that put our header and library in LTTng's place.
fn ours() -> [String; 2] {
    let include = probe().join("include");
    let headers = format!(
        "CPPFLAGS=-I{} -I{}",
        include.join("rtscope/lttng").display(),
        include.display()
    );
    // Under the name that programs link with.
    let place = scratch().join("instead");
    std::fs::create_dir_all(&place).expect("a folder");
    let library = place.join("liblttng-ust.so");
    std::fs::remove_file(&library).ok();
    std::os::unix::fs::symlink(libraries().join("librtscope-probe.so"), library).expect("a link");
    let flags = format!(
        "LDFLAGS=-L{} -Wl,-rpath,{}",
        place.display(),
        libraries().display()
    );
    [headers, flags]
}

/// How often LTTng's first example says the same and sleeps, and how often here.
const ROUNDS: [&str; 2] = ["i < 100000", "i < 1000"];

/// Copies `source` to a folder of its own and makes it.
fn made(source: &Path, name: &str, flags: &[String]) -> PathBuf {
    let place = scratch().join(name);
    std::fs::create_dir_all(&place).expect("a folder");
    for entry in std::fs::read_dir(source).expect("sources") {
        let path = entry.expect("a source").path();
        let copied = std::fs::copy(&path, place.join(path.file_name().expect("a name")));
        copied.expect("a copy");
        if path.ends_with("easy-ust/sample.c") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let shorter = text.replace(ROUNDS[0], ROUNDS[1]);
            std::fs::write(place.join("sample.c"), shorter).expect("a copy");
        }
        // Debian packs what is large.
        if path.extension().is_some_and(|end| end == "gz") {
            run(Command::new("gunzip")
                .arg("-f")
                .arg(place.join(path.file_name().expect("a name"))));
        }
    }
    run(Command::new("make")
        .arg("-s")
        .arg("-C")
        .arg(&place)
        .args(flags));
    place
}

/// What LTTng records of `command`, in our words.
fn under_lttng(daemon: &Daemon, command: &mut Command) -> Vec<String> {
    let output = tempfile::tempdir().expect("a folder");
    let path = output.path().join("trace");
    let lttng = |words: &[&str]| {
        run(daemon
            .command("lttng")
            .args(["--no-sessiond", "-q"])
            .args(words));
    };
    lttng(&["create", "same", "-o", path.to_str().expect("UTF-8")]);
    lttng(&["enable-event", "-u", "-a"]);
    // Root's programs speak to every daemon of root: others may run meanwhile.
    lttng(&["add-context", "-u", "-t", "vpid"]);
    lttng(&["start"]);
    for (name, value) in daemon.command("true").get_envs() {
        command.env(name, value.expect("a value"));
    }
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let own = format!("vpid = {} ", child.id());
    assert!(child.wait().expect("it ends").success(), "{command:?}");
    lttng(&["destroy", "same"]);
    let text = run(Command::new(env!("CARGO_BIN_EXE_rtscope"))
        .arg("cat")
        .arg(&path));
    let lines = text.lines().filter(|line| line.contains(&own)).map(bare);
    // Its own notes on the libraries that are loaded.
    sorted(lines.filter(|line| !line.starts_with("lttng_ust_statedump:")))
}

/// Without the lengths of texts, which LTTng keeps as sequences and we as strings.
fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let plain = |line: String| {
        let parts = line.split(", ").map(str::to_owned).collect::<Vec<_>>();
        let is_length = |part: &str, next: Option<&String>| {
            let name = part.rsplit("{ ").next().unwrap_or(part);
            let name = name
                .strip_prefix('_')
                .and_then(|rest| rest.split_once("_length = "));
            name.is_some_and(|(name, _)| {
                next.is_some_and(|next| next.starts_with(&format!("{name} = \"")))
            })
        };
        let mut kept = String::new();
        for (place, part) in parts.iter().enumerate() {
            let drop = is_length(part, parts.get(place + 1));
            match (drop, part.rsplit_once("{ ")) {
                (true, Some((before, _))) => kept.push_str(&format!("{before}{{ ")),
                (true, None) => {}
                (false, _) => {
                    let joint = if kept.is_empty() || kept.ends_with("{ ") {
                        ""
                    } else {
                        ", "
                    };
                    kept.push_str(&format!("{joint}{part}"));
                }
            }
        }
        kept
    };
    let mut lines: Vec<String> = lines.map(plain).collect();
    lines.sort();
    lines
}

fn under_us(command: &[String]) -> Vec<String> {
    let scene = Scene::new();
    scene.record(&["--user", "*"], command);
    scene.check_babeltrace("root_lttng_source");
    sorted(scene.events().into_iter())
}

fn check(daemon: &Daemon, source: &Path, name: &str, program: &str, preload: &[&str]) {
    let run_in = |place: &Path| {
        let paths = preload.iter().map(|library| place.join(library));
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        let preload = format!("LD_PRELOAD={}", paths.join(" "));
        vec![
            "env".to_owned(),
            preload,
            place.join(program).display().to_string(),
        ]
    };
    let theirs = run_in(&made(source, &format!("{name}-lttng"), &[]));
    let expect = under_lttng(daemon, Command::new(&theirs[0]).args(&theirs[1..]));
    let found = under_us(&run_in(&made(source, &format!("{name}-rtscope"), &ours())));
    let place = |lines: Vec<String>, kind: &str| -> Vec<String> {
        let own = scratch()
            .join(format!("{name}-{kind}"))
            .display()
            .to_string();
        lines
            .into_iter()
            .map(|line| line.replace(&own, "."))
            .collect()
    };
    let (expect, found) = (place(expect, "lttng"), place(found, "rtscope"));
    assert!(!expect.is_empty(), "{name}: LTTng recorded nothing");
    assert_eq!(found, expect, "{name}");
}

#[test]
fn the_same_source_gives_the_same_events_under_lttng_and_under_us() {
    let _alone = testkit::privileged();
    if !exists("lttng-sessiond") || !Path::new(EXAMPLES).exists() {
        testkit::skip("root_lttng_source", "LTTng-UST is not installed");
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::start(home.path()).expect("LTTng's daemon");
    let every = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lttng_source");
    check(&daemon, &every, "every", "every", &[]);
    let example = |name: &str| Path::new(EXAMPLES).join(name);
    check(&daemon, &example("easy-ust"), "easy-ust", "sample", &[]);
    check(
        &daemon,
        &example("demo-tracef"),
        "demo-tracef",
        "demo-tracef",
        &[],
    );
    check(
        &daemon,
        &example("demo-tracelog"),
        "demo-tracelog",
        "demo-tracelog",
        &[],
    );
    let providers = [
        "lttng-ust-provider-ust-tests-demo.so",
        "lttng-ust-provider-ust-tests-demo3.so",
    ];
    check(&daemon, &example("demo"), "demo", "demo", &providers);
}
