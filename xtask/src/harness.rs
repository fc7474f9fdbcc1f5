//! What the test harness prints, line by line: how many tests passed, which failed, and why.

/// Of the reason of a failure, so many lines are repeated, and of each line so many characters.
const REASON_LINES: usize = 5;
const REASON_LINE_CHARACTERS: usize = 300;

/// Tests counted by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// They did what they claim.
    pub passed: u64,
    /// They did not.
    pub failed: u64,
    /// They did not run.
    pub skipped: u64,
}

impl Tally {
    /// Counts those of `other` too.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// A test that failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    /// As the harness names it.
    pub name: String,
    /// Where and with what words it panicked; empty when the harness did not say.
    pub reason: Vec<String>,
}

impl Failure {
    /// As the summary shows it, below a line that `word` begins.
    pub fn text(&self, word: &str) -> String {
        let lines = self.reason.iter().map(|line| format!("    {line}\n"));
        format!("{word}: {}\n{}", self.name, lines.collect::<String>())
    }

    /// Takes a line of the test's output, from its panic on.
    fn add_reason(&mut self, text: &str) {
        let is_panic = text.starts_with("thread '") && text.contains("panicked at");
        // What it printed before tells less than the words that it ended with.
        let begins = !self.reason.is_empty() || is_panic;
        if begins && !text.trim().is_empty() && self.reason.len() < REASON_LINES {
            let line = text.chars().take(REASON_LINE_CHARACTERS);
            self.reason.push(line.collect());
        }
    }
}

/// What a run of tests has printed so far.
#[derive(Debug, Default)]
pub struct Report {
    /// Its result lines, added up.
    pub tally: Tally,
    /// In the order in which they failed.
    pub failures: Vec<Failure>,
    /// Whose output is being read, by its place among the failures.
    speaks: Option<usize>,
}

impl Report {
    /// Takes the next line.
    pub fn line(&mut self, text: &str) {
        self.tally.add(result_line(text).unwrap_or_default());
        if let Some((name, reason)) = ended_line(text) {
            self.failures.push(Failure {
                name: name.to_owned(),
                reason: reason.into_iter().map(str::to_owned).collect(),
            });
        } else if let Some(name) = output_line(text) {
            self.speaks = Some(self.place_of(name));
        } else if text == "failures:" || text == "stack backtrace:" {
            self.speaks = None;
        } else if let Some(failure) = self.speaks.and_then(|place| self.failures.get_mut(place)) {
            failure.add_reason(text);
        }
    }

    /// The place of the last failure of this name, which is a new one where what a test's child
    /// printed stands in the line that tells how the test ended.
    fn place_of(&mut self, name: &str) -> usize {
        let known = self.failures.iter().rposition(|some| some.name == name);
        known.unwrap_or_else(|| {
            let name = name.to_owned();
            self.failures.push(Failure {
                name,
                reason: Vec::new(),
            });
            self.failures.len() - 1
        })
    }
}

/// Reads `test a::name ... FAILED`, and the line of a test that took its process with it, which
/// ends before it says how the test did.
fn ended_line(text: &str) -> Option<(&str, Option<&str>)> {
    let rest = text.strip_prefix("test ")?;
    match rest.split_once(" ... ") {
        Some((name, "FAILED")) => Some((name, None)),
        Some((name, "")) => Some((name, Some("it ended the program that it ran in"))),
        _ => None,
    }
}

/// Reads `---- a::name stdout ----`.
fn output_line(text: &str) -> Option<&str> {
    text.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn result_line(text: &str) -> Option<Tally> {
    let counts = text.strip_prefix("test result: ")?.split_once(". ")?.1;
    let of = |name: &str| {
        let part = counts.split("; ").find(|part| part.ends_with(name))?;
        part.split(' ').next()?.parse().ok()
    };
    Some(Tally {
        passed: of("passed")?,
        failed: of("failed")?,
        skipped: of("ignored")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_line_is_counted_and_other_lines_are_not() {
        let check = |text: &str, expect: Option<(u64, u64, u64)>| {
            let expect = expect.map(|(passed, failed, skipped)| Tally {
                passed,
                failed,
                skipped,
            });
            assert_eq!(result_line(text), expect, "{text}");
        };
        let end = "0 measured; 0 filtered out; finished in 0.00s";
        check(
            &format!("test result: ok. 3 passed; 0 failed; 1 ignored; {end}"),
            Some((3, 0, 1)),
        );
        check(
            &format!("test result: FAILED. 3 passed; 2 failed; 0 ignored; {end}"),
            Some((3, 2, 0)),
        );
        check("test time::works ... ok", None);
        check("test result: garbage", None);
    }

    /// What each failed test is known by.
    fn check(text: &str, expect: &[(&str, &[&str])]) {
        let mut report = Report::default();
        text.lines().for_each(|line| report.line(line));
        let found: Vec<(&str, Vec<&str>)> = report
            .failures
            .iter()
            .map(|one| {
                let reason = one.reason.iter().map(String::as_str);
                (one.name.as_str(), reason.collect())
            })
            .collect();
        let expect = expect.iter().map(|(name, why)| (*name, why.to_vec()));
        assert_eq!(found, expect.collect::<Vec<_>>());
    }

    #[test]
    fn a_failed_test_is_known_with_the_words_that_it_ended_with() {
        let text = "\
running 3 tests
test time::works ... ok
test time::fails ... FAILED
test time::panics ... FAILED

failures:

---- time::fails stdout ----
made 3 files

thread 'time::fails' (7) panicked at src/time.rs:3:5:
assertion `left == right` failed: in order
  left: 1
 right: 2
stack backtrace:
   0: somewhere

---- time::panics stdout ----

thread 'time::panics' (8) panicked at src/time.rs:9:5:
1
2
3
4
5
note: run with `RUST_BACKTRACE=1`

failures:
    time::fails
    time::panics

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let fails = [
            "thread 'time::fails' (7) panicked at src/time.rs:3:5:",
            "assertion `left == right` failed: in order",
            "  left: 1",
            " right: 2",
        ];
        let panics = [
            "thread 'time::panics' (8) panicked at src/time.rs:9:5:",
            "1",
            "2",
            "3",
            "4",
        ];
        check(text, &[("time::fails", &fails), ("time::panics", &panics)]);
    }

    #[test]
    fn a_failed_test_whose_child_printed_is_known_by_its_output() {
        let text = "test jack::starts ... connected\nFAILED\n---- jack::starts stdout ----\n\n\
                    thread 'main' (7) panicked at src/jack.rs:3:5:\nno server\n";
        let why: &[&str] = &[
            "thread 'main' (7) panicked at src/jack.rs:3:5:",
            "no server",
        ];
        check(text, &[("jack::starts", why)]);
    }

    #[test]
    fn a_test_that_ends_its_program_is_known_too() {
        let why: &[&str] = &["it ended the program that it ran in"];
        check(
            "test signal::falls ... \nrunning 1 test\n",
            &[("signal::falls", why)],
        );
        check("test signal::stands ... ignored, why\n", &[]);
    }

    #[test]
    fn a_failure_is_shown_with_its_reason_below_it() {
        let failure = Failure {
            name: "time::fails".to_owned(),
            reason: vec!["at src/time.rs".to_owned(), "left".to_owned()],
        };
        assert_eq!(
            failure.text("failed"),
            "failed: time::fails\n    at src/time.rs\n    left\n"
        );
    }
}
