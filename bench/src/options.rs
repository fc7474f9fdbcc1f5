//! The command line of the benchmarks.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: bench SUBJECT… [--small] [--json] [--rtscope PATH] [--trace DIR] [--events COUNT]
             [--rounds COUNT] [--picture FILE] [--iterations COUNT]
  calls      the watch's programs in the kernel, call by call
  watch      accounted cost of a watch, and its effect on hackbench; the trackers too
  trackers   those alone: their programs in the kernel, call by call
  workloads  a watch of a busy program: CPU, memory, files, network, MariaDB, memcached
  snapshot   from a hit to a snapshot on disk
  hit        by how much a reported hit makes the late task later still
  record     recording the kernel's events, beside trace-cmd and perf
  diagnose   time and memory for a million events
  engine     reading traces, beside babeltrace2
  reports    the reports, beside lttng-analyses
  python     tables and events in Python, beside babeltrace2's bindings
  probe      an event of an application, beside LTTng-UST; crowd too
  crowd      that alone: many processes at once, starts, forks and locked memory
  measure    latencies and gaps, beside cyclictest and oslat (60 runs of 6 s, and as many starts)
  build      a cold release build
  against OLDER  another build of rtscope and this one in turn: time, instructions, memory
  all        all of them, but 'against'
  --small    a run of seconds that proves that the benchmark works; its figures mean nothing
  --rtscope  the program to measure (default: beside this one)
  --trace    a trace for 'engine' to read besides its own, may come again; for 'against' instead
  --rounds   how often 'against', 'record', 'hit', 'probe', 'crowd' and 'workloads' run each
             (default 15, 10, 20, 20, 3 and 20; a busy machine wants more)
  --events   how many events the traces of 'engine' have; they go away after the run
  --picture  where 'probe' draws its histograms (SVG)
  --iterations  'probe' looks for the rarest of so many iterations instead (100000000: 3 minutes,
             4 GB of disk meanwhile)";

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The programs in the kernel.
    Calls,
    /// A whole watch.
    Watch,
    /// The programs of each tracker.
    Trackers,
    /// A watch of programs that are busy.
    Workloads,
    /// From hit to disk.
    Snapshot,
    /// What a hit costs the task that is late.
    Hit,
    /// Recording the kernel's events.
    Record,
    /// Reading a trace.
    Diagnose,
    /// The trace engine.
    Engine,
    /// The reports.
    Reports,
    /// Reading a trace in Python.
    Python,
    /// An event of an application.
    Probe,
    /// Many processes at once, and what each of them pays before its first event.
    Crowd,
    /// Latencies and gaps.
    Measure,
    /// Building it all.
    Build,
    /// Another build beside this one.
    Against,
}

impl Subject {
    /// All that need nothing but their name.
    const ALL: &[Subject] = &[
        Subject::Calls,
        Subject::Watch,
        Subject::Workloads,
        Subject::Snapshot,
        Subject::Hit,
        Subject::Record,
        Subject::Diagnose,
        Subject::Engine,
        Subject::Reports,
        Subject::Python,
        Subject::Probe,
        Subject::Measure,
        Subject::Build,
    ];

    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Calls => "calls",
            Subject::Watch => "watch",
            Subject::Trackers => "trackers",
            Subject::Workloads => "workloads",
            Subject::Snapshot => "snapshot",
            Subject::Hit => "hit",
            Subject::Record => "record",
            Subject::Diagnose => "diagnose",
            Subject::Engine => "engine",
            Subject::Reports => "reports",
            Subject::Python => "python",
            Subject::Probe => "probe",
            Subject::Crowd => "crowd",
            Subject::Measure => "measure",
            Subject::Build => "build",
            Subject::Against => AGAINST,
        }
    }
}

/// It has the older program behind it.
const AGAINST: &str = "against";

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// In the order typed.
    pub subjects: Vec<Subject>,
    /// JSON instead of markdown.
    pub json: bool,
    /// Seconds instead of minutes; the figures mean nothing.
    pub small: bool,
    /// The program to measure.
    pub rtscope: PathBuf,
    /// What `against` compares it with.
    pub older: Option<PathBuf>,
    /// How often `against`, `record`, `hit`, `probe`, `crowd` and `workloads` run each; their own
    /// numbers when nothing was typed.
    pub rounds: Option<usize>,
    /// Traces to read besides those that are made.
    pub traces: Vec<PathBuf>,
    /// How many events the traces that are made have; their own numbers when nothing was typed.
    pub events: Option<u64>,
    /// Where the picture of `probe` goes.
    pub picture: Option<PathBuf>,
    /// Iterations of the one long loop of `probe`; its usual runs when nothing was typed.
    pub iterations: Option<u64>,
}

impl Options {
    /// Reads the words of the command line.
    ///
    /// # Errors
    /// For a word that means nothing, and for a program that is not there.
    pub fn parse(words: &[String]) -> Result<Options> {
        let mut options = Options {
            subjects: Vec::new(),
            json: false,
            small: false,
            rtscope: PathBuf::new(),
            older: None,
            rounds: None,
            traces: Vec::new(),
            events: None,
            picture: None,
            iterations: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.json = true,
                "--small" => options.small = true,
                "--rtscope" => options.rtscope = path(words.next(), "--rtscope")?,
                "--trace" => options.traces.push(path(words.next(), "--trace")?),
                "--events" => {
                    options.events = Some(count(words.next(), "--events", "events")?);
                }
                "--rounds" => {
                    options.rounds = Some(count(words.next(), "--rounds", "rounds")? as usize);
                }
                AGAINST => {
                    options.older = Some(path(words.next(), "against (the older program)")?);
                    options.subjects.push(Subject::Against);
                }
                "--picture" => options.picture = Some(path(words.next(), "--picture")?),
                "--iterations" => {
                    let iterations = count(words.next(), "--iterations", "iterations")?;
                    options.iterations = Some(iterations);
                }
                // Parts of 'watch' and 'probe', which have them too.
                "trackers" => options.subjects.push(Subject::Trackers),
                "crowd" => options.subjects.push(Subject::Crowd),
                "all" => options.subjects.extend(Subject::ALL),
                name => match Subject::ALL.iter().find(|subject| subject.name() == name) {
                    Some(subject) => options.subjects.push(*subject),
                    None => bail!("'{name}' is nothing to measure\n{USAGE}"),
                },
            }
        }
        if options.subjects.is_empty() {
            bail!("nothing to measure\n{USAGE}");
        }
        if options.rtscope.as_os_str().is_empty() {
            options.rtscope = std::env::current_exe()?.with_file_name("rtscope");
        }
        let programs = options.older.iter().chain([&options.rtscope]);
        if let Some(absent) = programs.into_iter().find(|program| !program.exists()) {
            let path = absent.display();
            bail!("no program to measure at {path}: cargo build --release --package cli");
        }
        Ok(options)
    }

    /// `large`, or in a small run `small`.
    pub fn pick<T>(&self, large: T, small: T) -> T {
        if self.small { small } else { large }
    }
}

/// The path behind a word.
fn path(word: Option<&String>, before: &str) -> Result<PathBuf> {
    let word = word.with_context(|| format!("{before} needs a path"))?;
    Ok(word.into())
}

/// The number behind a flag, which counts something.
fn count(word: Option<&String>, flag: &str, what: &str) -> Result<u64> {
    let word = word.with_context(|| format!("{flag} needs a number"))?;
    let number = word.parse().ok().filter(|number| *number > 0);
    number.with_context(|| format!("'{word}' is no number of {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expect: std::result::Result<&[Subject], &str>) {
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        match (Options::parse(&words), expect) {
            (Ok(options), Ok(subjects)) => assert_eq!(options.subjects, subjects, "{typed}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, _) => panic!("{typed}: {got:?}"),
        }
    }

    #[test]
    fn subjects_are_measured_in_the_order_typed_and_nothing_is_guessed() {
        let this = "--rtscope /proc/self/exe";
        check(
            &format!("watch calls {this}"),
            Ok(&[Subject::Watch, Subject::Calls]),
        );
        check(&format!("all --json {this}"), Ok(Subject::ALL));
        check(&format!("--json {this}"), Err("nothing to measure"));
        check("wach", Err("'wach' is nothing to measure"));
        check("calls --rtscope", Err("needs a path"));
        check(&format!("engine --trace a {this}"), Ok(&[Subject::Engine]));
        check("engine --trace", Err("--trace needs a path"));
        check(&format!("engine --events 5 {this}"), Ok(&[Subject::Engine]));
        check("engine --events 0", Err("'0' is no number of events"));
        check(
            &format!("probe --picture a.svg {this}"),
            Ok(&[Subject::Probe]),
        );
        check("probe --picture", Err("needs a path"));
        check(&format!("crowd --rounds 2 {this}"), Ok(&[Subject::Crowd]));
        check(
            "probe --iterations x",
            Err("'x' is no number of iterations"),
        );
        check("calls --rtscope /nowhere", Err("/nowhere"));
        check(
            &format!("against /proc/self/exe --rounds 3 {this}"),
            Ok(&[Subject::Against]),
        );
        check(&format!("against /nowhere {this}"), Err("/nowhere"));
        check("against", Err("needs a path"));
        check("--rounds none", Err("'none' is no number of rounds"));
    }
}
