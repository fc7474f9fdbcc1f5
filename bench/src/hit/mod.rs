//! What a reported hit costs the task that is late: a victim that measures itself, in turn without
//! and with a watch.

mod victim;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::background::Background;
use crate::options::Options;
use crate::report::{Bar, Cell, Report, Table, number, text};
use crate::stats::{Difference, Random, max, median};
use victim::{Late, Play};

/// What was promised: so much later than without a watch, at most.
const LATER_US_MAX: f64 = 20.0;
const ROUNDS: usize = 20;

/// A way to watch; `hits` says whether the injected delays are over its threshold.
struct Way {
    name: &'static str,
    flags: &'static [&'static str],
    hits: bool,
}

/// The first runs no watch at all.
const WAYS: [Way; 4] = [
    Way {
        name: "no watch",
        flags: &[],
        hits: false,
    },
    Way {
        name: "watch, nothing reported",
        flags: &["--over=10s"],
        hits: false,
    },
    Way {
        name: "watch, hits reported",
        flags: &["--over=1ms"],
        hits: true,
    },
    Way {
        name: "watch --until switch-in, hits reported",
        flags: &["--over=1ms", "--until=switch-in"],
        hits: true,
    },
];

/// A figure of a delay, in microseconds.
type Figure = fn(&Late) -> f64;

/// What the victim reads off its own clock, of each delay, and how it is called.
const FIGURES: [(&str, Figure); 4] = [
    ("its begin after the hog's end", |late| us(late.begin_ns)),
    ("its end after the hog's end", |late| us(late.end_ns)),
    ("the next cycle's begin after it is due", |late| {
        us(late.next_ns)
    }),
    ("the latest begin of the next cycles", |late| {
        us(late.following_ns)
    }),
];

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

/// What the victim measured in one round of one way.
type Round = Vec<Late>;

/// All ways in each round, in another order each time.
pub fn measure(options: &Options) -> Result<Report> {
    let rounds = options.rounds.unwrap_or(options.pick(ROUNDS, 1));
    let play = Play {
        delays: options.pick(16, 2),
        ..Play::USUAL
    };
    let mut found: Vec<Vec<Round>> = WAYS.iter().map(|_| Vec::new()).collect();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..rounds {
        for place in random.shuffled(WAYS.len()) {
            let way = &WAYS[place];
            let late = beside(options, way, &play)
                .with_context(|| format!("the victim beside '{}'", way.name))?;
            found[place].push(late);
        }
    }
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for (figure, of) in FIGURES {
        for (way, its_rounds) in WAYS.iter().zip(&found) {
            let pairs = pairs_of(&found[0], its_rounds, of);
            let difference = Difference::of(&pairs).context("nothing was measured")?;
            let all: Vec<f64> = its_rounds.iter().flatten().map(of).collect();
            let is_base = way.flags.is_empty();
            rows.push(vec![
                text(figure),
                text(way.name),
                median(&all).map_or(Cell::None, |us| number(us, 1)),
                max(&all).map_or(Cell::None, |us| number(us, 1)),
                if is_base {
                    Cell::None
                } else {
                    text(difference.words())
                },
            ]);
            bars.extend(way.hits.then(|| Bar {
                what: format!("{}: {figure}", way.name),
                found: Some(difference.middle),
                limit: LATER_US_MAX,
                unit: "us later",
            }));
        }
    }
    Ok(Report {
        title: "A hit's own cost",
        command: "bench hit".into(),
        setting: setting(rounds, &play),
        tables: vec![Table {
            columns: vec![
                "what the victim measured",
                "beside",
                "median, us",
                "max, us",
                "later than with no watch, us (95 % interval)",
            ],
            rows,
        }],
        bars,
        remarks: vec![not_judged(&found)],
    })
}

/// A figure's median of each round, without a watch and beside one.
fn pairs_of(base: &[Round], beside: &[Round], of: Figure) -> Vec<(f64, f64)> {
    let middle = |round: &Round| median(&round.iter().map(of).collect::<Vec<_>>());
    let pairs = base.iter().zip(beside);
    pairs
        .filter_map(|(base, beside)| Some((middle(base)?, middle(beside)?)))
        .collect()
}

fn setting(rounds: usize, play: &Play) -> String {
    format!(
        "A victim at SCHED_FIFO, of {} ms, on the last CPU. In every {}th cycle a hog of a higher \
         priority runs there from before it is due until {} ms behind that, by the clock; the \
         victim works for a fixed number of turns then ({} us alone). All figures are read off the \
         clock by these two. {rounds} rounds of all ways in random order, {} delays in each; a \
         watch has its flight recorder, and a snapshot of each delay. The difference is of the \
         medians of the rounds.",
        play.period.as_millis(),
        play.every,
        play.delay.as_millis(),
        play.work.as_micros(),
        play.delays,
    )
}

fn not_judged(found: &[Vec<Round>]) -> String {
    let late: Vec<&Late> = found.iter().flatten().flatten().collect();
    let disturbed = late.iter().filter(|late| late.disturbed).count();
    format!(
        "{} delays made it late; in {disturbed} of them, which count too, something stood \
         between the hog's last two readings of the clock for more than {} us.",
        late.len(),
        victim::DISTURBED.as_micros()
    )
}

/// What the victim measures beside a watch, which must have reported what it should.
fn beside(options: &Options, way: &Way, play: &Play) -> Result<Round> {
    if way.flags.is_empty() {
        return play.run();
    }
    let folder = tempfile::tempdir()?;
    let printed = folder.path().join("printed");
    let mut command = Command::new(&options.rtscope);
    command
        .args(["watch", "--json", "--rate=100/s", "--task", victim::NAME])
        .args(way.flags)
        .arg("--output")
        .arg(folder.path().join("snapshots"));
    let watch = Background::start_into_file(command, File::create(&printed)?)?;
    let late = play.run()?;
    drop(watch);
    let hits = hits_in(&printed)?;
    let expect = if way.hits { late.len() } else { 0 };
    // More may be late than what was injected.
    if hits < expect || (expect == 0 && hits > 0) {
        bail!("{hits} hits with a snapshot, of {expect} delays that it had to report");
    }
    Ok(late)
}

/// How many hits with a snapshot a watch printed.
fn hits_in(printed: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(printed)?;
    let mut hits = 0;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).context("the watch's line is no JSON")?;
        hits += usize::from(line["type"] == "hit" && line["snapshot"].is_object());
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rounds_are_compared_by_their_medians_figure_by_figure() {
        let round = |begins: &[i64]| -> Round {
            let late = |begin_ns: &i64| Late {
                begin_ns: *begin_ns,
                ..Late::default()
            };
            begins.iter().map(late).collect()
        };
        let base = [round(&[4_000, 5_000, 90_000]), round(&[6_000])];
        let beside = [round(&[110_000, 100_000, 120_000]), round(&[106_000])];
        let (_, begin) = FIGURES[0];
        let pairs = pairs_of(&base, &beside, begin);
        assert_eq!(pairs, [(5.0, 110.0), (6.0, 106.0)]);
        let (_, next) = FIGURES[2];
        assert_eq!(pairs_of(&base, &beside, next), [(0.0, 0.0), (0.0, 0.0)]);
    }

    #[test]
    fn only_hits_with_a_snapshot_count() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let lines = "{\"type\":\"hit\",\"snapshot\":{}}\n{\"type\":\"hit\"}\n{\"type\":\"end\"}\n";
        std::fs::write(file.path(), lines).expect("written");
        assert_eq!(hits_in(file.path()).expect("JSON"), 1);
    }
}
