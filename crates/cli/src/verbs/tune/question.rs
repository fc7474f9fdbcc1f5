//! What a tune was asked: what to try, whose lateness decides, for how long.

use std::path::Path;
use std::time::Duration as StdDuration;

use bpf_host::Members;
use diagnosis::{Query, diagnose};
use event::{Duration, Error, ErrorKind, NamePattern, Result, TaskPattern};
use host::tune::{self, Change};

use super::compare::ROUNDS_MIN;
use crate::flags::Tune;
use crate::options::{Rate, Target, WatchOptions, target_words};
use crate::verbs::opened;

/// The machine.
const ROOT: &str = "/";

/// A tune, decided.
pub struct Question {
    /// As they were given, or advised.
    pub commands: Vec<String>,
    /// What they change.
    pub changes: Vec<Change>,
    /// Why, where it was advised.
    pub because: Option<String>,
    /// Who is watched, for what.
    pub watch: WatchOptions,
    /// In all.
    pub run_for: StdDuration,
    /// So many pairs of stretches.
    pub rounds: u32,
}

/// What a diagnosis gives a tune.
struct Advised {
    command: String,
    because: String,
    task: String,
    over: Option<Duration>,
}

impl Question {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning, and what cannot be tried.
    pub fn new(typed: &Tune) -> Result<Question> {
        let advised = typed.from.as_deref().map(advised).transpose()?;
        let commands = match &advised {
            Some(advised) => vec![advised.command.clone()],
            None => typed.commands.clone(),
        };
        if commands.is_empty() {
            return Err(
                Error::new(ErrorKind::InvalidInput, "there is nothing to try")
                    .found("no COMMAND and no --from")
                    .fix("give the command of an advice in quotes, or --from SNAPSHOT"),
            );
        }
        let changes = commands.iter();
        let changes = changes.map(|command| tune::read(Path::new(ROOT), command));
        let changes = changes.collect::<Result<Vec<_>>>()?.concat();
        let rounds = typed.rounds;
        if (rounds as usize) < ROUNDS_MIN {
            return Err(
                Error::new(ErrorKind::InvalidInput, "so few rounds show nothing")
                    .found(format!("--rounds {rounds}"))
                    .fix(format!("give at least {ROUNDS_MIN}")),
            );
        }
        let run_for = crate::options::positive_duration("--for", &typed.run_for)?;
        Ok(Question {
            commands,
            changes,
            watch: watch(typed, advised.as_ref())?,
            because: advised.map(|advised| advised.because),
            run_for: StdDuration::from_nanos(run_for.as_ns_unsigned()),
            rounds,
        })
    }
}

fn watch(typed: &Tune, advised: Option<&Advised>) -> Result<WatchOptions> {
    let (mut patterns, groups) = target_words(typed)?;
    if let Some(advised) = advised
        && patterns.is_empty()
        && groups.is_empty()
    {
        patterns.push(TaskPattern::Name(NamePattern::parse(&advised.task)?));
    }
    let over = typed.over.as_ref();
    let over = over.map(|text| crate::options::positive_duration("--over", text));
    let over = over
        .transpose()?
        .or(advised.and_then(|advised| advised.over));
    let over = over.ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "nothing says what is late")
            .found("no --over")
            .fix("give --over DUR, as in --over 5ms")
    })?;
    Ok(WatchOptions {
        target: match patterns.is_empty() && groups.is_empty() {
            true => Target::RealTime,
            false => Target::Tasks(patterns),
        },
        groups,
        members: Members::default(),
        command: Vec::new(),
        prio_min: None,
        cpus: Vec::new(),
        irq: None,
        softirq: None,
        until: typed.until,
        over: Some(over),
        new_worst: true,
        timeout: None,
        triggers: Vec::new(),
        worst: None,
        rate: Rate {
            hits_max: 1,
            per: Duration::from_ms(1000),
        },
        hits_max: None,
        run_for: None,
        exec: None,
        bpf_action: None,
        json: typed.json,
        snapshot: None,
    })
}

/// The first advice of a diagnosis that can be tried.
fn advised(trace: &Path) -> Result<Advised> {
    let diagnosis = diagnose(&opened::open(trace)?, &Query::default())?;
    let mut refused = Vec::new();
    for group in &diagnosis.groups {
        let worst = group
            .members
            .first()
            .and_then(|at| diagnosis.activations.get(*at));
        for advice in &group.verdict.advice {
            match tune::read(Path::new(ROOT), &advice.command) {
                Ok(_) => {
                    return Ok(Advised {
                        command: advice.command.clone(),
                        because: advice.because.clone(),
                        task: worst.map(|late| late.task.comm.clone()).unwrap_or_default(),
                        over: worst.and_then(|late| Some(late.hit.as_ref()?.threshold)),
                    });
                }
                Err(error) => refused.push(format!("{}: {error}", advice.command)),
            }
        }
    }
    let error = Error::new(ErrorKind::NotFound, "no advice of this trace can be tried");
    Err(match refused.is_empty() {
        true => error.found("it has none").fix("rtscope diagnose says why"),
        false => error
            .found(refused.join("; "))
            .fix("what a program has to do itself is tried by changing it"),
    })
}
