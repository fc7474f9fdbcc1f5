//! What a snapshot's own events say of an accusation, without any rule of the diagnosis: who had a
//! CPU by its switches, and whether the other CPUs were silent when it was.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::hit::{Culprit, Hit};

/// Terms that say that a task had the CPU by the scheduler's choice.
const BY_CHOICE: [&str; 7] = [
    "run_queue_wait",
    "priority_inversion",
    "lock_wait",
    "upstream",
    "throttled",
    "stop_class",
    "own_run",
];
/// Such a term is borne out when the task had CPUs for so many percent of it.
const RAN_PERCENT: i64 = 70;
/// Silence for so many percent of another term, on every CPU at once, speaks against it: nothing
/// says that a CPU was at work at all.
const SILENT_PERCENT: i64 = 50;
/// Shorter silence says nothing: a CPU at work has an event at each tick, every 4 ms.
const SILENT_NS_MIN: i64 = 5_000_000;

/// A snapshot's events: when each CPU had one, and who came when.
#[derive(Debug, Default)]
pub struct Events {
    instants_ns: BTreeMap<u32, Vec<i64>>,
    switches: BTreeMap<u32, Vec<Switch>>,
}

/// Who came on a CPU.
#[derive(Clone, Debug)]
struct Switch {
    at_ns: i64,
    /// As it was called when it came, and when it left.
    names: [String; 2],
    tid: i64,
}

impl Events {
    /// Of the snapshot `folder`, as `program` prints it.
    pub fn of(program: &Path, folder: &Path) -> Result<Events> {
        let mut command = Command::new(program);
        let output = command
            .arg("cat")
            .arg(folder)
            .arg("--clock-cycles")
            .output();
        let output = output.context("cannot start rtscope")?;
        Ok(Events::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Lines `[NS] (+…) HOST CLASS: { cpu_id = N }, { … next_comm = "NAME", … }`.
    fn parse(text: &str) -> Events {
        let mut events = Events::default();
        for line in text.lines() {
            let Some((ns, cpu)) = place(line) else {
                continue;
            };
            events.instants_ns.entry(cpu).or_default().push(ns);
            if line.contains("sched_switch: ") {
                events.switch(line, ns, cpu);
            }
        }
        events
    }

    fn switch(&mut self, line: &str, at_ns: i64, cpu: u32) {
        let switches = self.switches.entry(cpu).or_default();
        let name = |key: &str| text(line, key);
        if let Some(last) = switches.last_mut() {
            last.names[1] = name("prev_comm = ");
        }
        switches.push(Switch {
            at_ns,
            names: [name("next_comm = "), String::new()],
            tid: value(line, "next_tid = ").parse().unwrap_or(-1),
        });
    }

    /// Why the events do not bear out what a hit says of its first culprit; none when they do.
    pub fn against(&self, hit: &Hit) -> Option<String> {
        let first = hit.culprits.first()?;
        match BY_CHOICE.contains(&first.kind.as_str()) {
            true => self.did_not_run(hit, first),
            false => self.stood_still(hit, first),
        }
    }

    fn did_not_run(&self, hit: &Hit, culprit: &Culprit) -> Option<String> {
        let runs = self
            .switches
            .values()
            .map(|of| ran_ns(of, culprit, hit.span()));
        let ran_ns: i64 = runs.sum();
        let enough = ran_ns * 100 >= culprit.duration_ns * RAN_PERCENT;
        (!enough).then(|| format!("its switches show it for {ran_ns} ns: "))
    }

    /// The longest time within the hit in which no CPU had an event.
    fn stood_still(&self, hit: &Hit, culprit: &Culprit) -> Option<String> {
        let (from_ns, to_ns) = hit.span();
        let mut all: Vec<i64> = self.instants_ns.values().flatten().copied().collect();
        all.retain(|ns| (from_ns..=to_ns).contains(ns));
        all.extend([from_ns, to_ns]);
        all.sort_unstable();
        let gaps = all.windows(2).map(|two| two[1] - two[0]);
        let silent_ns = gaps.max().unwrap_or(0);
        let others = self.instants_ns.len() > 1;
        let long = silent_ns >= SILENT_NS_MIN;
        let still = others && long && silent_ns * 100 >= culprit.duration_ns * SILENT_PERCENT;
        still.then(|| format!("every CPU was silent for {silent_ns} ns: "))
    }
}

fn place(line: &str) -> Option<(i64, u32)> {
    let ns = line.strip_prefix('[')?.split(']').next()?.parse().ok()?;
    let cpu = line.split("cpu_id = ").nth(1)?;
    let cpu = cpu.split([' ', ',']).next()?.parse().ok()?;
    Some((ns, cpu))
}

/// What stands behind a key, up to the next comma or space behind it.
fn value<'a>(line: &'a str, key: &str) -> &'a str {
    let rest = line.split(key).nth(1).unwrap_or_default();
    rest.split([',', ' ']).next().unwrap_or_default()
}

/// The text in quotes behind a key, where a quote or a backslash of its own has one before it.
fn text(line: &str, key: &str) -> String {
    let rest = line.split(key).nth(1).unwrap_or_default();
    let mut chars = rest.strip_prefix('"').unwrap_or_default().chars();
    let mut text = String::new();
    while let Some(char) = chars.next().filter(|char| *char != '"') {
        match char {
            '\\' => text.extend(chars.next()),
            other => text.push(other),
        }
    }
    text
}

/// How long the tasks that are meant had a CPU within a span, by its switches.
fn ran_ns(switches: &[Switch], culprit: &Culprit, (from_ns, to_ns): (i64, i64)) -> i64 {
    let ends = switches.iter().skip(1).map(|next| next.at_ns);
    let runs = switches.iter().zip(ends.chain([i64::MAX]));
    let is_meant = |run: &Switch| {
        let mut names = run.names.iter();
        run.tid == culprit.tid || names.any(|name| culprit.names.contains(name))
    };
    let theirs = runs.filter(|(run, _)| is_meant(run));
    let spans = theirs.map(|(run, end_ns)| end_ns.min(to_ns) - run.at_ns.max(from_ns));
    spans.map(|ns| ns.max(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(kind: &str, name: &str, duration_ns: i64) -> Hit {
        Hit {
            origin_ns: 100,
            end_ns: 1100,
            culprits: vec![Culprit {
                kind: kind.to_owned(),
                names: vec![name.to_owned()],
                tid: 0,
                duration_ns,
                waiter: String::new(),
            }],
            ..Hit::default()
        }
    }

    fn line(ns: i64, cpu: u32, next: &str) -> String {
        format!(
            "[{ns}] (+0) vm sched_switch: {{ cpu_id = {cpu} }}, {{ prev_comm = \"?\", \
             next_comm = \"{next}\", next_tid = 7 }}\n"
        )
    }

    #[test]
    fn who_ran_by_the_switches_is_rightly_said_to_have_run() {
        let text = [(50, 0, "hog"), (900, 0, "v"), (500, 1, "x")];
        let text: String = text.map(|(ns, cpu, next)| line(ns, cpu, next)).concat();
        let events = Events::parse(&text);
        let against = |name: &str| events.against(&hit("run_queue_wait", name, 800));
        assert_eq!(against("hog"), None);
        assert!(against("v").is_some());
        assert!(against("absent").is_some());
        // Printed with a backslash before what would end the text, and before itself.
        for (printed, name) in [(r"\\", r"\"), (r#"a\"b"#, r#"a"b"#)] {
            let text = line(50, 0, printed) + &line(900, 0, "v");
            let found = Events::parse(&text).against(&hit("own_run", name, 800));
            assert_eq!(found, None, "{printed}");
        }
    }

    #[test]
    fn silence_of_all_cpus_speaks_against_a_section_and_work_elsewhere_does_not() {
        let check = |beats_ms: &[i64], expect: bool| {
            let mut text = line(0, 0, "f") + &line(20_000_000, 0, "v");
            beats_ms
                .iter()
                .for_each(|ms| text += &line(ms * 1_000_000, 1, "x"));
            let hit = Hit {
                end_ns: 20_000_000,
                origin_ns: 0,
                ..hit("interrupts_off", "f", 9_000_000)
            };
            let against = Events::parse(&text).against(&hit);
            assert_eq!(against.is_some(), expect, "{beats_ms:?}");
        };
        check(&[1, 19], true);
        check(&[1, 6, 19], true);
        check(&[4, 8, 12, 16], false);
    }
}
