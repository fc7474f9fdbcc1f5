//! The text of budgets: definitions of periods, and what must not take longer than how long.

use event::{Duration, Error, ErrorKind, NamedTask, Result, TaskPattern};
use expr::nearest;
use expr::period::Periods;

use super::handled::{Called, Which};

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
    /// How long the handlers of interrupts with this name or number run.
    Irq(Called),
    /// The same of softirqs.
    Softirq(Called),
    /// How long system calls of this name take, of these threads.
    Call(Called, Option<TaskPattern>),
    /// From the instant for which a timer was set to its function, of those that these threads set.
    Timer(Option<TaskPattern>),
}

impl Subject {
    /// Whether it is about handlers or timers.
    pub(super) fn is_handled(&self) -> bool {
        matches!(
            self,
            Subject::Irq(_) | Subject::Softirq(_) | Subject::Timer(_)
        )
    }

    /// Whether it begins where a timer is due that wakes a thread.
    pub(super) fn is_released(&self) -> bool {
        matches!(self, Subject::Response(_))
    }

    /// Whether it is about this handler.
    pub(super) fn is_handler(&self, which: Which, name: &str, number: Option<i64>) -> bool {
        match (self, which) {
            (Subject::Irq(wanted), Which::Irq(..) | Which::Vector(_))
            | (Subject::Softirq(wanted), Which::Softirq(_)) => wanted.means(name, number),
            _ => false,
        }
    }

    /// Whether it is about timers that this thread set; nobody knows it of one without.
    pub(super) fn is_timer_of(&self, task: Option<&NamedTask<'_>>) -> bool {
        match self {
            Subject::Timer(None) => true,
            Subject::Timer(Some(wanted)) => task.is_some_and(|task| wanted.matches(task)),
            _ => false,
        }
    }

    /// Whether it is about calls of this name by this thread.
    pub(super) fn is_call_of(&self, name: &str, task: &NamedTask<'_>) -> bool {
        self.may_be_call_of(Some(name), Some(task))
    }

    /// The same of a call of which the name or the thread may be unknown: it may be any.
    pub(super) fn may_be_call_of(&self, name: Option<&str>, task: Option<&NamedTask<'_>>) -> bool {
        match self {
            Subject::Call(wanted, of) => {
                let is_other = |of: &TaskPattern| task.is_some_and(|task| !of.matches(task));
                name.is_none_or(|name| wanted.means(name, None))
                    && !of.as_ref().is_some_and(is_other)
            }
            _ => false,
        }
    }
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
    /// irq virtio* within 50us
    /// system call futex of npt within 1ms
    /// timer of npt within 50us
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the line that is none, or the period that is not defined.
    pub fn parse(text: &str) -> Result<Rules> {
        Rules::read(text)?.defined()
    }

    /// The same where a name may be of something else than a period: of what a monitor's store has.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] names the line that is none.
    pub fn read(text: &str) -> Result<Rules> {
        let mut definitions: Vec<String> = Vec::new();
        let mut lines: Vec<String> = Vec::new();
        for line in joined(text) {
            match line.strip_prefix("period ") {
                Some(definition) => definitions.push(definition.trim().to_owned()),
                None => lines.push(line),
            }
        }
        let none: [&str; 0] = [];
        let periods = Periods::parse(&definitions, &none)?;
        let budgets = lines.iter().map(|line| budget(line, &periods));
        let budgets = budgets.collect::<Result<Vec<Budget>>>()?;
        if budgets.is_empty() {
            let error = Error::new(ErrorKind::InvalidInput, "the rules have no budget");
            return Err(error.found("only definitions").fix(FORM));
        }
        Ok(Rules { periods, budgets })
    }

    /// The rules, whose periods are all defined.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] names the period that is not.
    pub fn defined(self) -> Result<Rules> {
        for budget in &self.budgets {
            let Subject::Period(name) = &budget.subject else {
                continue;
            };
            let is_it = |period: &expr::period::Period| period.name.as_deref() == Some(name);
            if !self.periods.list().iter().any(is_it) {
                return Err(no_period(name, &self.periods));
            }
        }
        Ok(self)
    }
}

const FORM: &str = "write budgets as 'control within 1ms p99.9', 'wake-up of npt within 100us', \
                    'work of npt within 1ms', 'response of npt within 2ms', 'irq 36 within 50us', \
                    'softirq NET_RX within 1ms', 'system call futex of npt within 1ms' or \
                    'timer of npt within 50us'";

/// What a budget may be about besides a period, as far as it is always the same.
const SUBJECTS: [&str; 7] = [
    "wake-up of",
    "work of",
    "response of",
    "irq",
    "softirq",
    "system call",
    "timer of",
];

/// Nothing has the name of a budget: it is mistyped, or not defined.
fn no_period(name: &str, periods: &Periods) -> Error {
    let near_subject = SUBJECTS.iter().find_map(|subject| {
        let words = subject.split(' ').count();
        let typed: Vec<&str> = name.split(' ').take(words).collect();
        let typed = typed.join(" ");
        let rest = name.get(typed.len()..)?;
        nearest(&typed, std::iter::once(*subject))?;
        Some(format!("{subject}{rest}"))
    });
    let names = || {
        periods
            .list()
            .iter()
            .filter_map(|period| period.name.as_deref())
    };
    let near = near_subject.or_else(|| nearest(name, names()).map(str::to_owned));
    let fix = match near {
        Some(near) => format!("perhaps '{near}' is meant; {FORM}"),
        // The name of a period is one word.
        None if name.contains(' ') => FORM.to_owned(),
        None => format!("define it: period {name} : BEGIN : END; or {FORM}"),
    };
    let error = Error::new(ErrorKind::NotFound, "no period has the budget's name");
    error.found(format!("'{name}'")).fix(fix)
}

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

fn budget(line: &str, periods: &Periods) -> Result<Budget> {
    let wrong = |what: &str| {
        let error = Error::new(ErrorKind::InvalidInput, what);
        error.found(format!("'{line}'")).fix(FORM)
    };
    // The name of a task may have the word in it, what follows cannot.
    let Some((subject, rest)) = line.rsplit_once(" within ") else {
        return Err(wrong("a line is no rule"));
    };
    let mut words = rest.split_whitespace();
    let limit = words
        .next()
        .ok_or_else(|| wrong("a budget has no duration"))?;
    let limit = Duration::parse(limit).map_err(|error| wrong(error.what()))?;
    let over_ppm = match words.next() {
        None => 0,
        Some(word) => {
            over_ppm(word).ok_or_else(|| wrong("a budget's share is none of whole millionths"))?
        }
    };
    if words.next().is_some() {
        return Err(wrong("a budget has words too many"));
    }
    let subject = subject.trim();
    let mut defined = periods.list().iter();
    let subject = match defined.any(|period| period.name.as_deref() == Some(subject)) {
        true => Subject::Period(subject.to_owned()),
        false => named(subject)?,
    };
    Ok(Budget {
        text: line.to_owned(),
        subject,
        limit,
        over_ppm,
    })
}

/// `wake-up of TASK`, `irq NAME` and the like; anything else is the name of a period.
fn named(subject: &str) -> Result<Subject> {
    let rest = |words| {
        let rest: Option<&str> = subject.strip_prefix(words);
        rest.filter(|rest| is_word_end(rest)).map(str::trim)
    };
    if let Some(task) = rest("wake-up of") {
        return TaskPattern::parse(task).map(Subject::WakeUp);
    }
    if let Some(task) = rest("work of") {
        return TaskPattern::parse(task).map(Subject::Work);
    }
    if let Some(task) = rest("response of") {
        return TaskPattern::parse(task).map(Subject::Response);
    }
    if let Some(name) = rest("irq") {
        return Called::parse(name).map(Subject::Irq);
    }
    if let Some(name) = rest("softirq") {
        return Called::parse(&name.to_ascii_uppercase()).map(Subject::Softirq);
    }
    if let Some(call) = rest("system call") {
        let (name, tasks) = of_a_task(call)?;
        return Ok(Subject::Call(Called::parse(name)?, tasks));
    }
    match rest("timer") {
        Some("") => Ok(Subject::Timer(None)),
        Some(tasks) => match tasks.strip_prefix("of ") {
            Some(task) => TaskPattern::parse(task.trim()).map(|task| Subject::Timer(Some(task))),
            None => Ok(Subject::Period(subject.to_owned())),
        },
        None => Ok(Subject::Period(subject.to_owned())),
    }
}

/// `futex of TASK`, or `futex` of any.
fn of_a_task(call: &str) -> Result<(&str, Option<TaskPattern>)> {
    match call.split_once(" of ") {
        Some((name, task)) => Ok((name.trim(), Some(TaskPattern::parse(task.trim())?))),
        None => Ok((call, None)),
    }
}

/// Whether nothing, or a blank, comes next.
fn is_word_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(' ')
}

/// `p99.9` leaves 1000 of a million. A share that is no whole number of these is none: rounded, it
/// would be another.
fn over_ppm(word: &str) -> Option<u32> {
    let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
    let over = (100.0 - percent) * 1e4;
    let is_share = percent > 0.0 && percent <= 100.0 && (over - over.round()).abs() < 1e-6;
    is_share.then_some(over.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_subject_a_limit_and_a_share_that_may_be_over() {
        let check = |line: &str, expect: Option<(Subject, i64, u32, u64)>| {
            let found = budget(line, &Periods::default()).ok();
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
        let all = Some((period("control"), 2_000_000, 0, 1));
        check("control within 2ms p100", all);
        let finest = Some((period("control"), 2_000_000, 1, 1_000_000));
        check("control within 2ms p99.9999", finest);
        check("control within 2ms p99.99999", None);
        check("control within 2ms p99.99995", None);
        check("control within 2ms p100.1", None);
        check("control within 2ms pNaN", None);
        check("control within 2ms p99 always", None);
    }

    #[test]
    fn handlers_calls_and_timers_are_subjects_unless_a_period_has_the_name() {
        let called = |text: &str| Called::parse(text).expect("a name");
        let npt = || Some(TaskPattern::parse("npt").expect("a task"));
        let check = |line: &str, expect: Option<Subject>| {
            let found = budget(line, &Periods::default()).ok();
            assert_eq!(found.map(|budget| budget.subject), expect, "{line}");
        };
        check("irq 36 within 5us", Some(Subject::Irq(called("36"))));
        let local_timer = Subject::Irq(called("local timer"));
        check("irq local timer within 5us", Some(local_timer));
        let net_rx = || Some(Subject::Softirq(called("NET_RX")));
        check("softirq net_rx within 5us", net_rx());
        check("softirq NET_RX within 5us p99", net_rx());
        let futex = |task| Some(Subject::Call(called("futex"), task));
        check("system call futex within 5us", futex(None));
        check("system call futex of npt within 5us", futex(npt()));
        check("timer within 5us", Some(Subject::Timer(None)));
        check("timer of npt within 5us", Some(Subject::Timer(npt())));
        for none in ["irq", "softirq", "system call", "timer of prio:0"] {
            check(&format!("{none} within 5us"), None);
        }
        for other in ["timers", "irqs 3", "timer npt"] {
            let period = Subject::Period(other.to_owned());
            check(&format!("{other} within 5us"), Some(period));
        }
        let text = "period timer : $evt.$name == \"x\" : $evt.$name == \"y\"\ntimer within 1ms";
        let rules = Rules::parse(text).expect("rules");
        let period = Subject::Period("timer".to_owned());
        assert_eq!(rules.budgets[0].subject, period);
    }

    #[test]
    fn a_mistyped_budget_is_told_what_is_near_and_what_its_duration_lacks() {
        let check = |text: &str, what: &str, fix: &str| {
            let error = Rules::parse(text).expect_err(text);
            assert_eq!(error.what(), what, "{text}");
            assert!(error.value_found().is_some(), "{text}");
            let said = error.fixed_by().unwrap_or_default();
            assert!(said.starts_with(fix), "{text}: {said}");
        };
        let none = "no period has the budget's name";
        let near = "perhaps 'response of victim' is meant";
        check("respons of victim within 3ms", none, near);
        check(
            "wakeup of npt within 3ms",
            none,
            "perhaps 'wake-up of npt' is meant",
        );
        let defined = "period control : $evt.$name == \"x\" : $evt.$name == \"y\"\n";
        check(
            &format!("{defined}contol within 1ms"),
            none,
            "perhaps 'control' is meant",
        );
        check(
            "elsewhere within 1ms",
            none,
            "define it: period elsewhere : BEGIN : END; or",
        );
        check("all of it within 1ms", none, "write budgets as");
        let unit = "not a duration: no unit";
        check("response of victim within 3", unit, "write budgets as");
        let unknown = "not a duration: unknown unit";
        check(
            "response of victim within 3parsec",
            unknown,
            "write budgets as",
        );
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
