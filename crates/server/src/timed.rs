//! What took time: wake-ups, handlers, system calls; and what was under way at an instant.

use event::{Error, ErrorKind, Result};
use timeline::{Activation, Family, Index, NO_TASK, TrackId};

use crate::answers::{Late, Latencies, Moment, Stat, Stats};
use crate::api::{COLUMNS_MAX, facts, is_meant, range};
use crate::events::ROWS_MAX;
use crate::question::Words;
use crate::view::View;

/// Softirqs with a name have numbers below this.
const SOFTIRQS: u32 = 32;
/// Rows of statistics.
const STATS_MAX: usize = 500;

impl View {
    /// Counts by time and latency of a family, the longest of each column, the worst, quantiles,
    /// and statistics: of wake-ups by task, else by the interrupt, softirq or system call.
    pub(crate) fn latencies(&self, words: &Words) -> Result<Latencies> {
        let index = self.index();
        let family = family(words)?;
        let columns = words.count("columns", 300, COLUMNS_MAX)?.max(1);
        let worst = words.count("worst", 50, ROWS_MAX)?.max(1);
        let range = range(words, &index)?;
        let meant = Meant::new(&index, family, words);
        let wanted = (!meant.all).then_some(|one: &Activation| meant.has(one));
        let grid = index.latencies(family, range, columns, worst, wanted);
        let point = |one: &Activation| point(&index, family, one);
        let stats = match words.text("stats") {
            "" => None,
            _ => Some(stats(&index, family, range, &meant)),
        };
        let [median_ns_max, p99_ns_max, p999_ns_max] = grid.quantiles_ns;
        let longest = grid.longest.iter().map(|one| one.as_ref().map(point));
        Ok(Latencies {
            count: grid.count,
            columns,
            row_ends_ns: Index::latency_rows(),
            longest: longest.collect(),
            worst: grid.worst.iter().map(point).collect(),
            counts: grid.counts,
            stats,
            median_ns_max,
            p99_ns_max,
            p999_ns_max,
        })
    }

    /// The system call, the interrupt and the softirq that a track was in at an instant.
    pub(crate) fn moment(&self, words: &Words) -> Result<Moment> {
        let index = self.index();
        let at_ns = index.begin_ns.saturating_add(words.number("at", 0)?);
        let Some(track) = TrackId::parse(words.text("track")) else {
            let error = Error::new(ErrorKind::InvalidInput, "no such track");
            let found: String = words.text("track").chars().take(80).collect();
            return Err(error
                .found(format!("'{found}'"))
                .fix("give one as in /api/v1/tracks"));
        };
        let find = |family: Family| {
            let is_here = |one: &Activation| match track {
                TrackId::Cpu(cpu) => one.cpu == cpu,
                TrackId::Thread(task) => one.task == task,
                _ => false,
            };
            let found = index.under_way(family, at_ns, is_here);
            found.map(|one| point(&index, family, &one))
        };
        // A call of another task may be under way on the CPU: it left that meanwhile.
        let call = match track {
            TrackId::Thread(_) => find(Family::Call),
            _ => None,
        };
        let handlers = match track {
            TrackId::Cpu(_) => [find(Family::Irq), find(Family::Softirq)],
            _ => [None, None],
        };
        let [irq, softirq] = handlers;
        Ok(Moment { call, irq, softirq })
    }
}

/// What a search means of a family.
struct Meant {
    family: Family,
    tasks: Vec<bool>,
    whats: Vec<(u32, bool)>,
    /// Nothing was searched for.
    all: bool,
}

impl Meant {
    fn new(index: &Index, family: Family, words: &Words) -> Meant {
        let search = words.text("search").to_lowercase();
        let tasks = index.tasks.iter().map(|task| is_meant(task, &search));
        let mut numbers: Vec<u32> = match family {
            _ if search.is_empty() => Vec::new(),
            Family::Wakeup => Vec::new(),
            Family::Irq => index.irq_names.keys().copied().collect(),
            Family::Softirq => (0..SOFTIRQS).collect(),
            Family::Call => (0..index.call_names.len() as u32).collect(),
        };
        // One without a name is meant by its number.
        numbers.extend(search.parse::<u32>());
        numbers.sort_unstable();
        numbers.dedup();
        let of_name = |what: u32| {
            let name = index.name_of(family, what).to_lowercase();
            name.contains(&search) || what.to_string() == search
        };
        Meant {
            family,
            tasks: tasks.collect(),
            whats: numbers
                .into_iter()
                .map(|what| (what, of_name(what)))
                .collect(),
            all: search.is_empty(),
        }
    }

    fn has(&self, one: &Activation) -> bool {
        let task = || self.tasks.get(one.task as usize) == Some(&true);
        let what = || {
            let place = self
                .whats
                .binary_search_by_key(&one.what, |(what, _)| *what);
            place.is_ok_and(|place| self.whats[place].1)
        };
        self.all
            || match self.family {
                Family::Wakeup => task(),
                Family::Irq | Family::Softirq => what(),
                Family::Call => what() || task(),
            }
    }
}

fn family(words: &Words) -> Result<Family> {
    let text = match words.text("of") {
        "" => "wakeup",
        text => text,
    };
    Family::parse(text).ok_or_else(|| {
        let found: String = text.chars().take(80).collect();
        Error::new(ErrorKind::InvalidInput, "nothing of that name is timed")
            .found(format!("'{found}'"))
            .fix("ask for wakeup, irq, softirq or call")
    })
}

fn point(index: &Index, family: Family, one: &Activation) -> Late {
    let task = (one.task != NO_TASK).then_some(one.task);
    Late {
        end_ns: one.end_ns.saturating_sub(index.begin_ns),
        latency_ns: one.latency_ns,
        task,
        facts: task.and_then(|task| facts(index, task.into())),
        cpu: one.cpu,
        what: one.what,
        name: index.name_of(family, one.what),
    }
}

fn stats(index: &Index, family: Family, range_ns: (i64, i64), meant: &Meant) -> Stats {
    let key = |one: &Activation| {
        let key = match family {
            Family::Wakeup => one.task,
            _ => one.what,
        };
        meant.has(one).then_some(key)
    };
    let found = index.stats(family, range_ns, key);
    let row = |(key, stats): &(u32, timeline::Stats)| {
        let (facts, name) = match family {
            Family::Wakeup => (facts(index, u64::from(*key)), String::new()),
            _ => (None, index.name_of(family, *key)),
        };
        Stat {
            key: *key,
            name,
            facts,
            count: stats.count,
            min_ns: stats.min_ns,
            mean_ns: stats.total_ns / i64::try_from(stats.count.max(1)).unwrap_or(i64::MAX),
            p99_ns_max: stats.p99_ns_max,
            max_ns: stats.max_ns,
            total_ns: stats.total_ns,
        }
    };
    Stats {
        total: found.len(),
        rows: found.iter().take(STATS_MAX).map(row).collect(),
    }
}
