//! What the monitor serves: metrics for Prometheus, and a page with what the store says.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abi::monitor::Phase;
use event::{Duration, Error, ErrorKind, Result};
use monitor::{Metrics, PageQuestion, Range, Scope, Store, page_json};
use server::{Answer, Pages, monitor_page};

/// What a page shows when it does not say of what time.
const LAST_DEFAULT: Duration = Duration::from_ms(24 * 3_600_000);

/// Pages that everybody on this machine may read.
#[derive(Debug)]
pub(super) struct MonitorPages {
    metrics: Arc<Metrics>,
    store: Mutex<PathBuf>,
}

impl MonitorPages {
    pub(super) fn new(metrics: Arc<Metrics>, store: &Path) -> MonitorPages {
        MonitorPages {
            metrics,
            store: Mutex::new(store.to_owned()),
        }
    }

    /// From now on another store is told of.
    pub(super) fn show(&self, store: &Path) {
        *self.store() = store.to_owned();
    }

    fn store(&self) -> MutexGuard<'_, PathBuf> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the store says to the page's question.
    fn data(&self, query: &str) -> Result<Answer> {
        let question = question(query)?;
        // Reading needs no lock, and holds up no interval.
        let store = self.store().clone();
        let value = page_json(&Store::open(&store)?, question)?;
        Ok(answer("application/json", value.to_string()))
    }
}

impl Pages for MonitorPages {
    fn answer(&self, path: &str, query: &str, accept: &str) -> Option<Answer> {
        match path {
            "/metrics" => Some(metrics_page(&self.metrics, accept)),
            "/api/v1/monitor" => Some(self.data(query).into()),
            path => monitor_page(path),
        }
    }
}

/// `/metrics`, in the form that the client reads.
pub fn metrics_page(metrics: &Metrics, accept: &str) -> Answer {
    match accept.contains("application/openmetrics-text") {
        true => answer(
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            metrics.open_metrics(),
        ),
        false => answer("text/plain; version=0.0.4; charset=utf-8", metrics.text()),
    }
}

fn answer(content_type: &'static str, text: String) -> Answer {
    Answer {
        status: 200,
        content_type,
        body: text.into_bytes(),
    }
}

/// `last_ns`, `scope` and `phase`; what is left out has a default.
fn question(query: &str) -> Result<PageQuestion> {
    let word = |key: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(known, value)| (known == key).then_some(value))
    };
    let refused = |what: &str, found: &str, fix: &str| {
        let found: String = found.chars().take(80).collect();
        Error::new(ErrorKind::InvalidInput, what)
            .found(format!("'{found}'"))
            .fix(fix)
    };
    let last_ns = match word("last_ns") {
        None => LAST_DEFAULT.as_ns(),
        Some(text) => text.parse().ok().filter(|ns| *ns > 0).ok_or_else(|| {
            refused(
                "not a length of time",
                text,
                "give nanoseconds: last_ns=3600000000000",
            )
        })?,
    };
    let scope = match word("scope") {
        None => None,
        Some(name) => {
            let found = Scope::ALL.into_iter().find(|scope| scope.name() == name);
            Some(found.ok_or_else(|| refused("no such scope", name, "realtime, named or all"))?)
        }
    };
    let phase = match word("phase") {
        None => None,
        Some(name) => {
            let found = Phase::ALL.into_iter().find(|phase| phase.name() == name);
            Some(found.ok_or_else(|| refused("no such phase", name, "docs/monitor.md has them"))?)
        }
    };
    let mut range = Range::ALL;
    range.begin_ns = super::clock::wall_ns().saturating_sub(last_ns);
    Ok(PageQuestion {
        range,
        scope,
        phase,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_and_what_it_cannot_mean_is_refused() {
        let asked = question("last_ns=60000000000&scope=all&phase=total").expect("a question");
        assert_eq!(
            (asked.scope, asked.phase),
            (Some(Scope::All), Some(Phase::Total))
        );
        let asked = question("").expect("a question");
        assert_eq!((asked.scope, asked.phase), (None, None));
        for query in [
            "last_ns=-1",
            "last_ns=x",
            "scope=%00",
            "phase=",
            "phase=../etc",
        ] {
            assert!(question(query).is_err(), "{query}");
        }
    }

    #[test]
    fn the_page_its_data_and_the_metrics_are_served_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store.db");
        let run = monitor::Run::default();
        let limits = monitor::Limits::default();
        let _owner = Store::create(&store, &run, 0, limits).expect("a store");
        let pages = MonitorPages::new(Arc::new(Metrics::new(&run)), &store);
        let check = |path: &str, query: &str, expect: Option<u16>| {
            let answer = pages.answer(path, query, "");
            assert_eq!(answer.map(|answer| answer.status), expect, "{path}?{query}");
        };
        check("/", "", Some(200));
        check("/metrics", "", Some(200));
        check("/api/v1/monitor", "", Some(200));
        check("/api/v1/monitor", "scope=x", Some(400));
        check("/store.db", "", None);
        check("/../etc/passwd", "", None);
    }
}
