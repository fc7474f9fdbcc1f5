//! Scenarios as the actor plays them and the judge reads them; docs/scenarios.md has the language.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// What every victim is called: the watch knows it by this name.
pub const VICTIM: &str = "lab-victim";

/// One scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Tells it apart in a file.
    pub name: String,
    /// The kind of its fault.
    pub fault: String,
    /// What the watch calls late, in microseconds.
    pub over_us: u64,
    /// How long it plays, in milliseconds.
    pub length_ms: u64,
    /// Mutexes, channels and groups, a line each.
    pub things: Vec<String>,
    /// Who plays.
    pub tasks: Vec<Task>,
    /// Who may be accused.
    pub accuse: Vec<Accuse>,
    /// The victim's lateness need not be seen: the reason.
    pub silence: Option<String>,
    /// It is answered wrongly, which is known: what is said.
    pub known: Option<String>,
    /// The rule whose advice is to be given, and to help.
    pub advice: Option<String>,
}

/// A task: a thread, or a process of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// `victim`, `culprit`, `innocent` or `helper`.
    pub role: String,
    /// As the kernel knows it.
    pub name: String,
    /// `fifo:50`, `rr:50`, `other:0` or `dl:3ms/10ms`.
    pub policy: String,
    /// `cpu=0`, `process`.
    pub options: Vec<String>,
    /// What it does, in order; `loop` begins what is repeated.
    pub steps: Vec<String>,
}

/// An accusation that is true.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accuse {
    /// Kinds of terms.
    pub kinds: Vec<String>,
    /// Names of tasks or functions; none: the kind says all.
    pub names: Vec<String>,
}

impl Accuse {
    /// Whether a culprit of this kind and one of these names is what is meant.
    pub fn means(&self, kind: &str, names: &[&str]) -> bool {
        let is_it = |one: &String| {
            names.iter().any(|name| match one.strip_suffix('*') {
                Some(begin) if !begin.is_empty() => *name == one || name.starts_with(begin),
                _ => name == one,
            })
        };
        let named = self.names.is_empty() || self.names.iter().any(is_it);
        named && (self.kinds.is_empty() || self.kinds.iter().any(|one| one == kind))
    }

    fn parse(text: &str) -> Result<Accuse> {
        let (kinds, names) = text.split_once(' ').context("accuse KINDS NAMES")?;
        let list = |text: &str, none: &str| match text == none {
            true => Vec::new(),
            false => text.split('|').map(str::to_owned).collect(),
        };
        Ok(Accuse {
            kinds: list(kinds, "*"),
            names: list(names, "-"),
        })
    }
}

impl Task {
    /// Whether it has a real-time policy or the deadline one at its begin.
    pub fn is_real_time(&self) -> bool {
        !self.policy.starts_with("other")
    }

    fn parse(line: &str) -> Result<Task> {
        let (head, steps) = line.split_once(" | ").context("no ' | '")?;
        let mut words = head.split(' ').map(str::to_owned);
        let mut word = || words.next().context("ROLE NAME POLICY are needed");
        Ok(Task {
            role: word()?,
            name: word()?,
            policy: word()?,
            options: words.collect(),
            steps: steps.split(", ").map(str::to_owned).collect(),
        })
    }
}

impl Scenario {
    /// The tasks of this role.
    pub fn of_role(&self, role: &str) -> impl Iterator<Item = &Task> {
        let role = role.to_owned();
        self.tasks.iter().filter(move |task| task.role == role)
    }

    fn read_line(&mut self, line: &str) -> Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |unit: &str| -> Result<u64> {
            let digits = rest
                .strip_suffix(unit)
                .with_context(|| format!("no {unit}"))?;
            Ok(digits.parse()?)
        };
        match word {
            "fault" => rest.clone_into(&mut self.fault),
            "over" => self.over_us = number("us")?,
            "length" => self.length_ms = number("ms")?,
            "mutex" | "channel" | "group" => self.things.push(line.to_owned()),
            "accuse" => self.accuse.push(Accuse::parse(rest)?),
            "silence" => self.silence = Some(rest.to_owned()),
            "known" => self.known = Some(rest.to_owned()),
            "advice" => self.advice = Some(rest.to_owned()),
            "victim" | "culprit" | "innocent" | "helper" => self.tasks.push(Task::parse(line)?),
            _ => anyhow::bail!("no such line"),
        }
        Ok(())
    }
}

/// All scenarios in `text`.
pub fn parse(text: &str) -> Result<Vec<Scenario>> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let lines = text.lines().enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let place = || format!("line {}: '{line}'", at + 1);
        if let Some(name) = line.strip_prefix("scenario ") {
            scenarios.push(Scenario {
                name: name.to_owned(),
                ..Scenario::default()
            });
            continue;
        }
        let scenario = scenarios.last_mut().with_context(place)?;
        scenario.read_line(line).with_context(place)?;
    }
    Ok(scenarios)
}

/// All scenarios in the file `path`; one that nobody can be judged by is refused.
pub fn read(path: &Path) -> Result<Vec<Scenario>> {
    let text = std::fs::read_to_string(path);
    let scenarios = parse(&text.with_context(|| format!("cannot read {}", path.display()))?)
        .with_context(|| path.display().to_string())?;
    for scenario in &scenarios {
        let whole = scenario.over_us > 0 && scenario.length_ms > 0;
        let has_victim = scenario.of_role("victim").next().is_some();
        ensure!(
            whole && has_victim,
            "scenario {} lacks 'over', 'length' or a victim",
            scenario.name
        );
    }
    Ok(scenarios)
}

impl Display for Scenario {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        writeln!(to, "scenario {}", self.name)?;
        writeln!(to, "fault {}", self.fault)?;
        writeln!(to, "over {}us", self.over_us)?;
        writeln!(to, "length {}ms", self.length_ms)?;
        for thing in &self.things {
            writeln!(to, "{thing}")?;
        }
        for task in &self.tasks {
            writeln!(to, "{task}")?;
        }
        for Accuse { kinds, names } in &self.accuse {
            let list = |words: &[String], none: &str| match words {
                [] => none.to_owned(),
                some => some.join("|"),
            };
            writeln!(to, "accuse {} {}", list(kinds, "*"), list(names, "-"))?;
        }
        if let Some(why) = &self.silence {
            writeln!(to, "silence {why}")?;
        }
        if let Some(what) = &self.known {
            writeln!(to, "known {what}")?;
        }
        if let Some(rule) = &self.advice {
            writeln!(to, "advice {rule}")?;
        }
        Ok(())
    }
}

impl Display for Task {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.role, self.name, self.policy)?;
        for option in &self.options {
            write!(to, " {option}")?;
        }
        write!(to, " | {}", self.steps.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOG: &str = "\
scenario hog-1
fault hog
over 3000us
length 300ms
mutex m plain 1
victim lab-victim fifo:50 cpu=0 | loop, every abs 10ms, work 200us
culprit kworker/u9:1 fifo:60 cpu=0 process | at 120ms, burn 15ms
accuse run_queue_wait|upstream kworker/u9:1
accuse quota -
silence why not
known so it is
advice move-task
";

    #[test]
    fn what_is_written_is_read_again() {
        let scenarios = parse(HOG).unwrap();
        assert_eq!(scenarios.len(), 1);
        assert_eq!(scenarios[0].to_string(), HOG);
        assert_eq!(scenarios[0].of_role("culprit").count(), 1);
        assert_eq!(scenarios[0].tasks[1].steps, ["at 120ms", "burn 15ms"]);
    }

    #[test]
    fn a_line_that_is_none_is_refused_with_its_number() {
        let check = |text: &str| {
            let error = parse(&format!("scenario a\n{text}\n")).unwrap_err();
            assert_eq!(format!("{error}"), format!("line 2: '{text}'"));
        };
        check("nonsense");
        check("over 3");
        check("accuse quota");
        check("victim lab-victim fifo:50");
        assert!(parse("fault hog\n").is_err());
    }

    #[test]
    fn an_accusation_is_true_when_kind_and_name_are_those_that_were_written() {
        let check = |written: &str, kind: &str, name: &str, expect: bool| {
            let accuse = Accuse::parse(written).unwrap();
            assert_eq!(
                accuse.means(kind, &[name]),
                expect,
                "{written} {kind} {name}"
            );
        };
        check("run_queue_wait hog", "run_queue_wait", "hog", true);
        check("run_queue_wait hog", "lock_wait", "hog", false);
        check("run_queue_wait|lock_wait hog|pig", "lock_wait", "pig", true);
        check("run_queue_wait hog", "run_queue_wait", "hogs", false);
        check("quota -", "quota", "", true);
        check("* gdb", "stopped", "gdb", true);
        check("* gdb", "stopped", "cat", false);
        check(
            "run_queue_wait irq/*",
            "run_queue_wait",
            "irq/25-lab_thre",
            true,
        );
        check(
            "run_queue_wait irq/*",
            "run_queue_wait",
            "ksoftirqd/0",
            false,
        );
    }
}
