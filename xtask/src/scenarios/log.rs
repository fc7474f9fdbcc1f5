//! What the actor wrote of a scenario: who did what from when to when.

use super::language::VICTIM;

/// What a scenario's tasks did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    /// The scenario's name.
    pub name: String,
    /// On CLOCK_MONOTONIC, as all instants here.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Its tasks: what each is called at first, and its number.
    pub tasks: Vec<(String, i64)>,
    /// In the order in which they ended.
    pub entries: Vec<Entry>,
}

/// One step of one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub role: String,
    pub name: String,
    pub what: String,
    /// Of an activation: when its wait was to end.
    pub due_ns: i64,
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Entry {
    /// The line of a task; none for what is none.
    fn parse(line: &str) -> Option<Entry> {
        let words: Vec<&str> = line.split(' ').collect();
        let ns = |text: &str| text.parse::<i64>().ok();
        match words[..] {
            ["kernel", _, function, _, begin, end] => Some(Entry {
                role: "kernel".to_owned(),
                name: function.to_owned(),
                what: "inject".to_owned(),
                due_ns: ns(begin)?,
                begin_ns: ns(begin)?,
                end_ns: ns(end)?,
            }),
            [role, name, _, what, _, due, begin, end] => Some(Entry {
                role: role.to_owned(),
                name: name.to_owned(),
                what: what.to_owned(),
                due_ns: ns(due)?,
                begin_ns: ns(begin)?,
                end_ns: ns(end)?,
            }),
            _ => None,
        }
    }
}

impl Played {
    /// The victim's activations.
    pub fn activations(&self) -> impl Iterator<Item = &Entry> {
        let of_victim = |entry: &&Entry| entry.name == VICTIM && entry.what == "activation";
        self.entries.iter().filter(of_victim)
    }

    /// When its faults were made: by culprits, by the kernel's injector, by the victim itself.
    pub fn faults(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(|entry| match entry.role.as_str() {
                "culprit" | "kernel" => entry.what != "activation",
                "victim" => ["burn", "touch", "spin"].contains(&entry.what.as_str()),
                _ => false,
            })
    }
}

/// How much of a span causes cover, each moment once: one that has a CPU by the clock goes on where
/// another one is ahead of it.
pub fn covered_ns<'a>(
    causes: impl Iterator<Item = &'a Entry>,
    (from_ns, to_ns): (i64, i64),
) -> i64 {
    let mut spans: Vec<(i64, i64)> = causes
        .map(|entry| (entry.begin_ns.max(from_ns), entry.end_ns.min(to_ns)))
        .collect();
    spans.sort_unstable();
    let (mut covered_ns, mut until_ns) = (0, from_ns);
    for (begin_ns, end_ns) in spans {
        covered_ns += (end_ns - begin_ns.max(until_ns)).max(0);
        until_ns = until_ns.max(end_ns);
    }
    covered_ns
}

/// What each scenario's tasks did, in the order in which they were played.
pub fn parse(text: &str) -> Vec<Played> {
    let mut all: Vec<Played> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["scenario", name, begin, end] = words[..] {
            all.push(Played {
                name: name.to_owned(),
                begin_ns: begin.parse().unwrap_or_default(),
                end_ns: end.parse().unwrap_or_default(),
                ..Played::default()
            });
        } else if let (Some(played), ["task", name, tid]) = (all.last_mut(), &words[..]) {
            let tid = tid.parse().unwrap_or_default();
            played.tasks.push(((*name).to_owned(), tid));
        } else if let (Some(played), Some(entry)) = (all.last_mut(), Entry::parse(line)) {
            played.entries.push(entry);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_causes_of_one_moment_cover_it_once() {
        let check = |spans: &[(i64, i64)], expect_ns: i64| {
            let entry = |(begin_ns, end_ns): &(i64, i64)| Entry {
                begin_ns: *begin_ns,
                end_ns: *end_ns,
                ..Entry::default()
            };
            let entries: Vec<Entry> = spans.iter().map(entry).collect();
            assert_eq!(
                covered_ns(entries.iter(), (100, 200)),
                expect_ns,
                "{spans:?}"
            );
        };
        check(&[], 0);
        check(&[(0, 50), (300, 400)], 0);
        check(&[(0, 150)], 50);
        check(&[(170, 400), (110, 120)], 40);
        check(&[(110, 160), (120, 150), (140, 180)], 70);
    }

    #[test]
    fn each_line_belongs_to_the_scenario_before_it() {
        let text = "\
scenario a 100 900
task lab-victim 7
victim lab-victim 7 activation - 200 210 220
culprit hog 8 burn - 300 300 400
helper feeder 9 activation - 300 300 400
scenario b 1000 1900
kernel irqoff lab_drain_fifo 0 1200 1300
victim lab-victim 7 lock m 1200 1200 1210
nonsense
";
        let all = parse(text);
        let names: Vec<(&str, usize)> = all
            .iter()
            .map(|played| (played.name.as_str(), played.entries.len()))
            .collect();
        assert_eq!(names, [("a", 3), ("b", 2)]);
        assert_eq!(all[0].tasks, [("lab-victim".to_owned(), 7)]);
        assert_eq!(all[0].activations().count(), 1);
        let faults = |at: usize| all[at].faults().map(|entry| entry.name.as_str()).collect();
        let found: [Vec<&str>; 2] = [faults(0), faults(1)];
        assert_eq!(found, [vec!["hog"], vec!["lab_drain_fifo"]]);
        assert_eq!(covered_ns(all[0].entries[1..2].iter(), (350, 1000)), 50);
    }
}
