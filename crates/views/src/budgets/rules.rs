//! The text of budgets: definitions of periods, and what must not take longer than how long.

use event::{Duration, Error, ErrorKind, Result, TaskPattern};
use expr::period::Periods;

/// What a budget is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Periods of this name.
    Period(String),
    /// From wake-up to switch, of these threads.
    WakeUp(TaskPattern),
    /// What these threads run themselves from a wake-up to where they wait again.
    Work(TaskPattern),
    /// From a wake-up of these threads to where they wait again.
    Response(TaskPattern),
}

/// So long at most, for so many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// As it was written.
    pub text: String,
    /// What it is about.
    pub subject: Subject,
    /// No sample may last longer.
    pub limit: Duration,
    /// But so many of a million.
    pub over_ppm: u32,
}

impl Budget {
    /// Fewer samples say nothing about so small a share.
    pub fn samples_min(&self) -> u64 {
        match self.over_ppm {
            0 => 1,
            ppm => u64::from(MILLION.div_ceil(ppm)),
        }
    }
}

const MILLION: u32 = 1_000_000;

/// Budgets with the periods that they speak of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// What is followed.
    pub periods: Periods,
    /// What is judged, in the order of the text.
    pub budgets: Vec<Budget>,
}

impl Rules {
    /// Reads rules, one per line; lines that begin with blanks go on, `#` begins a comment line:
    ///
    /// ```text
    /// period control : $evt.$name == "app:begin" : $evt.$name == "app:end"
    /// control within 1ms p99.9
    /// control within 2ms
    /// wake-up of npt within 100us p99.99
    /// response of npt within 1ms
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the line that is none, or the period that is not defined.
    pub fn parse(text: &str) -> Result<Rules> {
        let mut definitions: Vec<String> = Vec::new();
        let mut budgets: Vec<Budget> = Vec::new();
        for line in joined(text) {
            match line.strip_prefix("period ") {
                Some(definition) => definitions.push(definition.trim().to_owned()),
                None => budgets.push(budget(&line)?),
            }
        }
        let none: [&str; 0] = [];
        let periods = Periods::parse(&definitions, &none)?;
        if budgets.is_empty() {
            let error = Error::new(ErrorKind::InvalidInput, "the rules have no budget");
            return Err(error.found("only definitions").fix(FORM));
        }
        for budget in &budgets {
            let Subject::Period(name) = &budget.subject else {
                continue;
            };
            let is_it = |period: &expr::period::Period| period.name.as_deref() == Some(name);
            if !periods.list().iter().any(is_it) {
                let error = Error::new(ErrorKind::NotFound, "no period has the budget's name");
                return Err(error
                    .found(format!("'{name}'"))
                    .fix(format!("define it: period {name} : BEGIN : END")));
            }
        }
        Ok(Rules { periods, budgets })
    }
}

const FORM: &str = "write budgets as 'control within 1ms p99.9', 'wake-up of npt within 100us', \
                    'work of npt within 1ms' or 'response of npt within 2ms'";

/// Lines without comments, each with those that go on from it.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        match lines.last_mut().filter(|_| line.starts_with([' ', '\t'])) {
            Some(last) => {
                last.push(' ');
                last.push_str(words);
            }
            None => lines.push(words.to_owned()),
        }
    }
    lines
}

fn budget(line: &str) -> Result<Budget> {
    let wrong = |what: &str| {
        let error = Error::new(ErrorKind::InvalidInput, what);
        error.found(format!("'{line}'")).fix(FORM)
    };
    // The name of a task may have the word in it, what follows cannot.
    let Some((subject, rest)) = line.rsplit_once(" within ") else {
        return Err(wrong("a line is no rule"));
    };
    let mut words = rest.split_whitespace();
    let limit = words.next().and_then(|word| Duration::parse(word).ok());
    let limit = limit.ok_or_else(|| wrong("a budget has no duration"))?;
    let over_ppm = match words.next() {
        None => 0,
        Some(word) => over_ppm(word).ok_or_else(|| wrong("a budget's share is none"))?,
    };
    if words.next().is_some() {
        return Err(wrong("a budget has words too many"));
    }
    let subject = subject.trim();
    Ok(Budget {
        text: line.to_owned(),
        subject: of_a_task(subject)?,
        limit,
        over_ppm,
    })
}

/// `wake-up of TASK`, `work of TASK`, `response of TASK`; anything else is the name of a period.
fn of_a_task(subject: &str) -> Result<Subject> {
    let task = |words| {
        let task: Option<&str> = subject.strip_prefix(words);
        task.filter(|rest| is_word_end(rest))
            .map(|task| TaskPattern::parse(task.trim()))
    };
    if let Some(task) = task("wake-up of") {
        return task.map(Subject::WakeUp);
    }
    if let Some(task) = task("work of") {
        return task.map(Subject::Work);
    }
    match task("response of") {
        Some(task) => task.map(Subject::Response),
        None => Ok(Subject::Period(subject.to_owned())),
    }
}

/// Whether nothing, or a blank, comes next.
fn is_word_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(' ')
}

/// `p99.9` leaves 1000 of a million.
fn over_ppm(word: &str) -> Option<u32> {
    let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
    let over = (100.0 - percent) * 1e4;
    (percent > 0.0 && percent <= 100.0).then_some(over.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_subject_a_limit_and_a_share_that_may_be_over() {
        let check = |line: &str, expect: Option<(Subject, i64, u32, u64)>| {
            let found = budget(line).ok();
            let found = found.map(|b| {
                let samples_min = b.samples_min();
                (b.subject, b.limit.as_ns(), b.over_ppm, samples_min)
            });
            assert_eq!(found, expect, "{line}");
        };
        let period = |name: &str| Subject::Period(name.to_owned());
        let wake_up = |task: &str| Subject::WakeUp(TaskPattern::parse(task).expect("a task"));
        check(
            "control within 2ms",
            Some((period("control"), 2_000_000, 0, 1)),
        );
        let expect = Some((period("control"), 1_000_000, 1_000, 1_000));
        check("control within 1ms p99.9", expect);
        check(
            "wake-up of npt within 5us p50",
            Some((wake_up("npt"), 5_000, 500_000, 2)),
        );
        check(
            "wake-up of go within me within 5us p50",
            Some((wake_up("go within me"), 5_000, 500_000, 2)),
        );
        check("wake-up of  within 1ms", None);
        check("wake-up of prio:0 within 1ms", None);
        check("control below 2ms", None);
        check("control within 2", None);
        check("control within 2ms p0", None);
        check("control within 2ms p99 always", None);
    }

    #[test]
    fn rules_without_budgets_or_definitions_are_refused() {
        let check = |text: &str, expect: bool| assert_eq!(Rules::parse(text).is_ok(), expect);
        let definition = "period a : $evt.$name == \"x\" :\n  $evt.$name == \"y\"\n";
        check(definition, false);
        check(&format!("# note\n{definition}\na within 1ms"), true);
        check(&format!("{definition}b within 1ms"), false);
        check("wake-up of b within 1ms", true);
    }
}
