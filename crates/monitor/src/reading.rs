//! What the store holds, read back: runs, intervals, and what was counted in them.

use std::collections::BTreeMap;

use abi::monitor::{Mode, Phase};
use event::{Cpu, Duration, Result};
use rusqlite::params;

use crate::buckets::{Histogram, Linear};
use crate::interval::{Head, Interval, Run, Scope, Series, Worst};
use crate::kind::Kind;
use crate::late::Late;
use crate::refused::{corrupt, explain};
use crate::rows::{LATE, head, head_columns, late, task};
use crate::schema;
use crate::store::{Range, Store};

/// What a store has beside what the first ones had.
#[derive(Debug, Default)]
pub(crate) struct Has {
    late: bool,
    key: bool,
    /// What trackers measure, by number.
    kinds: BTreeMap<i64, Kind>,
}

impl Has {
    /// The number of a phase or kind; one that no row has where the store does not know it.
    pub(crate) fn number(&self, kind: &Kind) -> i64 {
        let mut kinds = self.kinds.iter();
        match kind.phase() {
            Some(phase) => phase as i64,
            None => kinds
                .find(|(_, known)| *known == kind)
                .map_or(-1, |(number, _)| *number),
        }
    }

    /// All that the store may have samples of.
    pub(crate) fn all_kinds(&self) -> impl Iterator<Item = Kind> {
        let phases = Phase::ALL.map(Kind::from).into_iter();
        phases.chain(self.kinds.values().cloned())
    }
}

/// What [`worst_row`] reads of the table `w`, and what that is joined with.
pub(crate) fn worst_columns(has: &Has) -> (String, String) {
    let (key, join) = match has.key {
        true => ("key.text", "LEFT JOIN text key ON key.id = w.key"),
        false => ("NULL", ""),
    };
    let columns = format!(
        "w.scope, w.phase, w.cpu, w.value_ns, w.at_ns, w.timer_ns, w.wakeup_ns, w.switch_ns,
        w.return_ns, w.mode, v.tid, v.prio, v.name, c.tid, c.prio, c.name, call.text,
        function.text, stack.text, {key}, w.interval"
    );
    let joins = format!(
        "LEFT JOIN task v ON v.id = w.victim LEFT JOIN task c ON c.id = w.culprit
        LEFT JOIN text call ON call.id = w.call
        LEFT JOIN text function ON function.id = w.function
        LEFT JOIN text stack ON stack.id = w.stack {join}"
    );
    (columns, joins)
}

/// A longest sample, with the numbers of whose and which one it is.
pub(crate) fn worst_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(u8, i64, Worst)> {
    let stack: Option<String> = row.get(18)?;
    let worst = Worst {
        scope: Scope::RealTime,
        phase: Phase::Timer.into(),
        cpu: Cpu(row.get(2)?),
        value: Duration::from_ns(row.get(3)?),
        at_ns: row.get(4)?,
        timer: row.get::<_, Option<i64>>(5)?.map(Duration::from_ns),
        parts: [row.get(6)?, row.get(7)?, row.get(8)?].map(Duration::from_ns),
        mode: Mode::of(row.get(9)?),
        victim: task(row, 10)?,
        culprit: task(row, 13)?,
        call: row.get(16)?,
        function: row.get(17)?,
        stack: stack.map_or_else(Vec::new, |text| text.lines().map(str::to_owned).collect()),
        key: row.get(19)?,
    };
    Ok((row.get(0)?, row.get(1)?, worst))
}

impl Store {
    /// The runs, the oldest first, each with its number.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs(&self) -> Result<Vec<(i64, Run)>> {
        let refused = |error| explain(&self.path, error);
        let columns = "SELECT id, host, kernel, boot_id, program, settings FROM run ORDER BY id";
        let mut statement = self.connection.prepare(columns).map_err(refused)?;
        let rows = statement.query_map([], |row| {
            let run = Run {
                host: row.get(1)?,
                kernel: row.get(2)?,
                boot_id: row.get(3)?,
                program: row.get(4)?,
                settings: row.get(5)?,
            };
            Ok((row.get(0)?, run))
        });
        rows.and_then(Iterator::collect).map_err(refused)
    }

    /// When every interval was, and what is not in it, the oldest first, each with its own number
    /// and that of its run: numbers rise by one from interval to interval.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn heads(&self) -> Result<Vec<(i64, i64, Head)>> {
        let columns = head_columns(|column| self.has_column(column))?;
        let columns = format!("SELECT {columns} FROM interval WHERE id >= ? ORDER BY id");
        self.rows(&columns, 0, head)
    }

    /// Hands the intervals of `range` to `take`, the oldest first, each with the number of its run.
    ///
    /// # Errors
    /// When the store cannot be read, and what `take` returns.
    pub fn read(
        &self,
        range: Range,
        mut take: impl FnMut(i64, Interval) -> Result<()>,
    ) -> Result<()> {
        let refused = |error| explain(&self.path, error);
        let columns = head_columns(|column| self.has_column(column))?;
        let has = self.has_since()?;
        let columns = format!(
            "SELECT {columns} FROM interval WHERE end_ns >= ? AND begin_ns <= ? ORDER BY id"
        );
        let mut statement = self.connection.prepare_cached(&columns).map_err(refused)?;
        let mut rows = statement
            .query(params![range.begin_ns, range.end_ns])
            .map_err(refused)?;
        while let Some(row) = rows.next().map_err(refused)? {
            let (id, run, head) = head(row).map_err(refused)?;
            let interval = Interval {
                head,
                series: self.series(id, &has)?,
                worst: self.worst(id, &has)?,
                linear: self.linear(id)?,
                late: self.late(id, &has)?,
            };
            take(run, interval)?;
        }
        Ok(())
    }

    /// What it has of what came after the first stores.
    pub(crate) fn has_since(&self) -> Result<Has> {
        Ok(Has {
            late: self.has(schema::HAS_LATE)?,
            key: self.has_column("key")?,
            kinds: self.kinds()?,
        })
    }

    /// Those over the limit of one interval.
    pub(crate) fn late(&self, interval: i64, has: &Has) -> Result<Vec<Late>> {
        match has.late {
            true => self.rows(LATE, interval, late),
            false => Ok(Vec::new()),
        }
    }

    fn series(&self, interval: i64, has: &Has) -> Result<Vec<Series>> {
        let columns = "SELECT scope, phase, cpu, sum_ns, min_ns, max_ns, buckets FROM histogram
            WHERE interval = ? ORDER BY scope, phase, cpu";
        self.rows(columns, interval, |row| {
            let buckets: Vec<u8> = row.get(6)?;
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                [row.get(3)?, row.get(4)?, row.get(5)?],
                buckets,
            ))
        })?
        .into_iter()
        .map(|(scope, phase, cpu, [sum, min, max], buckets)| {
            Ok(Series {
                scope: self.scope(scope)?,
                phase: self.kind(phase, has)?,
                cpu: Cpu(cpu),
                sum: Duration::from_ns(sum),
                min: Duration::from_ns(min),
                max: Duration::from_ns(max),
                histogram: Histogram::from_bytes(&buckets)?,
            })
        })
        .collect()
    }

    fn linear(&self, interval: i64) -> Result<Vec<(Phase, Cpu, Linear)>> {
        let columns = "SELECT phase, cpu, counts FROM linear WHERE interval = ?
                       ORDER BY phase, cpu";
        let row = |row: &rusqlite::Row<'_>| {
            let counts: Vec<u8> = row.get(2)?;
            Ok((row.get(0)?, row.get(1)?, counts))
        };
        let rows = self.rows(columns, interval, row)?.into_iter();
        rows.map(|(phase, cpu, counts)| {
            Ok((self.phase(phase)?, Cpu(cpu), Linear::from_bytes(&counts)?))
        })
        .collect()
    }

    fn worst(&self, interval: i64, has: &Has) -> Result<Vec<Worst>> {
        let (columns, joins) = worst_columns(has);
        let columns = format!(
            "SELECT {columns} FROM worst w {joins} WHERE w.interval = ? ORDER BY w.scope, w.phase"
        );
        let rows = self.rows(&columns, interval, worst_row)?.into_iter();
        rows.map(|row| self.named(row, has)).collect()
    }

    /// The row of a longest sample, with whose and which one it is.
    pub(crate) fn named(
        &self,
        (scope, phase, worst): (u8, i64, Worst),
        has: &Has,
    ) -> Result<Worst> {
        Ok(Worst {
            scope: self.scope(scope)?,
            phase: self.kind(phase, has)?,
            ..worst
        })
    }

    fn rows<T>(
        &self,
        columns: &str,
        interval: i64,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let refused = |error| explain(&self.path, error);
        let mut statement = self.connection.prepare_cached(columns).map_err(refused)?;
        let rows = statement.query_map([interval], row);
        rows.and_then(Iterator::collect).map_err(refused)
    }

    fn scope(&self, number: u8) -> Result<Scope> {
        let scope = Scope::ALL.get(usize::from(number)).copied();
        scope.ok_or_else(|| corrupt(&self.path, format!("scope {number}")))
    }

    fn phase(&self, number: u8) -> Result<Phase> {
        let phase = Phase::ALL.get(usize::from(number)).copied();
        phase.ok_or_else(|| corrupt(&self.path, format!("phase {number}")))
    }

    /// What trackers measure in this store, by its number.
    fn kinds(&self) -> Result<BTreeMap<i64, Kind>> {
        if !self.has(schema::HAS_KIND)? {
            return Ok(BTreeMap::new());
        }
        let columns = "SELECT number, name, other FROM kind WHERE number >= ?";
        let row =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, Kind::stored(row.get(1)?, row.get(2)?)));
        Ok(self
            .rows(columns, schema::KIND_FIRST, row)?
            .into_iter()
            .collect())
    }

    /// The phase of this name, or what a tracker measured in this store; none without any.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn kind_named(&self, name: &str) -> Result<Option<Kind>> {
        let has = self.has_since()?;
        Ok(has.all_kinds().find(|kind| kind.name() == name))
    }

    fn kind(&self, number: i64, has: &Has) -> Result<Kind> {
        if let Some(kind) = has.kinds.get(&number) {
            return Ok(kind.clone());
        }
        let number = u8::try_from(number);
        let phase = number.map_err(|_| corrupt(&self.path, "a phase without a name".to_owned()))?;
        Ok(self.phase(phase)?.into())
    }

    /// Whether it has a column that came after the first stores.
    pub(crate) fn has_column(&self, column: &str) -> Result<bool> {
        let mut added = schema::ADDED.iter();
        let table = added
            .find(|(_, name, _)| *name == column)
            .map_or("", |(table, ..)| table);
        let what = "SELECT count(*) FROM pragma_table_info(?) WHERE name = ?";
        let found = self
            .connection
            .query_row(what, [table, column], |row| row.get(0));
        found.map_err(|error| explain(&self.path, error))
    }
}
