//! What `rtscope monitor` was asked to do: what was typed, and behind it what a file says.

use std::path::{Path, PathBuf};

use event::{Duration, Error, ErrorKind, Result, TaskPattern};
use fleet::Push;
use monitor::{Limits, Scope};
use serde::Deserialize;

use super::fleet::{FleetOptions, FleetSettings};
use super::settings::settings;
use super::words::{parse_size, positive_duration};
use crate::flags::{self, ScopeName};

const EVERY: Duration = Duration::from_ms(5 * 60 * 1000);
/// What is shorter costs more than it tells.
const EVERY_MIN: Duration = Duration::from_ms(1000);
/// A smaller store would lose each interval as the next one comes.
const SIZE_MIN_BYTES: u64 = 1 << 20;
const STORE: &str = "/var/lib/rtscope/monitor.db";

/// The settings of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default)]
    task: Vec<String>,
    #[serde(default)]
    all: bool,
    #[serde(default, rename = "return")]
    until_return: bool,
    #[serde(default)]
    linear: bool,
    every: Option<String>,
    store: Option<PathBuf>,
    port: Option<u16>,
    keep: Option<String>,
    keep_size: Option<String>,
    fleet: Option<FleetSettings>,
}

/// A monitor, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorOptions {
    /// Tasks that are counted apart.
    pub named: Vec<TaskPattern>,
    /// Count every task.
    pub all: bool,
    /// Count the return to user space.
    pub until_return: bool,
    /// Count in OSADL's form too.
    pub linear: bool,
    /// An interval's length.
    pub every: Duration,
    /// Stop after this.
    pub run_for: Option<Duration>,
    /// The store.
    pub store: PathBuf,
    /// What it may hold.
    pub limits: Limits,
    /// Where to serve metrics; none: nowhere.
    pub port: Option<u16>,
    /// Where the intervals are pushed to.
    pub fleet: Option<FleetOptions>,
}

impl MonitorOptions {
    /// From what was typed and the file that it names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what makes no sense, with the place in the file;
    /// [`ErrorKind::NotFound`] when there is no such file.
    pub fn new(typed: &flags::Monitor) -> Result<Self> {
        let file = match &typed.config {
            Some(path) => settings(path, "docs/monitor.md")?,
            None => Settings::default(),
        };
        let duration = |flag: &str, typed: &Option<String>, file: &Option<String>| {
            let text = typed.as_ref().or(file.as_ref());
            text.map(|text| positive_duration(flag, text)).transpose()
        };
        let every = duration("--every", &typed.every, &file.every)?.unwrap_or(EVERY);
        if every < EVERY_MIN {
            let error = Error::new(ErrorKind::InvalidInput, "the intervals are too short");
            return Err(error
                .found(every.to_string())
                .fix("give --every a second or more"));
        }
        let mut limits = Limits::default();
        if let Some(age) = duration("--keep", &typed.keep, &file.keep)? {
            limits.age = age;
        }
        if let Some(size) = typed.keep_size.as_ref().or(file.keep_size.as_ref()) {
            limits.bytes = parse_size("--keep-size", size)?;
            if limits.bytes < SIZE_MIN_BYTES {
                let what = "--keep-size has no room for a day";
                let error = Error::new(ErrorKind::InvalidInput, what).found(size.clone());
                return Err(error.fix("give --keep-size 1M or more"));
            }
        }
        let tasks = if typed.task.is_empty() {
            &file.task
        } else {
            &typed.task
        };
        let tasks = tasks.iter().map(|task| TaskPattern::parse(task));
        let store = store_path(typed.store.as_deref().or(file.store.as_deref()));
        monitor::store_file(&store)?;
        Ok(MonitorOptions {
            named: tasks.collect::<Result<_>>()?,
            all: typed.all || file.all,
            until_return: typed.until_return || file.until_return,
            linear: typed.linear || file.linear,
            every,
            run_for: duration("--for", &typed.run_for, &None)?,
            store,
            limits,
            port: typed.port.or(file.port),
            fleet: file.fleet.as_ref().map(FleetOptions::new).transpose()?,
        })
    }

    /// What `monitor push` pushes, and to where: what was typed goes before what the file says.
    ///
    /// # Errors
    /// As [`MonitorOptions::new`]; also when nobody says to where.
    pub fn push(typed: &flags::MonitorPush) -> Result<(FleetOptions, Push)> {
        let file = match &typed.config {
            Some(path) => settings(path, "docs/monitor.md")?,
            None => Settings::default(),
        };
        let mut said = file.fleet.unwrap_or_default();
        said.to = typed.to.clone().or(said.to);
        said.endpoint = typed.endpoint.clone().or(said.endpoint);
        said.region = typed.region.clone().or(said.region);
        said.snapshots = typed.snapshots.clone().or(said.snapshots);
        let fleet = FleetOptions::new(&said)?;
        let store = typed.store.as_deref().or(file.store.as_deref());
        let push = Push {
            again: typed.again,
            ..fleet.push(&store_path(store))
        };
        Ok((fleet, push))
    }

    /// Whose samples are kept.
    pub fn scopes(&self) -> Vec<Scope> {
        let mut scopes = vec![Scope::RealTime];
        scopes.extend((!self.named.is_empty()).then_some(Scope::Named));
        scopes.extend(self.all.then_some(Scope::All));
        scopes
    }
}

/// The store that is meant when none is named: that of the service, which systemd may put
/// elsewhere.
pub fn store_path(typed: Option<&Path>) -> PathBuf {
    let folder = std::env::var_os("STATE_DIRECTORY").filter(|folder| !folder.is_empty());
    match (typed, folder) {
        (Some(path), _) => path.to_owned(),
        (None, Some(folder)) => Path::new(&folder).join("monitor.db"),
        (None, None) => STORE.into(),
    }
}

/// Whose latencies a word means.
pub fn scope(name: ScopeName) -> Scope {
    match name {
        ScopeName::RealTime => Scope::RealTime,
        ScopeName::Named => Scope::Named,
        ScopeName::All => Scope::All,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        monitor: flags::Monitor,
    }

    fn options(line: &str, file: Option<&str>) -> Result<MonitorOptions> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("monitor.toml");
        let words = std::iter::once("monitor").chain(line.split_whitespace());
        let mut typed = Line::try_parse_from(words).expect("parses").monitor;
        if let Some(text) = file {
            std::fs::write(&path, text).expect("written");
            typed.config = Some(path);
        }
        MonitorOptions::new(&typed)
    }

    #[test]
    fn what_is_typed_goes_before_what_a_file_says() {
        let plain = options("--store S", None).expect("valid");
        assert_eq!(
            (plain.every, plain.port, plain.scopes().len()),
            (EVERY, None, 1)
        );
        let file = "every = '1m'\nport = 9464\ntask = ['a*', 'pid:7']\nkeep = '30d'\n\
                    keep_size = '64M'\nreturn = true\nstore = '/s'\n\
                    [fleet]\nto = '/mnt/fleet'";
        let told = options("--every 2s --all", Some(file)).expect("valid");
        assert_eq!(told.every, Duration::from_ms(2000));
        assert_eq!(
            (told.port, told.named.len(), told.scopes().len()),
            (Some(9464), 2, 3)
        );
        assert_eq!(
            (told.limits.bytes, told.store.clone()),
            (64 << 20, PathBuf::from("/s"))
        );
        assert!(told.until_return && told.all && !told.linear);
        let fleet = told.fleet.expect("a fleet");
        assert_eq!(
            (fleet.to.as_str(), fleet.every.as_ns()),
            ("/mnt/fleet", 3_600_000_000_000)
        );
        let other = options("--task x --store T", Some(file)).expect("valid");
        assert_eq!((other.named.len(), other.store), (1, PathBuf::from("T")));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_with_their_line() {
        let check = |line: &str, file: Option<&str>, expect: &str| {
            let error = options(line, file).expect_err(expect);
            assert!(error.what().contains(expect), "{error:#}");
            assert!(
                error.value_found().is_some() && error.fixed_by().is_some(),
                "{error:#}"
            );
        };
        check("--every 10ms", None, "too short");
        check("--every 0s", None, "--every of zero");
        check("--keep-size 3X", None, "--keep-size is not a size");
        check("", Some("every = '1m'\nevry = '2m'"), "line 2");
        check("", Some("every = '1m'\n\nport = 'x'"), "line 3");
        check("", Some("every = 5"), "line 1");
        check("", Some("every = '1'"), "no unit");
        check("", Some("[fleet]\nto = 'x'\nevry = '1h'"), "line 3");
        check("", Some("[fleet]\nevery = '1h'"), "where the fleet is");
        check("", Some("[fleet]\nto = 'x'\nevery = '1ms'"), "too often");
        check("", Some("[fleet]\nto = 'ftp://x'"), "no such target");
        check("", Some("[["), "line 1");
        check("", Some("store = ''"), "the store has no name");
    }
}
