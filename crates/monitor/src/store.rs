//! The store: a database of SQLite in one file, that one process writes and any may read.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration as Time;

use event::{Duration, Error, ErrorKind, Result};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::interval::{Interval, Run};
use crate::late::{LATE_MAX, Late};
use crate::owner::Owner;
use crate::refused::{corrupt, explain};
use crate::rows::{insert, insert_late};
use crate::schema;

/// How long a writer waits for a reader that is about to end.
const BUSY_MAX: Time = Time::from_secs(5);
/// So many intervals go at once at most, when they are too old or the store is too long: a wall
/// clock that is years ahead for a moment empties no store.
const MAKE_PLACE: i64 = 64;
/// Names that nobody uses any more are looked for once in so many intervals that go.
const SWEEP_EVERY: i64 = 256;
/// Intervals that wait for a store that takes none.
const WAITING_MAX: usize = 12;

/// How a file of SQLite begins.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

/// What the store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Intervals that ended longer ago are removed.
    pub age: Duration,
    /// The file, without what was written last.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        const DAY_NS: i64 = 86_400_000_000_000;
        Limits {
            age: Duration::from_ns(400 * DAY_NS),
            bytes: 512 << 20,
        }
    }
}

/// A part of the store, on the wall clock in nanoseconds; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Intervals that end after this.
    pub begin_ns: i64,
    /// Intervals that begin before this.
    pub end_ns: i64,
}

impl Range {
    /// Everything.
    pub const ALL: Range = Range {
        begin_ns: i64::MIN,
        end_ns: i64::MAX,
    };
}

/// What became of an interval.
#[derive(Debug)]
pub enum Appended {
    /// It is in the store, and so is every one that waited.
    Stored,
    /// As before, in a new store: somebody removed or moved the one before.
    StoredAnew,
    /// The store takes none now, for this reason; so many closed intervals wait in memory.
    Waits(Error, usize),
    /// As before, and the oldest that waited is lost.
    Lost(Error),
}

/// Whether a file is a database, as a store is; [`Store::open`] says whether it is one of ours.
pub fn is_store(path: &Path) -> bool {
    let mut begin = [0; DATABASE.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *DATABASE
}

/// Which file is at `path`; none when there is none.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.dev(), facts.ino()))
}

/// A store.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// Which file that is: device and inode.
    file: Option<(u64, u64)>,
    run: i64,
    /// Who writes, for a store that takes this one's place.
    facts: Run,
    limits: Limits,
    waiting: Vec<Interval>,
    unsaved: u64,
    removed: i64,
    _owner: Option<Owner>,
}

/// The file of a store, from the root on: SQLite takes an empty name, and `:memory:`, for a
/// database that is gone with the process.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when no file is named.
pub fn store_file(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|cause| {
        Error::new(ErrorKind::InvalidInput, "the store has no name")
            .found(format!("'{}'", path.display()))
            .fix("name a file with --store FILE")
            .cause(cause)
    })
}

impl Store {
    /// Opens or makes the store that `run` writes to.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when another process writes it, [`ErrorKind::Corrupt`] when it
    /// is broken or something else, [`ErrorKind::Unsupported`] when a newer rtscope wrote it.
    pub fn create(path: &Path, run: &Run, began_ns: i64, limits: Limits) -> Result<Store> {
        store_file(path)?;
        let owner = Owner::take(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Store::connect(path, flags, limits)?;
        let refused = |error| explain(path, error);
        let empty = store.pragma("page_count")? == 0;
        if empty {
            let connection = &store.connection;
            // Before the first table: pages of what is removed go back.
            let first = "PRAGMA auto_vacuum = INCREMENTAL";
            connection.execute_batch(first).map_err(refused)?;
        }
        store
            .connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            .map_err(refused)?;
        if empty {
            store.make()?;
        }
        store.check()?;
        store.check_pages()?;
        for (table, column, what) in schema::ADDED {
            if !store.has_column(column)? {
                let add = format!("ALTER TABLE {table} ADD COLUMN {column} {what}");
                store.connection.execute_batch(&add).map_err(refused)?;
            }
        }
        let added = store.connection.execute_batch(schema::CREATE_LATER);
        added.map_err(refused)?;
        store.begin_run(run, began_ns)?;
        store.file = identity(path);
        store._owner = Some(owner);
        Ok(store)
    }

    /// What is appended from now on is of this run.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn begin_run(&mut self, run: &Run, began_ns: i64) -> Result<()> {
        let inserted = self.connection.execute(
            "INSERT INTO run (began_ns, host, kernel, boot_id, program, settings)
             VALUES (?, ?, ?, ?, ?, ?)",
            params![
                began_ns,
                run.host,
                run.kernel,
                run.boot_id,
                run.program,
                run.settings
            ],
        );
        inserted.map_err(|error| explain(&self.path, error))?;
        self.run = self.connection.last_insert_rowid();
        self.facts = run.clone();
        Ok(())
    }

    /// Bounds the store otherwise from the next interval on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Opens a store to read it, whoever writes it meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, and as [`Store::create`].
    pub fn open(path: &Path) -> Result<Store> {
        if !path.exists() {
            let what = "there is no store of the monitor";
            return Err(Error::new(ErrorKind::NotFound, what)
                .found(path.display().to_string())
                .fix("start 'rtscope monitor', or name the store with --store FILE"));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Store::connect(path, flags, Limits::default())?;
        store.check()?;
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags, limits: Limits) -> Result<Store> {
        let refused = |error| explain(path, error);
        let connection = Connection::open_with_flags(store_file(path)?, flags).map_err(refused)?;
        connection.busy_timeout(BUSY_MAX).map_err(refused)?;
        Ok(Store {
            connection,
            path: path.to_owned(),
            file: None,
            run: 0,
            facts: Run::default(),
            limits,
            waiting: Vec::new(),
            unsaved: 0,
            removed: 0,
            _owner: None,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a closed interval into the store, and those that waited before it; removes what is too
    /// old or too much. What the store does not take waits for the next call.
    pub fn append(&mut self, interval: Interval) -> Appended {
        let begin_ns = interval.head.begin_ns;
        self.waiting.push(interval);
        let is_gone = identity(&self.path) != self.file;
        let renewed = match is_gone {
            true => self.renew(begin_ns),
            false => Ok(()),
        };
        let error = match renewed.and_then(|()| self.flush()) {
            Ok(()) if is_gone => return Appended::StoredAnew,
            Ok(()) => return Appended::Stored,
            Err(error) => error,
        };
        if self.waiting.len() <= WAITING_MAX {
            return Appended::Waits(error, self.waiting.len());
        }
        let lost = self.waiting.remove(0);
        self.unsaved += 1 + lost.head.unsaved;
        Appended::Lost(error)
    }

    /// Puts an activation that was late into the closed interval in which it ended: its explanation
    /// takes longer than closing. False where there is none, or the store takes nothing now.
    pub fn add_late(&mut self, late: &Late) -> bool {
        let has = |interval: &&mut Interval| interval.head.has(late.at_ns);
        if let Some(interval) = self.waiting.iter_mut().rev().find(has) {
            interval.add_late(late.clone());
            return true;
        }
        self.insert_late(late).unwrap_or(false)
    }

    fn insert_late(&mut self, late: &Late) -> rusqlite::Result<bool> {
        let transaction = self.connection.transaction()?;
        let of = "SELECT i.id, count(l.number) FROM interval i LEFT JOIN late l
            ON l.interval = i.id WHERE i.id = (SELECT max(id) FROM interval
            WHERE begin_ns <= ?1 AND end_ns > ?1) GROUP BY i.id";
        let found = transaction.query_row(of, [late.at_ns], |row| {
            let count: i64 = row.get(1)?;
            Ok((row.get(0)?, count.max(0) as usize))
        });
        let Some((interval, count)) = found.optional()? else {
            return Ok(false);
        };
        if count < LATE_MAX {
            insert_late(&transaction, interval, count, late)?;
        }
        transaction.commit()?;
        Ok(true)
    }

    /// Closed intervals that no store has.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Begins a store in the place of one that is no longer there: nobody would find what is
    /// written into that.
    fn renew(&mut self, began_ns: i64) -> Result<()> {
        // What the old file lacks goes into it, wherever it is; the new one shall not take it.
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        self.connection.execute_batch(checkpoint).ok();
        if !self.path.exists() {
            for suffix in ["-wal", "-shm"] {
                let mut name = self.path.clone().into_os_string();
                name.push(suffix);
                std::fs::remove_file(name).ok();
            }
        }
        // A process cannot take twice what it has.
        self._owner = None;
        let new = Store::create(&self.path, &self.facts, began_ns, self.limits)?;
        let old = std::mem::replace(self, new);
        (self.waiting, self.unsaved) = (old.waiting, old.unsaved);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let path = self.path.clone();
        let refused = |error| explain(&path, error);
        while let Some(mut interval) = self.waiting.first().cloned() {
            interval.head.unsaved += self.unsaved;
            let transaction = self.connection.transaction().map_err(refused)?;
            insert(&transaction, self.run, &interval).map_err(refused)?;
            transaction.commit().map_err(refused)?;
            self.waiting.remove(0);
            self.unsaved = 0;
            self.retain(interval.head.end_ns)?;
        }
        Ok(())
    }

    /// Removes the intervals that are too old at `now_ns`, and the oldest when the file is too
    /// long.
    fn retain(&mut self, now_ns: i64) -> Result<()> {
        let oldest_ns = now_ns.saturating_sub(self.limits.age.as_ns());
        let mut removed = self.remove("WHERE end_ns < ?", oldest_ns)?;
        if self.bytes()? > self.limits.bytes {
            removed += self.remove("WHERE id > ?", 0)?;
        }
        self.removed += removed;
        if removed > 0 {
            let mut work = "PRAGMA incremental_vacuum".to_owned();
            if self.removed >= SWEEP_EVERY {
                self.removed = 0;
                work = format!("{} {work}", schema::SWEEP);
            }
            let done = self.connection.execute_batch(&work);
            done.map_err(|error| explain(&self.path, error))?;
        }
        Ok(())
    }

    /// Removes the oldest of those that are meant.
    fn remove(&mut self, which: &str, value: i64) -> Result<i64> {
        let path = self.path.clone();
        let refused = |error| explain(&path, error);
        let which = format!("SELECT id FROM interval {which} ORDER BY id LIMIT {MAKE_PLACE}");
        let count = format!("SELECT count(*) FROM ({which})");
        let connection = &mut self.connection;
        let count: i64 = connection
            .query_row(&count, [value], |row| row.get(0))
            .map_err(refused)?;
        if count == 0 {
            return Ok(0);
        }
        let transaction = connection.transaction().map_err(refused)?;
        for (table, column) in [
            ("histogram", "interval"),
            ("linear", "interval"),
            ("worst", "interval"),
            ("late", "interval"),
            ("interval", "id"),
        ] {
            let delete = format!("DELETE FROM {table} WHERE {column} IN ({which})");
            transaction.execute(&delete, [value]).map_err(refused)?;
        }
        transaction.commit().map_err(refused)?;
        Ok(count)
    }

    /// The file's length, without pages that are free.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn bytes(&self) -> Result<u64> {
        let used = self.pragma("page_count")? - self.pragma("freelist_count")?;
        Ok((used * self.pragma("page_size")?).max(0) as u64)
    }

    fn make(&mut self) -> Result<()> {
        let (version, id) = (schema::VERSION, schema::APPLICATION_ID);
        let make = format!(
            "BEGIN IMMEDIATE; {} PRAGMA application_id = {id}; PRAGMA user_version = {version};
             COMMIT",
            schema::CREATE
        );
        let made = self.connection.execute_batch(&make);
        made.map_err(|error| explain(&self.path, error))
    }

    /// Whether it has what came after the first stores.
    pub(crate) fn has(&self, what: &str) -> Result<bool> {
        let found = self.connection.query_row(what, [], |row| row.get(0));
        found.map_err(|error| explain(&self.path, error))
    }

    /// Whether this is a store, and one that we know.
    fn check(&self) -> Result<()> {
        let version = self.pragma("user_version")?;
        let id = self.pragma("application_id")?;
        if id != schema::APPLICATION_ID {
            let what = format!("{} is no store of the monitor", self.path.display());
            return Err(Error::new(ErrorKind::Corrupt, what)
                .found(format!("a database with the application id {id:#x}"))
                .fix("name another file with --store FILE"));
        }
        if version > schema::VERSION_TRACKED {
            let what = format!("a newer rtscope wrote the store {}", self.path.display());
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(format!(
                    "version {version}, and this one knows {}",
                    schema::VERSION_TRACKED
                ))
                .fix("use that rtscope, or name another store with --store FILE"));
        }
        Ok(())
    }

    /// Whether the pages hang together; a broken store is better known now than in a month.
    fn check_pages(&self) -> Result<()> {
        let sound: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| explain(&self.path, error))?;
        match sound.as_str() {
            "ok" => Ok(()),
            found => Err(corrupt(&self.path, found.replace('\n', "; "))),
        }
    }

    fn pragma(&self, name: &str) -> Result<i64> {
        self.connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
            .map_err(|error| explain(&self.path, error))
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
