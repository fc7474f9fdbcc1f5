//! One phase or kind of one scope, read of months at once: a statement for all intervals, not some
//! for each.

use std::collections::BTreeSet;

use event::{Cpu, Duration, Result};
use rusqlite::{Rows, params};

use crate::buckets::Histogram;
use crate::interval::{Head, Interval, Scope, Series, Worst};
use crate::kind::Kind;
use crate::late::Late;
use crate::reading::{Has, worst_columns, worst_row};
use crate::refused::explain;
use crate::rows::{head, head_columns};
use crate::store::{Range, Store};

/// The intervals of a range, by the numbers of the first and last one: in the order of these they
/// are read without being sorted. A wall clock that was set back leaves others between them.
const OF_RANGE: &str = "i.id BETWEEN
    (SELECT min(id) FROM interval WHERE end_ns >= ?1 AND begin_ns <= ?2) AND
    (SELECT max(id) FROM interval WHERE end_ns >= ?1 AND begin_ns <= ?2)
    AND +i.end_ns >= ?1 AND i.begin_ns <= ?2";

impl Store {
    /// Hands the intervals of `range` to `take`, the oldest first: the number of the run, the head,
    /// and what was counted of one phase or kind of one scope, by CPU.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn read_kind(
        &self,
        range: Range,
        (scope, kind): (Scope, &Kind),
        mut take: impl FnMut(i64, Head, Vec<Series>),
    ) -> Result<()> {
        let refused = |error| explain(&self.path, error);
        // Both statements read the same store, whatever is appended or removed meanwhile.
        let _moment = self.connection.unchecked_transaction().map_err(refused)?;
        let columns = head_columns(|column| self.has_column(column))?;
        let number = self.has_since()?.number(kind);
        let heads = format!("SELECT {columns} FROM interval i WHERE {OF_RANGE} ORDER BY i.id");
        let series = format!(
            "SELECT i.id, h.cpu, h.sum_ns, h.min_ns, h.max_ns, h.buckets
            FROM interval i CROSS JOIN histogram h
            ON h.interval = i.id AND h.scope = ?3 AND h.phase = ?4
            WHERE {OF_RANGE} ORDER BY i.id, h.cpu"
        );
        let mut heads = self.connection.prepare_cached(&heads).map_err(refused)?;
        let mut series = self.connection.prepare_cached(&series).map_err(refused)?;
        let (begin_ns, end_ns) = (range.begin_ns, range.end_ns);
        let mut heads = heads.query(params![begin_ns, end_ns]).map_err(refused)?;
        let mut series = series
            .query(params![begin_ns, end_ns, scope as u8, number])
            .map_err(refused)?;
        let mut next_series = || self.next_series(&mut series, scope, kind);
        let mut next = next_series()?;
        while let Some(row) = heads.next().map_err(refused)? {
            let (id, run, head) = head(row).map_err(refused)?;
            let mut of_interval = Vec::new();
            while let Some((_, one)) = next.take_if(|(of, _)| *of == id) {
                of_interval.push(one);
                next = next_series()?;
            }
            take(run, head, of_interval);
        }
        Ok(())
    }

    /// The next series, with the number of its interval.
    fn next_series(
        &self,
        rows: &mut Rows<'_>,
        scope: Scope,
        kind: &Kind,
    ) -> Result<Option<(i64, Series)>> {
        let refused = |error| explain(&self.path, error);
        let Some(row) = rows.next().map_err(refused)? else {
            return Ok(None);
        };
        let number = |at: usize| row.get::<_, i64>(at).map_err(refused);
        let buckets = row.get_ref(5).and_then(|value| Ok(value.as_blob()?));
        let series = Series {
            scope,
            phase: kind.clone(),
            cpu: Cpu(row.get(1).map_err(refused)?),
            sum: Duration::from_ns(number(2)?),
            min: Duration::from_ns(number(3)?),
            max: Duration::from_ns(number(4)?),
            histogram: Histogram::from_bytes(buckets.map_err(refused)?)?,
        };
        Ok(Some((number(0)?, series)))
    }

    /// The longest of a phase or kind of a scope in the intervals of `range`, `most` of them, the
    /// longest first, each with what a watch said of it if it was over the limit.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn longest_of_kind(
        &self,
        range: Range,
        (scope, kind): (Scope, &Kind),
        most: usize,
    ) -> Result<Vec<(Worst, Option<Late>)>> {
        let refused = |error| explain(&self.path, error);
        let has = self.has_since()?;
        let (columns, joins) = worst_columns(&has);
        let longest = format!(
            "SELECT {columns} FROM
            (SELECT w.* FROM interval i CROSS JOIN worst w
            ON w.interval = i.id AND w.scope = ?3 AND w.phase = ?4
            WHERE {OF_RANGE} ORDER BY w.value_ns DESC, w.interval LIMIT ?5) w
            {joins} ORDER BY w.value_ns DESC, w.interval"
        );
        let asked = params![
            range.begin_ns,
            range.end_ns,
            scope as u8,
            has.number(kind),
            most as i64
        ];
        let mut statement = self.connection.prepare_cached(&longest).map_err(refused)?;
        let rows = statement.query_map(asked, |row| Ok((worst_row(row)?, row.get("interval")?)));
        let rows: Vec<(_, i64)> = rows.and_then(Iterator::collect).map_err(refused)?;
        let with_late = |(row, id): (_, i64)| {
            let worst = self.named(row, &has)?;
            let interval = Interval {
                late: self.late(id, &has)?,
                ..Interval::default()
            };
            let late = interval.late_of(&worst).cloned();
            Ok((worst, late))
        };
        rows.into_iter().map(with_late).collect()
    }

    /// Whose, and which phases or kinds, the intervals of `range` have samples of.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn counted(&self, range: Range) -> Result<BTreeSet<(Scope, Kind)>> {
        let has = self.has_since()?;
        let mut counted = BTreeSet::new();
        for scope in Scope::ALL {
            // Whose there are none of is found out once, not for each phase.
            if !self.has_counted(range, scope, None)? {
                continue;
            }
            for kind in has.all_kinds() {
                if self.has_counted(range, scope, Some((&kind, &has)))? {
                    counted.insert((scope, kind));
                }
            }
        }
        Ok(counted)
    }

    /// Whether there are samples of a scope, or of one kind of it. What there is, is found in the
    /// first interval that has it.
    fn has_counted(&self, range: Range, scope: Scope, kind: Option<(&Kind, &Has)>) -> Result<bool> {
        let refused = |error| explain(&self.path, error);
        let only = kind.map_or("", |_| "AND h.phase = ?4");
        let exists = format!(
            "SELECT EXISTS (SELECT 1 FROM interval i CROSS JOIN histogram h
            ON h.interval = i.id AND h.scope = ?3 {only} WHERE {OF_RANGE})"
        );
        let mut statement = self.connection.prepare_cached(&exists).map_err(refused)?;
        let (begin_ns, end_ns, scope) = (range.begin_ns, range.end_ns, scope as u8);
        let found = match kind {
            Some((kind, has)) => statement
                .query_row(params![begin_ns, end_ns, scope, has.number(kind)], |row| {
                    row.get(0)
                }),
            None => statement.query_row(params![begin_ns, end_ns, scope], |row| row.get(0)),
        };
        found.map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use abi::monitor::Phase;

    use super::*;
    use crate::store::Limits;
    use crate::test_data::{MINUTE_NS, sample};
    use crate::{Run, Task};

    /// Intervals of two phases, of which not all have both; the wall clock is set back by twenty
    /// minutes behind the eighth.
    fn store(path: &std::path::Path) -> Store {
        let mut store = Store::create(path, &Run::default(), 0, Limits::default()).expect("opens");
        for number in 0..20 {
            let mut interval = sample(number);
            let behind_ns = if number < 8 { 0 } else { 20 * MINUTE_NS };
            interval.head.begin_ns -= behind_ns;
            interval.head.end_ns -= behind_ns;
            let value = Duration::from_us(number * 7 % 5 + 1);
            for (phase, has) in [(Phase::Timer, number % 3 == 0), (Phase::Return, false)] {
                let of_phase = |one: &Series| Series {
                    phase: phase.into(),
                    max: value,
                    ..one.clone()
                };
                let cpus = [Cpu(0), Cpu(3)].map(|cpu| Series {
                    cpu,
                    ..of_phase(&interval.series[0])
                });
                interval.series.extend(cpus.into_iter().filter(|_| has));
            }
            interval.worst[0].value = value;
            // What was late is another task's, but for a few.
            let tid = if number % 4 == 0 { 9 } else { 7 };
            interval.worst[0].victim = Some(Task {
                tid,
                prio: 49,
                name: format!("task{tid}"),
            });
            store.append(interval);
        }
        store
    }

    #[test]
    fn a_kind_is_read_as_it_is_where_all_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder.path().join("store.db"));
        let range = |begin: i64, end: i64| Range {
            begin_ns: begin * MINUTE_NS,
            end_ns: end * MINUTE_NS,
        };
        let ranges = [(-99, 999), (22, 31), (22, 38), (61, 61), (300, 400)];
        for range in ranges.map(|(begin, end)| range(begin, end)) {
            let mut all = Vec::new();
            let read = store.read(range, |run, interval| {
                all.push((run, interval));
                Ok(())
            });
            read.expect("all is read");
            let mut known = BTreeSet::new();
            for one in all.iter().flat_map(|(_, interval)| &interval.series) {
                known.insert((one.scope, one.phase.clone()));
            }
            assert_eq!(store.counted(range).expect("it reads"), known, "{range:?}");
            for phase in [Phase::Timer, Phase::Switch, Phase::Return].map(Kind::from) {
                let of_kind = (Scope::RealTime, &phase);
                check(&store, range, of_kind, &all);
            }
        }
    }

    fn check(store: &Store, range: Range, (scope, kind): (Scope, &Kind), all: &[(i64, Interval)]) {
        let mut found = Vec::new();
        let read = store.read_kind(range, (scope, kind), |run, head, series| {
            found.push((run, head, series));
        });
        read.expect("a kind is read");
        let is_of_kind = |one: &&Series| one.scope == scope && one.phase == *kind;
        let expect = all.iter().map(|(run, interval)| {
            let series = interval.series.iter().filter(is_of_kind).cloned();
            (*run, interval.head.clone(), series.collect::<Vec<_>>())
        });
        assert_eq!(
            found,
            expect.collect::<Vec<_>>(),
            "{range:?} {}",
            kind.name()
        );
        let worst = all.iter().filter_map(|(_, interval)| {
            let worst = interval.worst_of(scope, kind.clone())?.clone();
            let late = interval.late_of(&worst).cloned();
            Some((worst, late))
        });
        let mut worst: Vec<_> = worst.collect();
        worst.sort_by_key(|(worst, _)| Reverse(worst.value));
        worst.truncate(6);
        let longest = store.longest_of_kind(range, (scope, kind), 6);
        assert_eq!(
            longest.expect("it reads"),
            worst,
            "{range:?} {}",
            kind.name()
        );
    }
}
