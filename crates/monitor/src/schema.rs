//! The tables of the store. `docs/format/monitor.md` says what each column means; a change of
//! meaning raises [`VERSION`].

/// In the file's header, so that nobody takes another database for a store: "rtsm".
pub(crate) const APPLICATION_ID: i64 = 0x7274_736d;
/// Of an empty store.
pub(crate) const VERSION: i64 = 1;
/// Of a store that has what trackers measure, which a program of before would take for a broken
/// one; and the newest that this one reads.
pub(crate) const VERSION_TRACKED: i64 = 2;
/// The number of the first kind that is no phase.
pub(crate) const KIND_FIRST: i64 = 16;

/// Makes an empty store.
pub(crate) const CREATE: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY, began_ns INTEGER NOT NULL, host TEXT NOT NULL, kernel TEXT NOT NULL,
    boot_id TEXT NOT NULL, program TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE interval (
    id INTEGER PRIMARY KEY, run INTEGER NOT NULL, begin_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL, elapsed_ns INTEGER NOT NULL, lost INTEGER NOT NULL,
    worst_missed INTEGER NOT NULL, unsaved INTEGER NOT NULL, cost_ns INTEGER NOT NULL,
    hidden INTEGER NOT NULL DEFAULT 0, lost_tracked INTEGER NOT NULL DEFAULT 0);
CREATE INDEX interval_end ON interval (end_ns);
CREATE TABLE histogram (
    interval INTEGER NOT NULL, scope INTEGER NOT NULL, phase INTEGER NOT NULL,
    cpu INTEGER NOT NULL, samples INTEGER NOT NULL, sum_ns INTEGER NOT NULL,
    min_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL, buckets BLOB NOT NULL,
    PRIMARY KEY (interval, scope, phase, cpu)) WITHOUT ROWID;
CREATE TABLE linear (
    interval INTEGER NOT NULL, phase INTEGER NOT NULL, cpu INTEGER NOT NULL,
    counts BLOB NOT NULL, PRIMARY KEY (interval, phase, cpu)) WITHOUT ROWID;
CREATE TABLE worst (
    interval INTEGER NOT NULL, scope INTEGER NOT NULL, phase INTEGER NOT NULL,
    cpu INTEGER NOT NULL, value_ns INTEGER NOT NULL, at_ns INTEGER NOT NULL, timer_ns INTEGER,
    wakeup_ns INTEGER NOT NULL, switch_ns INTEGER NOT NULL, return_ns INTEGER NOT NULL,
    victim INTEGER, culprit INTEGER, call INTEGER, function INTEGER, mode INTEGER NOT NULL,
    stack INTEGER, key INTEGER, PRIMARY KEY (interval, scope, phase)) WITHOUT ROWID;
CREATE TABLE task (
    id INTEGER PRIMARY KEY, tid INTEGER NOT NULL, prio INTEGER NOT NULL, name TEXT NOT NULL,
    UNIQUE (tid, prio, name));
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
";

/// What came after the first stores; makes it where it is not there.
pub(crate) const CREATE_LATER: &str = "
CREATE TABLE IF NOT EXISTS late (
    interval INTEGER NOT NULL, number INTEGER NOT NULL, at_ns INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL, victim INTEGER, cpu INTEGER, cause INTEGER,
    proven INTEGER NOT NULL, sentence TEXT NOT NULL, ledger TEXT NOT NULL, advice TEXT NOT NULL,
    snapshot TEXT, PRIMARY KEY (interval, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kind (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, other TEXT NOT NULL);
";
/// Whether a store has it; a row of 0 or 1.
pub(crate) const HAS_LATE: &str = "SELECT count(*) FROM sqlite_master WHERE name = 'late'";
/// The same of what trackers measure.
pub(crate) const HAS_KIND: &str = "SELECT count(*) FROM sqlite_master WHERE name = 'kind'";

/// Columns that came after the first stores: table, name, and what it is.
pub(crate) const ADDED: [(&str, &str, &str); 3] = [
    ("interval", "hidden", "INTEGER NOT NULL DEFAULT 0"),
    ("interval", "lost_tracked", "INTEGER NOT NULL DEFAULT 0"),
    ("worst", "key", "INTEGER"),
];

/// Removes what belongs to intervals that are gone.
pub(crate) const SWEEP: &str = "
DELETE FROM task WHERE id NOT IN (SELECT victim FROM worst WHERE victim IS NOT NULL)
    AND id NOT IN (SELECT culprit FROM worst WHERE culprit IS NOT NULL)
    AND id NOT IN (SELECT victim FROM late WHERE victim IS NOT NULL);
DELETE FROM text WHERE id NOT IN (SELECT call FROM worst WHERE call IS NOT NULL)
    AND id NOT IN (SELECT function FROM worst WHERE function IS NOT NULL)
    AND id NOT IN (SELECT stack FROM worst WHERE stack IS NOT NULL)
    AND id NOT IN (SELECT key FROM worst WHERE key IS NOT NULL)
    AND id NOT IN (SELECT cause FROM late WHERE cause IS NOT NULL);
DELETE FROM run WHERE id NOT IN (SELECT run FROM interval)
    AND id < (SELECT max(id) FROM run);
";
