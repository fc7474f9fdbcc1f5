//! Under cyclictest's name the same as cyclictest, beyond what options mean: files, CPUs, users,
//! signals.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

mod cyclictest;

use cyclictest::{ours, shape};
use tempfile::NamedTempFile;

const SCENES: &str = include_str!("cyclictest/scenes.txt");
/// Not all of them where not all tests are waited for.
const CORE: usize = 12;
/// Nothing takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is compared.
#[derive(Debug, PartialEq)]
struct Ran {
    code: Option<i32>,
    /// Policy, priority and CPUs of each measuring thread, and of the main one.
    threads: Vec<String>,
    printed: BTreeSet<String>,
    said: Vec<String>,
    files: Vec<(String, BTreeSet<String>)>,
}

/// The program's words in the place of `CT`, and the scene's folder.
fn command(scene: &str, program: &Command, folder: &Path) -> Command {
    let mut words: Vec<String> = Vec::new();
    for word in scene.split_whitespace() {
        match word {
            "CT" => {
                let own = std::iter::once(program.get_program()).chain(program.get_args());
                words.extend(own.map(|word| word.to_string_lossy().into_owned()));
            }
            word => words.push(word.replace("{}", &folder.to_string_lossy())),
        }
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The threads of a process that measures; none of its child, where it is timeout(1).
fn threads(pid: u32) -> Vec<String> {
    let folders = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = folders.into_iter().flatten().flatten();
    let thread = |task: std::fs::DirEntry| -> Option<String> {
        let read = |name| std::fs::read_to_string(task.path().join(name)).ok();
        let is_main = task.file_name().to_string_lossy() == pid.to_string();
        let role = match (is_main, &*read("comm")?) {
            (true, "timeout\n") => return None,
            (true, _) => "main",
            (false, "cyclictest\n") => "measures",
            (false, _) => return None,
        };
        let stat = read("stat")?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let status = read("status")?;
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(format!(
            "{role}: policy {} prio {} on {}",
            fields[38],
            fields[37],
            allowed.trim()
        ))
    };
    let mut threads: Vec<String> = tasks.filter_map(thread).collect();
    threads.sort();
    // Nothing of who has not begun to measure.
    if threads.len() < 2 {
        threads.clear();
    }
    threads
}

/// What its threads were at the last look with the most of them.
fn watched(child: &mut Child) -> Vec<String> {
    let begin = Instant::now();
    let mut most = Vec::new();
    while child.try_wait().expect("a child").is_none() {
        let found = threads(child.id());
        if found.len() >= most.len() {
            most = found;
        }
        if begin.elapsed() > PATIENCE {
            child.kill().ok();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    most
}

/// The lines of a text by their shape. Numbers of cycles depend on what was measured.
fn lines(text: &str) -> BTreeSet<String> {
    let line = |line: &str| match line.starts_with("# Thread ") {
        true => "# Thread".to_owned(),
        false => shape(line.split("loadavg").next().unwrap_or_default()),
    };
    let lines: BTreeSet<String> = text.lines().map(line).collect();
    let is_usage = text.contains("Usage:") || text.contains("options, read and answered");
    if is_usage { BTreeSet::new() } else { lines }
}

/// Keys of JSON in their order, without the buckets; the lines of everything else.
fn file(name: &str, text: &str) -> BTreeSet<String> {
    if !name.starts_with("json") {
        return lines(text);
    }
    let keys = text
        .lines()
        .filter_map(|line| line.trim().split_once("\": "));
    let mut keys: Vec<&str> = keys.map(|(key, _)| key.trim_start_matches('"')).collect();
    keys.dedup();
    let is_bucket = |key: &&str| key.starts_with(|letter: char| letter.is_ascii_digit());
    let buckets = keys.iter().filter(|key| is_bucket(key)).count();
    keys.retain(|key| !is_bucket(key));
    let has_buckets = buckets > text.matches("\"cycles\"").count();
    BTreeSet::from([format!("{} {has_buckets}", keys.join(" "))])
}

fn run(scene: &str, program: &Command) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = command(scene, program, folder.path());
    // Into files: nobody empties a pipe while the threads are looked at.
    let [stdout, stderr] = [(); 2].map(|()| tempfile::NamedTempFile::new().expect("a file"));
    let to = |file: &NamedTempFile| Stdio::from(file.reopen().expect("a file"));
    command.stdout(to(&stdout)).stderr(to(&stderr));
    let mut child = command.spawn().expect("it starts");
    let threads = watched(&mut child);
    let code = child.wait().expect("it ended").code();
    let text = |file: &NamedTempFile| {
        let bytes = std::fs::read(file.path()).expect("there");
        let path = folder.path().to_string_lossy().into_owned();
        String::from_utf8_lossy(&bytes).replace(&path, "{}")
    };
    let entries = std::fs::read_dir(folder.path())
        .expect("it is there")
        .flatten();
    let mut files: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(entry.path()).expect("text");
            (name.clone(), file(&name, &text))
        })
        .collect();
    files.sort();
    let said = text(&stderr);
    Ran {
        code,
        threads,
        printed: lines(&text(&stdout)),
        said: said.lines().map(shape).collect(),
        files,
    }
}

#[test]
fn files_cpus_users_and_signals_mean_what_they_do_to_cyclictest() {
    let _alone = testkit::privileged();
    let _clean = cyclictest::CleanUp;
    let name = "scenes beside cyclictest's";
    if !cyclictest::is_there(name) || !testkit::two_cpus(name) {
        return;
    }
    let scenes = SCENES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let scenes: Vec<&str> = scenes.collect();
    let mut unlike = Vec::new();
    for scene in testkit::core_of(&scenes, CORE) {
        let theirs = run(scene, &Command::new("cyclictest"));
        let mut ours = run(scene, &ours());
        if theirs.code != Some(0) {
            // It says that idle states are limited before it sees that it cannot go on.
            ours.printed.extend(
                theirs
                    .printed
                    .iter()
                    .filter(|line| line.contains("latency"))
                    .cloned(),
            );
        }
        if ours != theirs {
            unlike.push(format!("{scene}:\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
}

#[test]
fn a_length_has_as_many_samples_as_cyclictest_takes_in_it() {
    let _alone = testkit::privileged();
    let _clean = cyclictest::CleanUp;
    if !cyclictest::is_there("lengths beside cyclictest's") {
        return;
    }
    // The first is due after an interval, the last is the one that sees the length over.
    let counts = |mut program: Command, words: &str| -> Vec<String> {
        let output = program.args(words.split_whitespace()).output();
        let output = output.expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let counts = text.lines().filter_map(|line| line.split("C:").nth(1));
        let count = |rest: &str| rest.split_whitespace().next().map(str::to_owned);
        counts.filter_map(count).collect()
    };
    let check = |words: &str, expect: &[&str]| {
        for program in [Command::new("cyclictest"), ours()] {
            let who = format!("{program:?}");
            assert_eq!(counts(program, words), expect, "{who} {words}");
        }
    };
    check("-q -i 400000 -D 1", &["3"]);
    check("-q -i 1300000 -D 1", &["1"]);
    check("-q -i 300000 -l 3 -t2 -d 300000", &["3", "1"]);
    check("-q -i 100000 -D -1", &["1"]);
}

#[test]
fn whose_reader_has_gone_dies_of_it_and_who_says_all_at_the_end_does_not() {
    let _alone = testkit::privileged();
    let _clean = cyclictest::CleanUp;
    if !cyclictest::is_there("readers beside cyclictest's") {
        return;
    }
    // Of the first line, as `| head -1`; with `pipefail` a shell ends with 141 then.
    let ended = |mut program: Command, words: &str| {
        program.args(words.split_whitespace());
        let mut child = program.stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut line = String::new();
        let read = std::io::BufReader::new(stdout).read_line(&mut line);
        assert!(read.is_ok_and(|length| length > 0));
        child.wait().expect("it ends")
    };
    let check = |words: &str, signal: Option<i32>| {
        for program in [Command::new("cyclictest"), ours()] {
            assert_eq!(ended(program, words).signal(), signal, "{words}");
        }
    };
    check("-l 3000", Some(libc::SIGPIPE));
    check("-v -l 3000", Some(libc::SIGPIPE));
    check("-u -q -l 300", Some(libc::SIGPIPE));
    check("-q -l 300", None);
    check("-q -h 100 -l 300", None);
}

#[test]
fn a_file_that_has_no_place_ends_it_before_it_measures() {
    let _alone = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("none/file");
    let path = path.to_string_lossy();
    let check = |option: &str, code: i32, expect: &str| {
        let mut ours = ours();
        ours.args(["-q", "-h", "5", "-D", "1h", option, &path]);
        let output = ours.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(code), expect));
        assert!(output.stdout.is_empty());
    };
    // cyclictest measures, loses it, and ends with 0.
    let expect = "opening histogram file:: No such file or directory\n";
    check("--histfile", 1, expect);
    // It measures first, too; the code is the error's number.
    let expect = format!("Failed to open '{path}'\n: No such file or directory\n");
    check("--json", 2, &expect);
}
