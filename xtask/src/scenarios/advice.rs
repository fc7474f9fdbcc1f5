//! Advice, applied: a fault comes again and again, the command that the watch's verdict offers is
//! run as it is printed, and the victim must be in time after that, by its own log and by the
//! watch.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::hit::{Culprit, Hit};
use super::host::{self, Watch};
use super::language::{self, Scenario, Task, VICTIM};
use super::log::{self, Played};
use super::session::{self, LOG, PLAYED, SNAPSHOTS, WATCH};
use crate::lock;
use crate::vm::{judge, suite::Suite};

/// The scenarios.
const FILE: &str = "tests/vm/advice";
/// A program that was changed as advised is the scenario with this behind its name.
const CHANGED: &str = "-changed";
/// The advice is applied when so many verdicts offer it: what was missed before is counted, too.
const OFFERS: usize = 3;
/// What was under way when it was applied may still be late.
const SETTLE_NS: i64 = 30_000_000;
const LOOK: Duration = Duration::from_millis(10);

/// Activations that were late in a span of time, by the victim's own log and by the watch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Misses {
    logged: usize,
    told: usize,
    span_ns: i64,
}

impl Misses {
    /// Those of what was seen that lie in `span`.
    fn of(scenario: &Scenario, seen: &Seen, span: (i64, i64)) -> Misses {
        let over_ns = scenario.over_us as i64 * 1_000;
        let by_others = |from_ns: i64, to_ns: i64| {
            let mut others = seen.by_others.iter();
            others.any(|(begin_ns, end_ns)| from_ns < *end_ns && *begin_ns < to_ns)
        };
        let counts = |from_ns: i64, to_ns: i64| {
            span.0 <= from_ns && to_ns <= span.1 && !by_others(from_ns, to_ns)
        };
        let logged = seen.played.activations().filter(|entry| {
            // A fair task is late by all that the machine has to do.
            is_real_time(scenario)
                && counts(entry.due_ns, entry.end_ns)
                && entry.end_ns - entry.due_ns >= over_ns
        });
        let told = seen.told.iter().filter(|(from, to)| counts(*from, *to));
        Misses {
            logged: logged.count(),
            told: told.count(),
            span_ns: span.1 - span.0,
        }
    }

    fn most(self) -> usize {
        self.logged.max(self.told)
    }

    /// In a second.
    fn rate(self) -> f64 {
        self.most() as f64 / (self.span_ns.max(1) as f64 / 1e9)
    }
}

/// What became of one piece of advice.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    /// No miss after it.
    Gone,
    /// Less than half as many in the same time.
    Fewer,
    /// It did not help.
    Stayed,
    /// The machine refused it: what it said.
    Refused(String),
    /// No verdict offered it often enough.
    NotOffered,
}

impl Outcome {
    fn of(before: Misses, after: Misses) -> Outcome {
        match after.most() {
            0 => Outcome::Gone,
            _ if after.rate() < before.rate() / 2.0 => Outcome::Fewer,
            _ => Outcome::Stayed,
        }
    }

    /// Whether an advice that has it is none that should have been given.
    fn is_bad(&self) -> bool {
        matches!(self, Outcome::Stayed | Outcome::Refused(_))
    }

    fn text(&self) -> String {
        match self {
            Outcome::Gone => "gone".to_owned(),
            Outcome::Fewer => "fewer".to_owned(),
            Outcome::Stayed => "STAYED".to_owned(),
            Outcome::Refused(said) => format!("REFUSED: {}", said.trim()),
            Outcome::NotOffered => "not offered: no such miss here".to_owned(),
        }
    }
}

/// A row of the table.
struct Row {
    scenario: String,
    rule: String,
    command: String,
    before: Misses,
    after: Misses,
    outcome: Outcome,
}

/// All of a run.
pub struct Table(Vec<Row>);

impl Table {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::from("| advice | scenario | misses before | after | |\n");
        text += "|---|---|---:|---:|---|\n";
        for row in &self.0 {
            let misses = |of: Misses| format!("{} in {:.1} s", of.most(), of.span_ns as f64 / 1e9);
            let (before, after) = (misses(row.before), misses(row.after));
            let outcome = row.outcome.text();
            let _ = writeln!(
                text,
                "| `{}` | {} | {before} | {after} | {outcome} |",
                row.rule, row.scenario
            );
            if row.outcome.is_bad() {
                let _ = writeln!(text, "|  | `{}` | | | |", row.command);
            }
        }
        text
    }

    /// How many were tried.
    pub fn len(&self) -> usize {
        let tried = |row: &&Row| row.outcome != Outcome::NotOffered;
        self.0.iter().filter(tried).count()
    }

    /// How many should not have been given.
    pub fn bad(&self) -> usize {
        self.0.iter().filter(|row| row.outcome.is_bad()).count()
    }
}

/// Tries all advice whose rule contains `part`.
pub fn run(repository: &Path, suite: &mut Suite, part: &str) -> Result<ExitCode> {
    let table = table(repository, suite, part)?;
    print!("{}", table.text());
    Ok(match table.bad() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The same, for whoever counts.
pub fn table(repository: &Path, suite: &mut Suite, part: &str) -> Result<Table> {
    let all = language::read(&repository.join(FILE))?;
    let program = suite.rtscope()?;
    let actor = host::actor(repository, suite.artefacts())?;
    let mut rows = Vec::new();
    for scenario in &all {
        let Some(rule) = scenario.advice.as_ref().filter(|rule| rule.contains(part)) else {
            continue;
        };
        let folder = suite.artefacts().join("scenarios/advice");
        let stage = Stage {
            actor: &actor,
            program: &program,
            folder: &folder,
        };
        let changed = format!("{}{CHANGED}", scenario.name);
        let changed = all.iter().find(|other| other.name == changed);
        let row = stage.apply(scenario, rule, changed);
        let row = row.with_context(|| format!("scenario {}", scenario.name))?;
        eprintln!("{} ({}): {}", row.scenario, row.rule, row.outcome.text());
        rows.push(row);
    }
    ensure!(!rows.is_empty(), "no rule contains '{part}'");
    Ok(Table(rows))
}

/// What plays, what watches, and where both leave what they say.
struct Stage<'a> {
    actor: &'a Path,
    program: &'a Path,
    folder: &'a Path,
}

/// What a scenario left.
#[derive(Default)]
struct Seen {
    played: Played,
    told: Vec<(i64, i64)>,
    /// Late activations that others made, whom no advice was about: the machine has other work.
    by_others: Vec<(i64, i64)>,
    /// From when to when the command was run.
    applied: Option<(i64, i64)>,
    /// The command, or what is to be changed.
    command: Option<String>,
    refused: Option<String>,
}

impl Stage<'_> {
    fn apply(&self, scenario: &Scenario, rule: &str, changed: Option<&Scenario>) -> Result<Row> {
        let seen = self.play(scenario, scenario, changed.is_none())?;
        let whole = |played: &Played| (played.begin_ns, played.end_ns);
        let (begin_ns, end_ns) = whole(&seen.played);
        let of = |seen: &Seen, span| Misses::of(scenario, seen, span);
        let (mut before, mut after) = (of(&seen, (begin_ns, end_ns)), Misses::default());
        if let Some((from_ns, to_ns)) = seen.applied {
            before = of(&seen, (begin_ns, from_ns));
            after = of(&seen, (to_ns + SETTLE_NS, end_ns));
        }
        if let Some(changed) = changed.filter(|_| seen.command.is_some()) {
            let again = self.play(changed, scenario, false)?;
            after = of(&again, whole(&again.played));
        }
        let outcome = match (&seen.command, seen.refused) {
            (None, _) => Outcome::NotOffered,
            (_, Some(said)) => Outcome::Refused(said),
            _ => Outcome::of(before, after),
        };
        Ok(Row {
            scenario: scenario.name.clone(),
            rule: rule.to_owned(),
            command: seen.command.unwrap_or_default(),
            before,
            after,
            outcome,
        })
    }

    /// Plays a scenario under a watch, that `of` the fault or with the program changed; `runs`:
    /// what the rule offers is a command.
    fn play(&self, scenario: &Scenario, of: &Scenario, runs: bool) -> Result<Seen> {
        crate::vm::cache::remove(self.folder)?;
        fs::create_dir_all(self.folder)?;
        let file = self.folder.join(PLAYED);
        fs::write(&file, session::text(std::slice::from_ref(scenario)))?;
        let _held = lock::acquire()?;
        let over = format!("{}us", scenario.over_us);
        let options = ["--task", VICTIM, "--over", &over];
        let mut watch = Watch::begin(self.program, self.folder, &options)?;
        let mut play = Command::new(self.actor);
        play.arg(&file).stdout(File::create(self.folder.join(LOG))?);
        let mut playing = play.spawn().context("cannot start the actor")?;
        let mut seen = Seen::default();
        let applied = self.watch_and_apply(&mut playing, scenario, runs, &mut seen);
        let ended = playing.wait().context("cannot wait for the actor")?;
        watch.end()?;
        applied?;
        ensure!(ended.success(), "the actor failed");
        let read = |name: &str| fs::read_to_string(self.folder.join(name));
        let mut played = log::parse(&read(LOG)?);
        seen.played = played.pop().context("nothing was played")?;
        let told = read(&format!("{SNAPSHOTS}/late.ndjson")).unwrap_or_default();
        seen.told = told.lines().filter_map(Hit::told).collect();
        let hits = read(WATCH)?;
        let hits = hits.lines().filter_map(Hit::parse);
        let (meant, others): (Vec<Hit>, Vec<Hit>) = hits
            .filter(|hit| hit.conclusive)
            .partition(|hit| accuses(hit, of));
        let spans = |hits: Vec<Hit>| hits.iter().map(Hit::span).collect();
        seen.by_others = spans(others);
        if !is_real_time(of) {
            seen.told = spans(meant);
        }
        Ok(seen)
    }

    /// Until the actor has ended: what the rule offers is noted, and run once it is offered often
    /// enough.
    fn watch_and_apply(
        &self,
        playing: &mut Child,
        scenario: &Scenario,
        runs: bool,
        seen: &mut Seen,
    ) -> Result<()> {
        let Some(rule) = scenario.advice.as_deref() else {
            return Ok(());
        };
        while playing.try_wait()?.is_none() && seen.command.is_none() {
            std::thread::sleep(LOOK);
            let said = fs::read_to_string(self.folder.join(WATCH))?;
            let offers = said.lines().filter_map(|line| offer(line, rule, scenario));
            let offers: Vec<String> = offers.collect();
            if offers.len() < OFFERS {
                continue;
            }
            seen.command = offers.last().cloned();
        }
        let Some(command) = seen.command.clone().filter(|_| runs) else {
            return Ok(());
        };
        let from_ns = now_ns();
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &command]).stdin(Stdio::null());
        let output = shell.output().context("no shell")?;
        if playing.try_wait()?.is_some() {
            // Too late: whom it is about has gone.
            seen.command = None;
            return Ok(());
        }
        seen.applied = Some((from_ns, now_ns()));
        if !output.status.success() {
            seen.refused = Some(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(())
    }
}

/// What `rule` offers in the verdict on the hit of a line of the watch, where that accuses whom the
/// scenario means.
fn offer(line: &str, rule: &str, scenario: &Scenario) -> Option<String> {
    Hit::parse(line).filter(|hit| hit.conclusive && accuses(hit, scenario))?;
    let value: Value = serde_json::from_str(line).ok()?;
    let diagnosis = value.get("diagnosis")?;
    let (index, _) = judge::hit(diagnosis)?;
    let verdict = judge::verdict_on(diagnosis, index)?;
    let mut advice = verdict["advice"].as_array()?.iter();
    let mine = advice.find(|advice| advice["rule"] == rule)?;
    mine["command"].as_str().map(str::to_owned)
}

fn is_real_time(scenario: &Scenario) -> bool {
    let mut victims = scenario.of_role("victim");
    victims.any(Task::is_real_time)
}

/// Whether a verdict accuses, above all, whom the scenario means.
fn accuses(hit: &Hit, scenario: &Scenario) -> bool {
    let means = |culprit: &Culprit| {
        let names: Vec<&str> = culprit.names.iter().map(String::as_str).collect();
        let mut accuse = scenario.accuse.iter();
        accuse.any(|accuse| accuse.means(&culprit.kind, &names))
    };
    hit.culprits.first().is_some_and(means)
}

fn now_ns() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_piece_of_advice_is_judged_by_what_the_victim_and_the_watch_saw_before_and_after() {
        let check = |before: (usize, i64), after: (usize, usize, i64), expect: Outcome| {
            let misses = |logged, told, ms| Misses {
                logged,
                told,
                span_ns: ms * 1_000_000,
            };
            let (before, (logged, told, ms)) = (misses(before.0, before.0, before.1), after);
            let outcome = Outcome::of(before, misses(logged, told, ms));
            assert_eq!(outcome, expect, "{before:?} {after:?}");
        };
        check((9, 500), (0, 0, 900), Outcome::Gone);
        // Either of the two is enough to say that it was late.
        check((9, 500), (9, 0, 500), Outcome::Stayed);
        check((9, 500), (0, 9, 500), Outcome::Stayed);
        check((9, 500), (4, 3, 500), Outcome::Fewer);
        // As many in half of the time.
        check((9, 500), (4, 4, 200), Outcome::Stayed);
    }

    #[test]
    fn what_is_late_counts_where_it_begins_and_ends_within_the_time() {
        let text = "scenario a 0 90000000\n\
            victim lab-victim 7 activation - 10000000 10000000 14000000\n\
            victim lab-victim 7 activation - 20000000 20000000 21000000\n\
            victim lab-victim 7 activation - 30000000 30000000 34000000\n";
        let played = log::parse(text).remove(0);
        let text_of = "scenario a\nover 3000us\nvictim v fifo:50 | loop, every abs 10ms\n";
        let scenario = language::parse(text_of).unwrap().remove(0);
        let mut seen = Seen {
            played,
            told: vec![(10_000_000, 14_000_000)],
            ..Seen::default()
        };
        let misses = |seen: &Seen, from_ms: i64, to_ms: i64| {
            let span = (from_ms * 1_000_000, to_ms * 1_000_000);
            let misses = Misses::of(&scenario, seen, span);
            (misses.logged, misses.told)
        };
        assert_eq!(misses(&seen, 0, 90), (2, 1));
        assert_eq!(misses(&seen, 0, 33), (1, 1));
        assert_eq!(misses(&seen, 11, 90), (1, 0));
        // What others made late.
        seen.by_others = vec![(9_000_000, 14_000_000)];
        assert_eq!(misses(&seen, 0, 90), (1, 0));
    }

    #[test]
    fn advice_is_taken_from_the_conclusive_verdict_on_whom_the_scenario_means_alone() {
        let text = "scenario a\naccuse run_queue_wait hog\n";
        let scenario = language::parse(text).unwrap().remove(0);
        let line = |conclusive: bool, name: &str, rule: &str| {
            json!({"type": "hit", "diagnosis": {
                "activations": [{"hit": {"task": {"comm": "v"}}}],
                "groups": [{"members": [0], "verdict": {"conclusive": conclusive,
                    "culprits": [{"kind": "run_queue_wait", "name": name}],
                    "advice": [{"rule": rule, "command": "taskset -pc 1 7"}]}}],
            }})
            .to_string()
        };
        let offer = |line: &str| offer(line, "move-task", &scenario);
        let taken = Some("taskset -pc 1 7".to_owned());
        assert_eq!(offer(&line(true, "hog", "move-task")), taken);
        assert_eq!(offer(&line(false, "hog", "move-task")), None);
        assert_eq!(offer(&line(true, "rustc", "move-task")), None);
        assert_eq!(offer(&line(true, "hog", "lower-task")), None);
        assert_eq!(offer("{}"), None);
    }

    #[test]
    fn each_scenario_of_the_file_has_a_rule_or_is_a_program_changed_by_one() {
        let all = language::read(&crate::repository().join(FILE)).unwrap();
        for scenario in &all {
            let of = scenario.name.strip_suffix(CHANGED);
            let before = of.and_then(|of| all.iter().find(|other| other.name == of));
            let has_rule = before.unwrap_or(scenario).advice.is_some();
            assert!(has_rule, "{scenario}");
            assert_eq!(of.is_some(), scenario.advice.is_none(), "{scenario}");
        }
    }
}
