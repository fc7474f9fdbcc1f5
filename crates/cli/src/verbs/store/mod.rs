//! Verbs of traces that are given a monitor's store.

mod check;
mod diff;

use std::path::{Path, PathBuf};

use event::{Duration, Error, ErrorKind, Result};
use monitor::{Range, Scope, Store, is_store, report};
use report::Calendar;
use rustix::time::{ClockId, clock_gettime};

pub use self::check::check;
pub use self::diff::{Sides, diff};
use crate::exit::{Outcome, print};
use crate::options::{TimeWord, WallWord, WindowOptions};

/// Longest ones that `report` lists.
const TOP: usize = 10;

/// Whether stores are meant: all of the files are databases, which no trace is.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for stores beside traces.
pub fn are_stores(paths: &[PathBuf]) -> Result<bool> {
    let stores = paths.iter().filter(|path| is_store(path)).count();
    if stores > 0 && stores < paths.len() {
        let what = "a monitor's store and a trace have nothing to compare";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(format!("{stores} of {} are stores", paths.len()))
            .fix("give stores or traces, not both"));
    }
    Ok(stores > 0)
}

/// The error of a flag that only a store has an answer to.
pub fn only_stores(flag: &str) -> Error {
    let what = "only a monitor's store has days to choose from";
    Error::new(ErrorKind::InvalidInput, what)
        .found(flag.to_owned())
        .fix("name a store, or choose with --begin and --end")
}

/// `rtscope report STORE`.
///
/// # Errors
/// When the store cannot be read.
pub fn report_store(path: &Path, window: &WindowOptions) -> Result<Outcome> {
    let store = Store::open(path)?;
    let range = resolve(window, &store)?;
    print(&of_all_scopes(&store, range, TOP)?)?;
    Ok(Outcome::Fine)
}

/// What a store has in `range`, scope by scope, each with its `top` longest.
///
/// # Errors
/// When the store cannot be read.
pub fn of_all_scopes(store: &Store, range: Range, top: usize) -> Result<String> {
    let texts = scopes(store, range)?.into_iter();
    texts
        .map(|scope| report(store, range, scope, top))
        .collect()
}

/// The scopes that have samples; that of real-time tasks when there are none.
fn scopes(store: &Store, range: Range) -> Result<Vec<Scope>> {
    let mut scopes = Vec::new();
    store.read(range, |_, interval| {
        scopes.extend(interval.series.iter().map(|series| series.scope));
        scopes.sort_unstable();
        scopes.dedup();
        Ok(())
    })?;
    if scopes.is_empty() {
        scopes.push(Scope::RealTime);
    }
    Ok(scopes)
}

/// The part of a store that was asked for, on the wall clock.
fn resolve(window: &WindowOptions, store: &Store) -> Result<Range> {
    if !window.cpus.is_empty() {
        let what = "a monitor's store is judged over all CPUs";
        return Err(Error::new(ErrorKind::Unsupported, what)
            .found("--cpu")
            .fix("'rtscope monitor export' has each CPU by itself"));
    }
    let moment = |word: &Option<TimeWord>, or: i64| match word {
        None => Ok(or),
        Some(word) => moment(*word, store, window.utc),
    };
    let range = Range {
        begin_ns: moment(&window.begin, i64::MIN)?,
        end_ns: moment(&window.end, i64::MAX)?,
    };
    if range.begin_ns >= range.end_ns {
        let error = Error::new(ErrorKind::InvalidInput, "the time range is empty");
        return Err(error
            .found("--end is not after --begin")
            .fix("let --begin lie before --end"));
    }
    Ok(range)
}

fn moment(word: TimeWord, store: &Store, utc: bool) -> Result<i64> {
    let refused = |found: &str| {
        let error = Error::new(ErrorKind::InvalidInput, "not a time of a monitor's store");
        Err(error
            .found(found.to_owned())
            .fix("give a date and a time ('2026-11-23 08:00:00') or time after its start (+24h)"))
    };
    match word {
        TimeWord::Wall(WallWord::SinceEpoch(ns)) => Ok(ns),
        TimeWord::Wall(WallWord::OfDay { date: None, .. }) => refused("a time without a date"),
        TimeWord::Wall(WallWord::OfDay {
            date: Some(date),
            seconds,
            ns,
            ahead_s,
        }) => {
            let calendar = Calendar {
                utc: utc || ahead_s.is_some(),
                dated: false,
            };
            let ahead_ns = i64::from(ahead_s.unwrap_or(0)) * 1_000_000_000;
            let second_ns = calendar.wall_ns(date, seconds).saturating_sub(ahead_ns);
            Ok(second_ns.saturating_add(i64::from(ns)))
        }
        TimeWord::AfterStart(duration) => {
            let heads = store.heads()?;
            let first_ns = heads.first().map_or(0, |(_, _, head)| head.begin_ns);
            Ok(first_ns.saturating_add(duration.as_ns()))
        }
        TimeWord::At(instant) => refused(&instant.to_string()),
    }
}

/// The last so long, by the wall clock.
fn last(length: Duration) -> Range {
    let now = clock_gettime(ClockId::Realtime);
    let now_ns = now.tv_sec * 1_000_000_000 + now.tv_nsec;
    Range {
        begin_ns: now_ns.saturating_sub(length.as_ns()),
        ..Range::ALL
    }
}
