//! `rtscope tune`: tries a change of the machine, and says whether it helps.

mod compare;
mod counting;
mod question;
mod schedule;
mod text;

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration as StdDuration, SystemTime, UNIX_EPOCH};

use capture::capabilities;
use event::{Error, Result};
use host::capabilities::Verb;
use host::tune::{self, Trial};
use serde_json::json;

use crate::exit::{self, Outcome};
use crate::flags;
use crate::live::Live;
use crate::signals;
use crate::verbs::watch::session;
use crate::verbs::watch::targets::{meant, whom};
use compare::{Finding, Rounds};
use counting::{Counting, rest};
use question::Question;
use schedule::{Pair, schedule};
use text::{SCHEMA, SCHEMA_VERSION};

/// The machine.
const ROOT: &str = "/";
/// Of each stretch, what a change gets to take effect.
const SETTLE_SHARE: u32 = 10;

/// Runs the verb.
pub fn run(typed: &flags::Tune) -> Result<Outcome> {
    if let Some(pid) = typed.guard {
        return guard(pid);
    }
    if typed.undo {
        return undo(typed.json);
    }
    let mut question = Question::new(typed)?;
    if typed.show {
        return show(&question, typed.json);
    }
    capabilities::gather().require(Verb::Tune)?;
    let whom = whom(&question.watch, None);
    meant(&mut question.watch, &whom)?;
    let config = session(&question.watch)?.watch;
    signals::take_over()?;
    // Before the trial, so that it goes after that: it is for one who is killed, and not for one
    // whose change is refused.
    let guard = Guard::start()?;
    let trial = Trial::begin(
        Path::new(ROOT),
        question.commands.clone(),
        question.changes.clone(),
    )?;
    let rounds = compare_all(&question, Counting::start(config)?, &trial)?;
    let finding = rounds.finding();
    let is_kept = typed.keep && finding == Finding::Helped;
    match is_kept {
        true => trial.on().and_then(|()| trial.keep())?,
        false => trial.off().map(|()| drop(trial))?,
    }
    drop(guard);
    let text = match typed.json {
        true => format!("{}\n", text::json(&question, &rounds, is_kept)),
        false => text::text(&question, &rounds, is_kept),
    };
    exit::print_answer(&text)?;
    Ok(match finding {
        Finding::Helped => Outcome::Fine,
        Finding::Harmed | Finding::NoDifference => Outcome::Exceeded,
        Finding::NothingLate | Finding::NothingJudged => Outcome::Inconclusive,
    })
}

/// Stretches without and with the change in turn, which of them first and how long by chance: what
/// drifts meanwhile, or comes at regular times, falls on both sides.
fn compare_all(question: &Question, mut counting: Counting, trial: &Trial) -> Result<Rounds> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = now.map_or(0, |since| since.as_nanos() as u64);
    let pairs = schedule(question.rounds, question.run_for, seed);
    let live = Live::new(!question.watch.json);
    let mut rounds = Rounds::default();
    for (number, pair) in pairs.into_iter().enumerate() {
        let Pair {
            begins_with,
            stretch,
        } = pair;
        live.line(&format!("round {} of {}", number + 1, question.rounds));
        let settle = stretch / SETTLE_SHARE;
        let first = stretch_of(&mut counting, trial, begins_with, (stretch, settle))?;
        let Some(first) = first else { break };
        let second = stretch_of(&mut counting, trial, !begins_with, (stretch, settle))?;
        let Some(second) = second else { break };
        let pair = if begins_with {
            (second, first)
        } else {
            (first, second)
        };
        rounds.pairs.push(pair);
    }
    live.clear();
    Ok(rounds)
}

fn stretch_of(
    counting: &mut Counting,
    trial: &Trial,
    with: bool,
    (stretch, settle): (StdDuration, StdDuration),
) -> Result<Option<compare::Block>> {
    match with {
        true => trial.on()?,
        false => trial.off()?,
    }
    match rest(settle) {
        true => counting.block(stretch - settle),
        false => Ok(None),
    }
}

fn show(question: &Question, json: bool) -> Result<Outcome> {
    let changes: Vec<String> = question.changes.iter().map(ToString::to_string).collect();
    let text = match json {
        true => format!(
            "{}\n",
            json!({"schema": SCHEMA, "version": SCHEMA_VERSION, "commands": question.commands,
                   "changes": changes})
        ),
        false => text::changes(question) + "nothing was changed\n",
    };
    exit::print(&text)?;
    Ok(Outcome::Fine)
}

fn undo(json: bool) -> Result<Outcome> {
    let root = Path::new(ROOT);
    if let Some(state) = tune::state(root)?
        && tune::is_under_way(&state)
    {
        return Err(tune::under_way(&state));
    }
    let undone = tune::undo(root)?;
    let changes: Vec<String> = undone.changes.iter().map(ToString::to_string).collect();
    let text = match json {
        true => format!(
            "{}\n",
            json!({"schema": SCHEMA, "version": SCHEMA_VERSION, "taken_back": changes})
        ),
        false => format!("taken back: {}\n", changes.join("; ")),
    };
    exit::print(&text)?;
    Ok(Outcome::Fine)
}

/// A process that takes everything back when this one is killed: the pipe to it then closes.
struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    fn start() -> Result<Guard> {
        use std::os::unix::process::CommandExt as _;
        let cannot =
            |error| Error::io("cannot start the process that takes everything back", error);
        let program = std::env::current_exe().map_err(cannot)?;
        let mut command = Command::new(program);
        command
            .args(["tune", "--guard", &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        // Ctrl-C is for us alone.
        let mut child = command.process_group(0).spawn().map_err(cannot)?;
        let pipe = child.stdin.take();
        Ok(Guard { child, pipe })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.pipe.take();
        self.child.wait().ok();
    }
}

/// The other end of the pipe.
fn guard(pid: u32) -> Result<Outcome> {
    std::io::stdin().read_to_end(&mut Vec::new()).ok();
    let root = Path::new(ROOT);
    if tune::state(root)?.is_some_and(|state| state.pid == pid) {
        tune::undo(root)?;
        note!("rtscope tune was killed: what it tried is taken back");
    }
    Ok(Outcome::Fine)
}
