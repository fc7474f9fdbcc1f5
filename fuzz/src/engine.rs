//! The loop: take an input, change it, run the reader, keep what reached something new.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::grammar::Grammar;
use crate::guard::{self, Taken};
use crate::mutate;
use crate::random::Random;

/// Inputs that are kept for changing; beyond, old ones give way at random.
const KEPT_MAX: usize = 4096;
/// Runs that a finding is made smaller with.
const SHRINKS_MAX: usize = 600;
/// One in so many inputs follows the grammar, where there is one.
const GRAMMAR_ONE_IN: usize = 4;

/// A reader under test.
pub struct Reader {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it reads, in words.
    pub what: &'static str,
    /// Sound inputs, made by our own writers or by hand.
    pub seeds: fn(&mut Random) -> Vec<Vec<u8>>,
    /// Its language, when it has one.
    pub grammar: Option<&'static str>,
    /// Reads an input; a panic is a finding.
    pub run: fn(&[u8]),
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Wall-clock time.
    pub time: Duration,
    /// Executions.
    pub executions: u64,
    /// Findings; the rest would be more of the same.
    pub findings: usize,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it was, and where.
    pub what: String,
    /// An input that shows it, made small.
    pub input: Vec<u8>,
}

/// What came of one reader.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Sound inputs at the begin.
    pub seeds: usize,
    /// Runs.
    pub executions: u64,
    /// Inputs that were kept because they reached something new.
    pub kept: usize,
    /// Edges that were run over.
    pub edges: usize,
    /// Of so many in the whole program; zero where it has no counters.
    pub edges_total: usize,
    /// The most that a run took.
    pub memory_bytes_max: usize,
    /// The longest run.
    pub cpu_ms_max: u64,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// What the panic hook noted of the last panic.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Panics are noted instead of printed.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or(payload.downcast_ref::<String>().map(String::as_str));
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let note = format!("panic at {place}: {}", text.unwrap_or("no text"));
        *LAST_PANIC.lock().unwrap_or_else(|held| held.into_inner()) = note;
    }));
}

/// Runs `reader` once; none when it kept its promises.
fn run(reader: &Reader, input: &[u8]) -> (Option<String>, Taken) {
    let (result, taken) = guard::watched(input, |input| {
        catch_unwind(AssertUnwindSafe(|| (reader.run)(input)))
    });
    let broken = if result.is_err() {
        let note = LAST_PANIC.lock().unwrap_or_else(|held| held.into_inner());
        Some(note.clone())
    } else if taken.memory_bytes > guard::MEMORY_BYTES_MAX {
        Some("too much memory".to_owned())
    } else if taken.cpu_ms > guard::RUN_MS_MAX {
        Some("too much time".to_owned())
    } else {
        None
    };
    (broken, taken)
}

/// Everything that one reader's fuzzing knows.
struct Fuzzing<'a> {
    reader: &'a Reader,
    grammar: Option<Grammar>,
    words: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    coverage: Coverage,
    known: BTreeSet<String>,
    outcome: Outcome,
}

/// Fuzzes `reader` with the numbers of `seed` until the budget is used up.
pub fn fuzz(reader: &Reader, seed: u64, budget: Budget) -> Outcome {
    let mut random = Random::new(seed);
    let seeds = (reader.seeds)(&mut random);
    let grammar = reader.grammar.map(Grammar::new);
    let mut fuzzing = Fuzzing {
        reader,
        words: grammar.as_ref().map(Grammar::words).unwrap_or_default(),
        grammar,
        kept: Vec::new(),
        coverage: Coverage::new(),
        known: BTreeSet::new(),
        outcome: Outcome {
            seeds: seeds.len(),
            ..Outcome::default()
        },
    };
    let begin = Instant::now();
    for input in seeds {
        fuzzing.try_input(input, true, &mut random);
    }
    while fuzzing.outcome.executions < budget.executions
        && begin.elapsed() < budget.time
        && fuzzing.outcome.findings.len() < budget.findings
    {
        let input = fuzzing.next_input(&mut random);
        fuzzing.try_input(input, false, &mut random);
    }
    Outcome {
        kept: fuzzing.kept.len(),
        edges: fuzzing.coverage.edges(),
        edges_total: fuzzing.coverage.total(),
        ..fuzzing.outcome
    }
}

impl Fuzzing<'_> {
    /// An input of the grammar, or a kept one with changes; the latest are taken more often.
    fn next_input(&self, random: &mut Random) -> Vec<u8> {
        if let Some(grammar) = self
            .grammar
            .as_ref()
            .filter(|_| random.one_in(GRAMMAR_ONE_IN))
        {
            let mut input = grammar.input(random);
            if random.one_in(2) {
                self.change(&mut input, random);
            }
            return input;
        }
        let recent = self.kept.len().saturating_sub(32);
        let place = match random.one_in(2) {
            true => recent + random.below(self.kept.len() - recent),
            false => random.below(self.kept.len()),
        };
        let mut input = self.kept.get(place).cloned().unwrap_or_default();
        self.change(&mut input, random);
        input
    }

    fn change(&self, input: &mut Vec<u8>, random: &mut Random) {
        let words: Vec<&[u8]> = match random.pick(&self.words) {
            Some(word) => vec![word],
            None => vec![b"\0", b"\xff", b" ", b"\n"],
        };
        mutate::mutate(input, &self.kept, &words, random);
    }

    fn try_input(&mut self, input: Vec<u8>, is_seed: bool, random: &mut Random) {
        self.coverage.reset();
        let (broken, taken) = run(self.reader, &input);
        let new = self.coverage.look();
        let outcome = &mut self.outcome;
        outcome.executions += 1;
        outcome.memory_bytes_max = outcome.memory_bytes_max.max(taken.memory_bytes);
        outcome.cpu_ms_max = outcome.cpu_ms_max.max(taken.cpu_ms);
        if let Some(what) = broken {
            if self.known.insert(kind_of(&what)) {
                let input = shrink(self.reader, input, &what, random);
                self.outcome.findings.push(Finding { what, input });
            }
            return;
        }
        // Without counters, keep some of what comes, so that changes add up.
        let is_blind = self.coverage.total() == 0;
        if is_seed || new > 0 || is_blind && random.one_in(50) {
            if self.kept.len() < KEPT_MAX {
                self.kept.push(input);
            } else {
                let place = random.below(KEPT_MAX);
                self.kept[place] = input;
            }
        }
    }
}

/// The same bug may speak of other numbers: what stands before the place's end tells bugs apart.
fn kind_of(what: &str) -> String {
    let end = what
        .match_indices(": ")
        .next()
        .map_or(what.len(), |(at, _)| at);
    what[..end].to_owned()
}

/// A smaller input that breaks the same promise.
fn shrink(reader: &Reader, mut input: Vec<u8>, what: &str, random: &mut Random) -> Vec<u8> {
    let kind = kind_of(what);
    for _ in 0..SHRINKS_MAX {
        if input.len() < 2 {
            break;
        }
        let at = random.below(input.len());
        let length = 1 + random.below((input.len() / 2).min(256));
        let end = (at + length).min(input.len());
        let mut smaller = input.clone();
        smaller.drain(at..end);
        let (broken, taken) = run(reader, &smaller);
        if broken.is_some_and(|what| kind_of(&what) == kind) {
            input = smaller;
        }
        if taken.cpu_ms > guard::RUN_MS_MAX {
            break;
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        time: Duration::from_secs(60),
        executions: 2000,
        findings: 8,
    };

    fn reader(run: fn(&[u8])) -> Reader {
        Reader {
            name: "test",
            what: "a test",
            seeds: |_| vec![b"some input that is long".to_vec()],
            grammar: None,
            run,
        }
    }

    #[test]
    fn a_panic_is_found_once_and_made_small() {
        note_panics();
        let reader = reader(|input| assert!(!input.contains(&b'q'), "a q: {}", input.len()));
        let outcome = fuzz(&reader, 3, BUDGET);
        assert_eq!(outcome.findings.len(), 1, "{outcome:?}");
        assert!(outcome.findings[0].input.len() < 8, "{outcome:?}");
        assert_eq!(outcome.executions, BUDGET.executions);
    }

    #[test]
    fn a_reader_that_keeps_its_promises_has_no_finding() {
        let outcome = fuzz(&reader(|_| {}), 4, BUDGET);
        assert_eq!(outcome.findings, []);
        assert_eq!((outcome.seeds, outcome.executions), (1, BUDGET.executions));
    }
}
