//! An evaluation that several runs made: when each measured, what was between them, and when
//! samples were over the limit.

use event::Duration;
use measure::journal::{self, ClockSet, Excursion, LoadState};
use serde_json::{Value, json};

use super::units::us;
use crate::reports::Calendar;

/// On the page, so many.
const SHOWN: usize = 20;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// When all was measured.
    Complete,
    /// By whoever told it to.
    Interrupted,
    /// It was killed.
    Killed,
    /// With the machine, which started anew.
    Rebooted,
}

impl Ended {
    fn name(self) -> &'static str {
        match self {
            Ended::Complete => "complete",
            Ended::Interrupted => "interrupted",
            Ended::Killed => "killed",
            Ended::Rebooted => "rebooted",
        }
    }
}

/// What one run measured.
#[derive(Clone, Debug)]
pub struct RunPart {
    /// Its first instant and its last, in nanoseconds since 1970.
    pub wall_ns: (i64, i64),
    /// The same by the clock of the machine's start, which nobody sets, where that was noted.
    pub since_boot_ns: Option<(i64, i64)>,
    /// When the wall clock was set meanwhile.
    pub clock_set: Vec<ClockSet>,
    /// For how long it measured.
    pub elapsed: Duration,
    /// All its samples.
    pub samples: u64,
    /// The longest of them.
    pub longest: Option<Duration>,
    /// The start of the machine that it saw.
    pub boot: String,
    /// How it ended.
    pub ended: Ended,
    /// Its loads, when it ended.
    pub loads: Vec<LoadState>,
    /// Its samples over the limit, as far as they were kept.
    pub excursions: Vec<Excursion>,
    /// How many more there were.
    pub excursions_left_out: u64,
}

impl RunPart {
    /// So many samples over the limit are listed; the others are counted.
    pub const EXCURSIONS_MAX: usize = 1_000;
}

/// All runs of an evaluation, in their order, and the gaps between them.
#[derive(Clone, Debug, Default)]
pub struct Parts<'a> {
    /// The runs; none where intervals are not kept.
    pub runs: &'a [RunPart],
    /// For how long in all nothing may be measured in between.
    pub gap_allowed: Duration,
    /// From where on a sample is one of [`RunPart::excursions`].
    pub over: Option<Duration>,
}

impl Parts<'_> {
    /// For how long nobody measured between two runs; none where nobody knows, as the machine
    /// started anew and its clock was set back.
    fn gaps(&self) -> impl Iterator<Item = (&RunPart, &RunPart, Option<Duration>)> {
        self.runs.windows(2).filter_map(|pair| {
            let [before, after] = pair else { return None };
            let gap = Duration::from_ns(gap_ns(before, after));
            let gap = (gap >= Duration::ZERO).then_some(gap);
            Some((before, after, gap))
        })
    }

    /// All of them, when all are known.
    fn gap(&self) -> Option<Duration> {
        let each: Option<Vec<i64>> = self
            .gaps()
            .map(|(_, _, gap)| gap.map(Duration::as_ns))
            .collect();
        Some(Duration::from_ns(each?.into_iter().sum()))
    }

    /// Whether the runs are one: no more than was allowed lies between them, and all had their
    /// loads. Those of the last one are judged by their proofs.
    pub(super) fn are_one(&self) -> bool {
        let ran = |part: &RunPart| part.loads.iter().all(|load| load.state == "ran");
        let earlier = &self.runs[..self.runs.len().saturating_sub(1)];
        let is_allowed = |gap| gap <= self.gap_allowed;
        self.gap().is_some_and(is_allowed) && earlier.iter().all(ran)
    }

    /// The keys of an evaluation's object.
    pub(super) fn json(&self, cpu: &dyn Fn(usize) -> Option<u32>) -> [(&'static str, Value); 4] {
        let parts: Vec<Value> = self.runs.iter().map(part_json).collect();
        let gaps = self.gaps().map(|(before, after, gap)| {
            json!({
                "from_wall_ns": before.wall_ns.1,
                "until_wall_ns": after.wall_ns.0,
                "duration_ns": gap.map(Duration::as_ns),
                "why": before.ended.name(),
            })
        });
        let gaps: Vec<Value> = gaps.collect();
        let allowed_ns = (self.runs.len() > 1).then(|| self.gap_allowed.as_ns());
        [
            ("parts", parts.into()),
            ("gaps", gaps.into()),
            ("gap_allowed_ns", allowed_ns.into()),
            ("excursions", self.excursions(cpu)),
        ]
    }

    fn excursions(&self, cpu: &dyn Fn(usize) -> Option<u32>) -> Value {
        let Some(over) = self.over else {
            return Value::Null;
        };
        let mut all: Vec<(usize, &Excursion)> = Vec::new();
        for (number, part) in self.runs.iter().enumerate() {
            all.extend(part.excursions.iter().map(|one| (number, one)));
        }
        all.sort_by_key(|(_, one)| (std::cmp::Reverse(one.latency_ns), one.at_wall_ns));
        let cut = all.len().saturating_sub(RunPart::EXCURSIONS_MAX) as u64;
        let left_out: u64 = self.runs.iter().map(|part| part.excursions_left_out).sum();
        all.truncate(RunPart::EXCURSIONS_MAX);
        let listed = all.iter().map(|(part, one)| {
            json!({
                "part": part,
                "cpu": cpu(one.thread),
                "at_wall_ns": one.at_wall_ns,
                "latency_ns": one.latency_ns,
            })
        });
        json!({
            "over_ns": over.as_ns(),
            "listed": listed.collect::<Vec<_>>(),
            "left_out": left_out + cut,
        })
    }
}

/// By the wall clock only where the machine started anew: until then a clock goes on that nobody
/// sets.
fn gap_ns(before: &RunPart, after: &RunPart) -> i64 {
    match (before.since_boot_ns, after.since_boot_ns) {
        (Some((_, until)), Some((from, _))) if before.boot == after.boot => from - until,
        _ => after.wall_ns.0 - before.wall_ns.1,
    }
}

fn part_json(part: &RunPart) -> Value {
    json!({
        "from_wall_ns": part.wall_ns.0,
        "until_wall_ns": part.wall_ns.1,
        "clock_set": part.clock_set,
        "elapsed_ns": part.elapsed.as_ns(),
        "samples": part.samples,
        "max_ns": part.longest.map(Duration::as_ns),
        "boot": part.boot,
        "ended": part.ended.name(),
        "loads": part.loads,
    })
}

fn list<'a>(evaluation: &'a Value, key: &str) -> &'a [Value] {
    evaluation[key].as_array().map_or(&[], Vec::as_slice)
}

fn time(wall_ns: &Value) -> String {
    let calendar = Calendar {
        utc: true,
        dated: true,
    };
    let text = calendar.time(wall_ns.as_i64().unwrap_or_default());
    // Of a run of days nobody needs nanoseconds.
    text.split_once('.')
        .map_or(text.clone(), |(seconds, _)| seconds.to_owned())
}

fn duration(ns: &Value) -> Duration {
    Duration::from_ns(ns.as_i64().unwrap_or_default())
}

/// Which parts there are and what was between them, nothing of a run that was one; and when the
/// wall clock was set.
pub(super) fn sentences(evaluation: &Value) -> Vec<String> {
    let parts = list(evaluation, "parts");
    let clock_set = parts.iter().flat_map(|part| list(part, "clock_set"));
    let clock_set = clock_set.map(|set| {
        let (by, at) = (duration(&set["by_ns"]), time(&set["at_wall_ns"]));
        format!("the wall clock was set by {by}, to {at} UTC; times before are as it showed them")
    });
    if parts.len() < 2 {
        return clock_set.collect();
    }
    let part = |(number, part): (usize, &Value)| {
        let (from, until) = (time(&part["from_wall_ns"]), time(&part["until_wall_ns"]));
        let (elapsed, samples) = (duration(&part["elapsed_ns"]), &part["samples"]);
        format!(
            "part {}: {from} to {until} UTC, {elapsed} measured, {samples} samples",
            number + 1
        )
    };
    let gap = |gap: &Value| {
        let (from, until) = (time(&gap["from_wall_ns"]), time(&gap["until_wall_ns"]));
        let why = match gap["why"].as_str() {
            Some("rebooted") => "the machine started anew",
            Some("interrupted") => "it was interrupted",
            _ => "it was killed",
        };
        let length = match gap["duration_ns"].as_i64() {
            Some(ns) => format!("{}", Duration::from_ns(ns)),
            None => "nobody knows how long, as the clock was set back".to_owned(),
        };
        format!(
            "not measured: {from} to {until} UTC, {length}: {why}; nobody knows what happened then"
        )
    };
    let parts = parts.iter().enumerate().map(part);
    parts
        .chain(list(evaluation, "gaps").iter().map(gap))
        .chain(clock_set)
        .collect()
}

/// Why the parts are not one, a line each.
pub(super) fn complaints(evaluation: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let gaps = list(evaluation, "gaps").iter();
    let gaps: Option<Vec<i64>> = gaps.map(|gap| gap["duration_ns"].as_i64()).collect();
    let gap = gaps.map(|gaps| Duration::from_ns(gaps.into_iter().sum()));
    let allowed = duration(&evaluation["gap_allowed_ns"]);
    match gap {
        None => lines.push(
            "the clock was set back between two parts: nobody knows for how long nobody measured"
                .to_owned(),
        ),
        Some(gap) if gap > allowed => lines.push(format!(
            "nobody measured for {gap} in between, and {allowed} was allowed: --allow-gap"
        )),
        Some(_) => {}
    }
    let parts = list(evaluation, "parts");
    let earlier = &parts[..parts.len().saturating_sub(1)];
    for (number, part) in (1..).zip(earlier) {
        let complaints = list(part, "loads")
            .iter()
            .filter_map(super::loads::complaint);
        lines.extend(complaints.map(|complaint| format!("part {number}: {complaint}")));
    }
    lines
}

/// When the longest samples over the limit were, a line each.
pub(super) fn moments(evaluation: &Value) -> Vec<String> {
    let excursions = &evaluation["excursions"];
    let listed = list(excursions, "listed");
    let line = |one: &Value| {
        // An application's are on any.
        let cpu = one["cpu"].as_u64();
        let cpu = cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let latency = us(&one["latency_ns"]);
        format!("{} UTC: {latency} us{cpu}", time(&one["at_wall_ns"]))
    };
    let mut lines: Vec<String> = listed.iter().take(SHOWN).map(line).collect();
    let hidden = listed.len().saturating_sub(SHOWN) as u64;
    let more = hidden + excursions["left_out"].as_u64().unwrap_or(0);
    if more > 0 {
        lines.push(format!("and {more} more, in {}", journal::FILE));
    }
    lines
}

/// Both on the page.
pub(super) fn html(evaluation: &Value) -> String {
    let table = |title: &str, lines: &[String]| match lines {
        [] => String::new(),
        lines => {
            let rows = lines
                .iter()
                .map(|line| format!("<li>{}</li>\n", crate::xml::escaped(line)));
            format!(
                "<h2>{title}</h2>\n<ul>\n{}</ul>\n",
                rows.collect::<String>()
            )
        }
    };
    table("When it was measured", &sentences(evaluation))
        + &table("When samples were over the limit", &moments(evaluation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn run(from_s: i64, until_s: i64, ended: Ended, load: &str) -> RunPart {
        let excursion = |at_s: i64| Excursion {
            thread: 1,
            at_wall_ns: at_s * SECOND,
            latency_ns: at_s * 1_000,
        };
        RunPart {
            wall_ns: (from_s * SECOND, until_s * SECOND),
            since_boot_ns: None,
            clock_set: Vec::new(),
            elapsed: Duration::from_ms((until_s - from_s) * 1_000),
            samples: 7,
            longest: Some(Duration::from_us(until_s)),
            boot: "b".to_owned(),
            ended,
            loads: vec![LoadState {
                name: "hackbench".to_owned(),
                state: load.to_owned(),
                why: (load != "ran").then(|| "why".to_owned()),
            }],
            excursions: vec![excursion(from_s), excursion(until_s)],
            excursions_left_out: 2,
        }
    }

    fn object(runs: &[RunPart], gap_allowed_s: i64) -> (bool, Value) {
        let parts = Parts {
            runs,
            gap_allowed: Duration::from_ms(gap_allowed_s * 1_000),
            over: Some(Duration::from_us(1)),
        };
        let cpu = |place: usize| (place == 1).then_some(3);
        let json = parts.json(&cpu).into_iter();
        let json = json.map(|(key, value)| (key.to_owned(), value));
        (parts.are_one(), Value::Object(json.collect()))
    }

    #[test]
    fn parts_are_one_where_the_gap_is_allowed_and_each_had_its_loads() {
        let check = |runs: &[RunPart], allowed_s: i64, expect: bool| {
            let (found, object) = object(runs, allowed_s);
            assert_eq!(found, expect, "{object}");
            assert_eq!(complaints(&object).is_empty(), expect, "{object}");
        };
        let killed = run(10, 20, Ended::Killed, "ran");
        let last = run(50, 60, Ended::Complete, "ran");
        check(std::slice::from_ref(&last), 0, true);
        check(&[killed.clone(), last.clone()], 0, false);
        check(&[killed.clone(), last.clone()], 29, false);
        check(&[killed.clone(), last.clone()], 30, true);
        let both = [
            killed.clone(),
            run(30, 40, Ended::Rebooted, "ran"),
            last.clone(),
        ];
        check(&both, 19, false);
        check(&both, 20, true);
        check(
            &[run(10, 20, Ended::Killed, "idle"), last.clone()],
            30,
            false,
        );
        // The clock was set back: nobody knows how long the gap is, whatever is allowed.
        let set_back = [run(70, 90, Ended::Killed, "ran"), last.clone()];
        check(&set_back, 1_000, false);
        check(&[], 0, true);
    }

    #[test]
    fn a_clock_that_was_set_is_said_and_makes_no_gap_of_one_start_shorter_or_longer() {
        let check = |after_s: i64, boot: &str, expect: Option<i64>| {
            let mut killed = run(10, 20, Ended::Killed, "ran");
            let mut last = run(after_s, after_s + 10, Ended::Complete, "ran");
            killed.since_boot_ns = Some((5 * SECOND, 15 * SECOND));
            last.since_boot_ns = Some((45 * SECOND, 55 * SECOND));
            boot.clone_into(&mut last.boot);
            let (_, object) = object(&[killed, last], 0);
            let gap = object["gaps"][0]["duration_ns"].as_i64();
            assert_eq!(gap, expect.map(|gap| gap * SECOND), "{object}");
        };
        check(50, "b", Some(30));
        // Set back by 25 s, by an hour, and forwards.
        check(25, "b", Some(30));
        check(-3_550, "b", Some(30));
        check(3_650, "b", Some(30));
        // Another start has another clock.
        check(25, "c", Some(5));
        check(-3_550, "c", None);

        let mut one = run(10, 20, Ended::Complete, "ran");
        one.clock_set = vec![ClockSet {
            at_wall_ns: 15 * SECOND,
            by_ns: -100 * SECOND,
        }];
        let (_, object) = object(&[one], 0);
        let expect = "the wall clock was set by -100.000 s, to 1970-01-01 00:00:15 UTC; times \
                      before are as it showed them";
        assert_eq!(sentences(&object), [expect]);
    }

    #[test]
    fn a_gap_is_said_with_its_bounds_and_why_and_excursions_with_their_moment() {
        let runs = [
            run(10, 20, Ended::Rebooted, "ran"),
            run(50, 60, Ended::Complete, "ran"),
        ];
        let (_, object) = object(&runs, 0);
        let gap = &object["gaps"][0];
        assert_eq!(
            (&gap["why"], &gap["duration_ns"]),
            (&"rebooted".into(), &(30 * SECOND).into())
        );
        let said = sentences(&object).join("\n");
        let expect = "not measured: 1970-01-01 00:00:20 to 1970-01-01 00:00:50 UTC, 30.000 s: the \
                      machine started anew";
        assert!(said.contains(expect), "{said}");
        let moments = moments(&object);
        assert_eq!(moments[0], "1970-01-01 00:01:00 UTC: 60.0 us on CPU 3");
        assert_eq!(
            moments.last().map(String::as_str),
            Some("and 4 more, in intervals.ndjson")
        );
        assert!(html(&object).contains("<h2>When it was measured</h2>"));
    }
}
