//! Intervals as rows of the store's tables, there and back.

use event::{Cpu, Duration, Error, Result};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::interval::{Head, Interval, Worst};
use crate::kind::Kind;
use crate::late::Late;
use crate::schema::{KIND_FIRST, VERSION_TRACKED};
use crate::task::Task;

/// What [`head`] reads, of a store with or without what came after the first ones.
pub(crate) fn head_columns(has: impl Fn(&'static str) -> Result<bool>) -> Result<String> {
    let added = |name| Ok::<_, Error>(if has(name)? { name } else { "0" });
    let added = [added("hidden")?, added("lost_tracked")?].join(", ");
    let first = "id, run, begin_ns, end_ns, elapsed_ns, lost, worst_missed, unsaved, cost_ns";
    Ok(format!("{first}, {added}"))
}

/// The id of an interval, that of its run, and its head.
pub(crate) fn head(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, i64, Head)> {
    let count = |at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.max(0) as u64);
    let head = Head {
        begin_ns: row.get(2)?,
        end_ns: row.get(3)?,
        elapsed: Duration::from_ns(row.get(4)?),
        lost: count(5)?,
        worst_missed: count(6)?,
        unsaved: count(7)?,
        cost: Duration::from_ns(row.get(8)?),
        hidden: count(9)?,
        lost_tracked: count(10)?,
    };
    Ok((row.get(0)?, row.get(1)?, head))
}

/// The task whose fields begin at column `at`.
pub(crate) fn task(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<Task>> {
    let Some(tid) = row.get::<_, Option<i32>>(at)? else {
        return Ok(None);
    };
    Ok(Some(Task {
        tid,
        prio: row.get(at + 1)?,
        name: row.get(at + 2)?,
    }))
}

/// Writes a closed interval with all that it holds.
pub(crate) fn insert(to: &Transaction<'_>, run: i64, interval: &Interval) -> rusqlite::Result<()> {
    let head = &interval.head;
    to.prepare_cached(
        "INSERT INTO interval (run, begin_ns, end_ns, elapsed_ns, lost, worst_missed, unsaved,
         cost_ns, hidden, lost_tracked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        run,
        head.begin_ns,
        head.end_ns,
        head.elapsed.as_ns(),
        head.lost as i64,
        head.worst_missed as i64,
        head.unsaved as i64,
        head.cost.as_ns(),
        head.hidden as i64,
        head.lost_tracked as i64
    ])?;
    let id = to.last_insert_rowid();
    for series in &interval.series {
        to.prepare_cached("INSERT INTO histogram VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?
            .execute(params![
                id,
                series.scope as u8,
                kind_number(to, &series.phase)?,
                series.cpu.0,
                series.histogram.samples() as i64,
                series.sum.as_ns(),
                series.min.as_ns(),
                series.max.as_ns(),
                series.histogram.to_bytes()
            ])?;
    }
    for (phase, cpu, linear) in &interval.linear {
        to.prepare_cached("INSERT INTO linear VALUES (?, ?, ?, ?)")?
            .execute(params![id, *phase as u8, cpu.0, linear.to_bytes()])?;
    }
    for worst in &interval.worst {
        insert_worst(to, id, worst)?;
    }
    for (number, late) in interval.late.iter().enumerate() {
        insert_late(to, id, number, late)?;
    }
    Ok(())
}

/// What [`late`] reads, of one interval.
pub(crate) const LATE: &str = "SELECT l.at_ns, l.latency_ns, v.tid, v.prio, v.name, l.cpu,
    cause.text, l.proven, l.sentence, l.ledger, l.advice, l.snapshot
    FROM late l LEFT JOIN task v ON v.id = l.victim LEFT JOIN text cause ON cause.id = l.cause
    WHERE l.interval = ? ORDER BY l.number";

/// An activation over the limit.
pub(crate) fn late(row: &rusqlite::Row<'_>) -> rusqlite::Result<Late> {
    let (ledger, advice): (String, String) = (row.get(9)?, row.get(10)?);
    Ok(Late {
        at_ns: row.get(0)?,
        latency: Duration::from_ns(row.get(1)?),
        victim: task(row, 2)?,
        cpu: row.get::<_, Option<u32>>(5)?.map(Cpu),
        cause: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        proven: row.get(7)?,
        sentence: row.get(8)?,
        ledger: Late::ledger_of(&ledger),
        advice: advice.lines().map(str::to_owned).collect(),
        snapshot: row.get(11)?,
    })
}

/// Writes one of an interval that is in the store.
pub(crate) fn insert_late(
    to: &Connection,
    interval: i64,
    number: usize,
    late: &Late,
) -> rusqlite::Result<()> {
    let mut insert =
        to.prepare_cached("INSERT INTO late VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    insert.execute(params![
        interval,
        number as i64,
        late.at_ns,
        late.latency.as_ns(),
        task_id(to, late.victim.as_ref())?,
        late.cpu.map(|cpu| cpu.0),
        text_id(to, Some(late.cause.as_str()))?,
        late.proven,
        late.sentence,
        late.ledger_json().to_string(),
        late.advice.join("\n"),
        late.snapshot
    ])?;
    Ok(())
}

fn insert_worst(to: &Transaction<'_>, interval: i64, worst: &Worst) -> rusqlite::Result<()> {
    let stack = (!worst.stack.is_empty()).then(|| worst.stack.join("\n"));
    let mut insert = to.prepare_cached(
        "INSERT INTO worst (interval, scope, phase, cpu, value_ns, at_ns, timer_ns, wakeup_ns,
         switch_ns, return_ns, victim, culprit, call, function, mode, stack, key)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    insert.execute(params![
        interval,
        worst.scope as u8,
        kind_number(to, &worst.phase)?,
        worst.cpu.0,
        worst.value.as_ns(),
        worst.at_ns,
        worst.timer.map(Duration::as_ns),
        worst.parts[0].as_ns(),
        worst.parts[1].as_ns(),
        worst.parts[2].as_ns(),
        task_id(to, worst.victim.as_ref())?,
        task_id(to, worst.culprit.as_ref())?,
        text_id(to, worst.call.as_deref())?,
        text_id(to, worst.function.as_deref())?,
        worst.mode as u8,
        text_id(to, stack.as_deref())?,
        text_id(to, worst.key.as_deref())?
    ])?;
    Ok(())
}

/// The number of a kind: that of a phase, or of what a tracker measures, which gets one the first
/// time.
fn kind_number(to: &Connection, kind: &Kind) -> rusqlite::Result<i64> {
    let Some(other) = kind.other() else {
        return Ok(kind.phase().map_or(0, |phase| phase as i64));
    };
    let known = to
        .prepare_cached("SELECT number FROM kind WHERE name = ?")?
        .query_row([kind.name()], |row| row.get(0))
        .optional()?;
    if let Some(number) = known {
        return Ok(number);
    }
    let highest = "SELECT coalesce(max(number) + 1, ?) FROM kind";
    let number: i64 = to.query_row(highest, [KIND_FIRST], |row| row.get(0))?;
    let insert = "INSERT INTO kind (number, name, other) VALUES (?, ?, ?)";
    to.execute(insert, params![number, kind.name(), other])?;
    to.execute_batch(&format!("PRAGMA user_version = {VERSION_TRACKED}"))?;
    Ok(number)
}

fn task_id(to: &Connection, task: Option<&Task>) -> rusqlite::Result<Option<i64>> {
    let Some(task) = task else { return Ok(None) };
    let key = params![task.tid, task.prio, task.name];
    let known = to
        .prepare_cached("SELECT id FROM task WHERE tid = ? AND prio = ? AND name = ?")?
        .query_row(key, |row| row.get(0))
        .optional()?;
    if known.is_some() {
        return Ok(known);
    }
    to.prepare_cached("INSERT INTO task (tid, prio, name) VALUES (?, ?, ?)")?
        .execute(key)?;
    Ok(Some(to.last_insert_rowid()))
}

fn text_id(to: &Connection, text: Option<&str>) -> rusqlite::Result<Option<i64>> {
    let Some(text) = text else { return Ok(None) };
    let known = to
        .prepare_cached("SELECT id FROM text WHERE text = ?")?
        .query_row([text], |row| row.get(0))
        .optional()?;
    if known.is_some() {
        return Ok(known);
    }
    to.prepare_cached("INSERT INTO text (text) VALUES (?)")?
        .execute([text])?;
    Ok(Some(to.last_insert_rowid()))
}
