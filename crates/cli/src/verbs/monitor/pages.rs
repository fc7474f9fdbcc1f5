//! What the monitor serves: metrics for Prometheus, and a page with what the store says.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use event::{Duration, Error, ErrorKind, Result};
use monitor::{Kind, Metrics, PageQuestion, Range, Scope, Store, page_json};
use server::{Answer, Pages, monitor_page};

use crate::options::MonitorOptions;

/// What a page shows when it does not say of what time.
const LAST_DEFAULT: Duration = Duration::from_ms(24 * 3_600_000);

/// What is told of, until the settings are read again.
#[derive(Clone, Debug)]
struct Shown {
    store: PathBuf,
    /// Where the watch beside the monitor keeps its snapshots.
    snapshots: Option<PathBuf>,
}

impl Shown {
    fn of(options: &MonitorOptions) -> Shown {
        let over = options.over.as_ref();
        Shown {
            store: options.store.clone(),
            snapshots: over.map(|over| over.snapshots.clone()),
        }
    }
}

/// Pages that everybody on this machine may read.
#[derive(Debug)]
pub(super) struct MonitorPages {
    metrics: Arc<Metrics>,
    shown: Mutex<Shown>,
}

impl MonitorPages {
    pub(super) fn new(metrics: Arc<Metrics>, options: &MonitorOptions) -> MonitorPages {
        MonitorPages {
            metrics,
            shown: Mutex::new(Shown::of(options)),
        }
    }

    /// From now on the store and the snapshots of other settings are told of.
    pub(super) fn show(&self, options: &MonitorOptions) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Shown::of(options);
    }

    fn shown(&self) -> Shown {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }

    /// What the store says to the page's question.
    fn data(&self, query: &str) -> Result<Answer> {
        // Reading needs no lock, and holds up no interval.
        let store = Store::open(&self.shown().store)?;
        let question = question(query, &|name| store.kind_named(name))?;
        let value = page_json(&store, question)?;
        Ok(answer("application/json", value.to_string()))
    }

    /// The whole answer of a snapshot, as `diagnose --html` writes it: in a process of its own,
    /// whose memory the monitor does not keep.
    fn late(&self, query: &str) -> Result<Answer> {
        let name = word(query, "snapshot").unwrap_or_default().to_owned();
        let gone = |fix: &str| {
            let what = "there is no such snapshot";
            let found: String = name.chars().take(80).collect();
            let error = Error::new(ErrorKind::NotFound, what);
            error.found(format!("'{found}'")).fix(fix)
        };
        let fix = "it gave way to later ones (--keep-snapshots), or --over has never been set";
        // A name is a folder of the watch, and no way to elsewhere.
        let is_name = Path::new(&name).file_name() == Some(name.as_ref());
        let folder = self.shown().snapshots.filter(|_| is_name);
        let snapshot = folder.map(|folder| folder.join(&name));
        let Some(snapshot) = snapshot.filter(|snapshot| snapshot.is_dir()) else {
            return Err(gone(fix));
        };
        let failed = |cause| Error::io("cannot read the snapshot", cause);
        // Nobody else may put a link in the page's place: the monitor may be root.
        let scratch = tempfile::tempdir().map_err(failed)?;
        let page = scratch.path().join("answer.html");
        let mut diagnose = Command::new(std::env::current_exe().map_err(failed)?);
        diagnose
            .arg("diagnose")
            .arg(&snapshot)
            .arg("--html")
            .arg(&page);
        let output = diagnose.stdin(Stdio::null()).output().map_err(failed)?;
        let text = std::fs::read_to_string(&page).map_err(|cause| {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            failed(cause)
                .found(said)
                .fix("rtscope diagnose reads it, and says what is wrong")
        })?;
        Ok(answer("text/html; charset=utf-8", text))
    }
}

impl Pages for MonitorPages {
    fn answer(&self, path: &str, query: &str, accept: &str) -> Option<Answer> {
        match path {
            "/metrics" => Some(metrics_page(&self.metrics, accept)),
            "/api/v1/monitor" => Some(self.data(query).into()),
            "/api/v1/late" => Some(self.late(query).into()),
            path => monitor_page(path),
        }
    }
}

/// `/metrics`, in the best form that the client reads.
pub fn metrics_page(metrics: &Metrics, accept: &str) -> Answer {
    let (content_type, body) = metrics.told_to(accept);
    Answer {
        status: 200,
        content_type,
        body,
    }
}

fn answer(content_type: &'static str, text: String) -> Answer {
    Answer {
        status: 200,
        content_type,
        body: text.into_bytes(),
    }
}

/// What is asked by this word.
fn word<'q>(query: &'q str, key: &str) -> Option<&'q str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(known, value)| (known == key).then_some(value))
}

/// The phase of a name, or what a tracker measured.
type Named<'n> = dyn Fn(&str) -> Result<Option<Kind>> + 'n;

/// `last_ns`, `scope` and `phase`; what is left out has a default.
fn question(query: &str, named: &Named<'_>) -> Result<PageQuestion> {
    let refused = |what: &str, found: &str, fix: &str| {
        let found: String = found.chars().take(80).collect();
        Error::new(ErrorKind::InvalidInput, what)
            .found(format!("'{found}'"))
            .fix(fix)
    };
    let last_ns = match word(query, "last_ns") {
        None => LAST_DEFAULT.as_ns(),
        Some(text) => text.parse().ok().filter(|ns| *ns > 0).ok_or_else(|| {
            refused(
                "not a length of time",
                text,
                "give nanoseconds: last_ns=3600000000000",
            )
        })?,
    };
    let scope = match word(query, "scope") {
        None => None,
        Some(name) => {
            let found = Scope::ALL.into_iter().find(|scope| scope.name() == name);
            Some(found.ok_or_else(|| refused("no such scope", name, "realtime, named or all"))?)
        }
    };
    let phase = match word(query, "phase") {
        None => None,
        Some(name) => {
            let fix = "docs/monitor.md has them; what trackers measure is in the store";
            Some(named(name)?.ok_or_else(|| refused("no such phase", name, fix))?)
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
    use abi::monitor::Phase;

    use super::*;

    #[test]
    fn a_question_is_read_and_what_it_cannot_mean_is_refused() {
        let all = [Phase::Total.into(), Kind::tracked("block", "queue", "")];
        let named = |name: &str| Ok(all.iter().find(|kind: &&Kind| kind.name() == name).cloned());
        let question = |query| question(query, &named);
        let asked = question("last_ns=60000000000&scope=all&phase=total").expect("a question");
        assert_eq!(
            (asked.scope, asked.phase),
            (Some(Scope::All), Some(Phase::Total.into()))
        );
        let asked = question("phase=block_queue").expect("a question");
        assert_eq!(asked.phase, Some(all[1].clone()));
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

    fn options(store: &Path, snapshots: &Path) -> MonitorOptions {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            monitor: crate::flags::Monitor,
        }
        let line = ["monitor", "--over", "1ms", "--store"].map(std::ffi::OsStr::new);
        let words = line
            .into_iter()
            .chain([store.as_os_str(), "--snapshots".as_ref()]);
        let words = words.chain([snapshots.as_os_str()]);
        let typed = <Line as clap::Parser>::try_parse_from(words).expect("parses");
        MonitorOptions::new(&typed.monitor).expect("valid")
    }

    #[test]
    fn the_page_its_data_and_the_metrics_are_served_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store.db");
        let run = monitor::Run::default();
        let limits = monitor::Limits::default();
        let _owner = Store::create(&store, &run, 0, limits).expect("a store");
        let snapshots = folder.path().join("snapshots");
        std::fs::create_dir(&snapshots).expect("made");
        std::fs::create_dir(folder.path().join("other")).expect("made");
        let options = options(&store, &snapshots);
        let pages = MonitorPages::new(Arc::new(Metrics::new(&run)), &options);
        let check = |path: &str, query: &str, expect: Option<u16>| {
            let answer = pages.answer(path, query, "");
            assert_eq!(answer.map(|answer| answer.status), expect, "{path}?{query}");
        };
        check("/", "", Some(200));
        check("/metrics", "", Some(200));
        check("/api/v1/monitor", "", Some(200));
        check("/api/v1/monitor", "scope=x", Some(400));
        for name in [
            "",
            "x",
            ".",
            "..",
            "../other",
            "%2e%2e%2fother",
            "/etc",
            "a/../../other",
        ] {
            check("/api/v1/late", &format!("snapshot={name}"), Some(404));
        }
        check("/store.db", "", None);
        check("/../etc/passwd", "", None);
    }
}
