//! What `rtscope monitor` was asked to do: what was typed, and behind it what a file says.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bpf_host::trackers::Tracker;
use capture::Keep;
use capture::watch::{KEY_DEFAULT, PairQuestion};
use event::{Duration, Error, ErrorKind, Result, TaskPattern};
use fleet::{Collector, Push};
use host::groups::Asked;
use monitor::{Limits, Scope};
use serde::Deserialize;

use super::fleet::{FleetOptions, FleetSettings};
use super::keep::keep;
use super::settings::settings;
use super::tasks::groups;
use super::words::{parse_size, positive_duration};
use crate::flags::{self, ScopeName};

const EVERY: Duration = Duration::from_ms(5 * 60 * 1000);
/// What is shorter costs more than it tells.
const EVERY_MIN: Duration = Duration::from_ms(1000);
/// A smaller store would lose each interval as the next one comes.
const SIZE_MIN_BYTES: u64 = 1 << 20;
/// Of each cause; a service for months has a bound.
const KEEP_SNAPSHOTS: &str = "20/200M";
/// Letters of a token, at least.
const TOKEN_MIN: usize = 16;
/// As OpenTelemetry's own programs send.
const OTLP_EVERY: Duration = Duration::from_ms(60_000);
const STORE: &str = "/var/lib/rtscope/monitor.db";

/// The settings of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default)]
    task: Vec<String>,
    #[serde(default)]
    cgroup: Vec<String>,
    #[serde(default)]
    unit: Vec<String>,
    #[serde(default)]
    container: Vec<String>,
    #[serde(default)]
    all: bool,
    #[serde(default, rename = "return")]
    until_return: bool,
    #[serde(default)]
    linear: bool,
    #[serde(default)]
    tracker: Vec<String>,
    from: Option<String>,
    to: Option<String>,
    key: Option<String>,
    every: Option<String>,
    over: Option<String>,
    snapshots: Option<PathBuf>,
    keep_snapshots: Option<String>,
    store: Option<PathBuf>,
    port: Option<u16>,
    listen: Option<String>,
    token_file: Option<PathBuf>,
    keep: Option<String>,
    keep_size: Option<String>,
    fleet: Option<FleetSettings>,
    otlp: Option<OtlpSettings>,
}

/// `[otlp]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OtlpSettings {
    to: String,
    every: Option<String>,
    token_file: Option<PathBuf>,
}

/// A collector that the metrics are sent to, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpOptions {
    /// As it was written.
    pub to: String,
    /// The collector.
    pub collector: Collector,
    /// How often they are sent.
    pub every: Duration,
}

impl OtlpOptions {
    fn new(said: &OtlpSettings) -> Result<OtlpOptions> {
        let every = said.every.as_ref();
        let every = every
            .map(|text| positive_duration("every", text))
            .transpose()?;
        let token = said.token_file.as_deref().map(token).transpose()?;
        Ok(OtlpOptions {
            to: said.to.clone(),
            collector: Collector::new(&said.to, token)?,
            every: every.unwrap_or(OTLP_EVERY),
        })
    }
}

/// The watch beside the counting, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverOptions {
    /// What takes longer has a snapshot.
    pub over: Duration,
    /// Where those go.
    pub snapshots: PathBuf,
    /// How many stay of each cause, as it was typed.
    pub keep: String,
}

/// A monitor, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorOptions {
    /// Tasks that are counted apart.
    pub named: Vec<TaskPattern>,
    /// Control groups, units and containers whose tasks are counted with these.
    pub groups: Vec<Asked>,
    /// Count every task.
    pub all: bool,
    /// Count the return to user space.
    pub until_return: bool,
    /// Count in OSADL's form too.
    pub linear: bool,
    /// Trackers whose intervals are counted too, each once.
    pub trackers: Vec<&'static str>,
    /// Two events to count between.
    pub pair: Option<PairQuestion>,
    /// An interval's length.
    pub every: Duration,
    /// The watch beside it.
    pub over: Option<OverOptions>,
    /// Stop after this.
    pub run_for: Option<Duration>,
    /// The store.
    pub store: PathBuf,
    /// What it may hold.
    pub limits: Limits,
    /// Where to serve metrics and the page; none: nowhere.
    pub door: Option<Door>,
    /// Where the intervals are pushed to.
    pub fleet: Option<FleetOptions>,
    /// Where the metrics are sent to.
    pub otlp: Option<OtlpOptions>,
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
        let age = duration("--keep", &typed.keep, &file.keep)?;
        let limits = limits(age, typed.keep_size.as_ref().or(file.keep_size.as_ref()))?;
        let tasks = if typed.task.is_empty() {
            &file.task
        } else {
            &typed.task
        };
        let tasks = tasks.iter().map(|task| TaskPattern::parse(task));
        let store = store_path(typed.store.as_deref().or(file.store.as_deref()));
        monitor::store_file(&store)?;
        let list = |typed: &[String], file: &[String]| match typed.is_empty() {
            true => file.to_vec(),
            false => typed.to_vec(),
        };
        let over = over(
            duration("--over", &typed.over, &file.over)?,
            typed.snapshots.as_ref().or(file.snapshots.as_ref()),
            typed
                .keep_snapshots
                .as_ref()
                .or(file.keep_snapshots.as_ref()),
            &store,
        )?;
        let mut fleet = file.fleet.as_ref().map(FleetOptions::new).transpose()?;
        if let (Some(fleet), Some(over)) = (&mut fleet, &over) {
            fleet
                .snapshots
                .get_or_insert_with(|| over.snapshots.clone());
        }
        Ok(MonitorOptions {
            named: tasks.collect::<Result<_>>()?,
            groups: groups(
                &list(&typed.cgroup, &file.cgroup),
                &list(&typed.unit, &file.unit),
                &list(&typed.container, &file.container),
            ),
            all: typed.all || file.all,
            until_return: typed.until_return || file.until_return,
            linear: typed.linear || file.linear,
            trackers: trackers(&list(&typed.tracker, &file.tracker))?,
            pair: pair(typed, &file)?,
            every,
            over,
            run_for: duration("--for", &typed.run_for, &None)?,
            store,
            limits,
            door: door(typed, &file)?,
            fleet,
            otlp: file.otlp.as_ref().map(OtlpOptions::new).transpose()?,
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
        let has_named = !self.named.is_empty() || !self.groups.is_empty();
        scopes.extend(has_named.then_some(Scope::Named));
        scopes.extend(self.all.then_some(Scope::All));
        scopes
    }
}

fn limits(age: Option<Duration>, size: Option<&String>) -> Result<Limits> {
    let mut limits = Limits::default();
    limits.age = age.unwrap_or(limits.age);
    if let Some(size) = size {
        limits.bytes = parse_size("--keep-size", size)?;
        if limits.bytes < SIZE_MIN_BYTES {
            let what = "--keep-size has no room for a day";
            let error = Error::new(ErrorKind::InvalidInput, what).found(size.clone());
            return Err(error.fix("give --keep-size 1M or more"));
        }
    }
    Ok(limits)
}

fn trackers(names: &[String]) -> Result<Vec<&'static str>> {
    let mut trackers = Vec::new();
    for name in names {
        let found = Tracker::find(name);
        let tracker = found.map_err(|error| error.fix("'rtscope watch list' has the trackers"))?;
        if !trackers.contains(&tracker.name) {
            trackers.push(tracker.name);
        }
    }
    Ok(trackers)
}

/// What was typed goes before what the file says, all of it.
fn pair(typed: &flags::Monitor, file: &Settings) -> Result<Option<PairQuestion>> {
    let said = match typed.from {
        Some(_) => (&typed.from, &typed.to, &typed.key),
        None => (&file.from, &file.to, &file.key),
    };
    let key = said.2.clone().unwrap_or_else(|| KEY_DEFAULT.to_owned());
    match said {
        (Some(from), Some(to), _) => Ok(Some(PairQuestion {
            from: from.clone(),
            to: to.clone(),
            key,
        })),
        (None, None, None) => Ok(None),
        (from, to, _) => {
            let found = [("from", from), ("to", to), ("key", said.2)];
            let found = found
                .iter()
                .filter_map(|(name, said)| said.as_ref().map(|_| *name));
            let error = Error::new(ErrorKind::InvalidInput, "a pair is of two events");
            Err(error
                .found(format!("{} alone", found.collect::<Vec<_>>().join(", ")))
                .fix("name both: from = \"EVENT\" and to = \"EVENT\""))
        }
    }
}

/// The watch beside the counting; snapshots of none are a mistake.
fn over(
    over: Option<Duration>,
    snapshots: Option<&PathBuf>,
    keep_snapshots: Option<&String>,
    store: &Path,
) -> Result<Option<OverOptions>> {
    let Some(over) = over else {
        let Some(found) = snapshots.map(|path| path.display().to_string()) else {
            return Ok(None);
        };
        let what = "snapshots are of what takes longer than --over";
        let error = Error::new(ErrorKind::InvalidInput, what);
        return Err(error
            .found(format!("{found}, and no --over"))
            .fix("give the limit too: --over 1ms, or over = \"1ms\""));
    };
    let text = keep_snapshots.map_or(KEEP_SNAPSHOTS, String::as_str);
    let fix = "give snapshots, room or both for each cause: keep_snapshots = \"20/200M\"";
    let _: Keep = keep("--keep-snapshots", text, "snapshots", fix)?;
    let beside = || {
        let mut name = store.as_os_str().to_owned();
        name.push("-snapshots");
        PathBuf::from(name)
    };
    Ok(Some(OverOptions {
        over,
        snapshots: snapshots.cloned().unwrap_or_else(beside),
        keep: text.to_owned(),
    }))
}

/// Where the metrics and the page are served, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    /// To everybody on this machine.
    Here(u16),
    /// To who knows the token.
    Known(SocketAddr, String),
}

/// What was typed goes before what the file says.
fn door(typed: &flags::Monitor, file: &Settings) -> Result<Option<Door>> {
    let (port, listen) = match (typed.port, &typed.listen) {
        (None, None) => (file.port, file.listen.as_ref()),
        (port, listen) => (port, listen.as_ref()),
    };
    let refused = |what: &str, found: &str, fix: &str| {
        let error = Error::new(ErrorKind::InvalidInput, what);
        Err(error.found(found.to_owned()).fix(fix))
    };
    let Some(listen) = listen else {
        return Ok(port.map(Door::Here));
    };
    if port.is_some() {
        let fix = "give one of them: listen for other machines, port for this one alone";
        return refused("it is served at one place", "a port, and listen", fix);
    }
    let Ok(address) = listen.parse::<SocketAddr>() else {
        let fix = "give an address and a port: 192.0.2.7:9464, [2001:db8::7]:9464, 0.0.0.0:9464";
        return refused("--listen is no address with a port", listen, fix);
    };
    let token_file = typed.token_file.as_ref().or(file.token_file.as_ref());
    match token_file {
        Some(path) => Ok(Some(Door::Known(address, token(path)?))),
        None if address.ip().is_loopback() => Ok(Some(Door::Here(address.port()))),
        None => {
            let fix = "head -c 18 /dev/urandom | base64 > FILE; chmod 600 FILE; --token-file FILE";
            refused("who asks from another machine needs a token", listen, fix)
        }
    }
}

/// The token in a file that not everybody may read.
fn token(path: &Path) -> Result<String> {
    let name = path.display();
    let failed = |cause| {
        Error::io(format!("cannot read the token {name}"), cause)
            .fix("head -c 18 /dev/urandom | base64 > FILE; chmod 600 FILE; --token-file FILE")
    };
    let mode = std::fs::metadata(path).map_err(failed)?.mode();
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let token = text.lines().next().unwrap_or_default().trim();
    let refused = |found: String, fix: &str| {
        let error = Error::new(ErrorKind::InvalidInput, format!("{name} is no secret"));
        Err(error.found(found).fix(fix))
    };
    if mode & 0o004 != 0 {
        let fix = format!("chmod 600 {name}");
        return refused("everybody may read it".to_owned(), &fix);
    }
    // It is a word of an address, and of a header.
    let is_plain = token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte));
    if token.len() < TOKEN_MIN || !is_plain {
        let fix = "head -c 18 /dev/urandom | base64 > FILE: letters, digits and -._~+/=";
        let found = format!("a first line of {} letters", token.chars().count());
        return refused(found, fix);
    }
    Ok(token.to_owned())
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
            (plain.every, plain.door.clone(), plain.scopes().len()),
            (EVERY, None, 1)
        );
        let file = "every = '1m'\nport = 9464\ntask = ['a*', 'pid:7']\nkeep = '30d'\n\
                    keep_size = '64M'\nreturn = true\nstore = '/s'\n\
                    [fleet]\nto = '/mnt/fleet'";
        let told = options("--every 2s --all", Some(file)).expect("valid");
        assert_eq!(told.every, Duration::from_ms(2000));
        assert_eq!(
            (told.door.clone(), told.named.len(), told.scopes().len()),
            (Some(Door::Here(9464)), 2, 3)
        );
        assert_eq!(
            (told.limits.bytes, told.store.clone()),
            (64 << 20, PathBuf::from("/s"))
        );
        assert!(told.until_return && told.all && !told.linear && told.over.is_none());
        let fleet = told.fleet.expect("a fleet");
        assert_eq!(
            (fleet.to.as_str(), fleet.every.as_ns()),
            ("/mnt/fleet", 3_600_000_000_000)
        );
        let other = options("--task x --store T", Some(file)).expect("valid");
        assert_eq!((other.named.len(), other.store), (1, PathBuf::from("T")));
    }

    #[test]
    fn trackers_and_a_pair_are_counted_where_somebody_asks_for_them() {
        let plain = options("", None).expect("valid");
        assert!(plain.trackers.is_empty() && plain.pair.is_none());
        let file = "tracker = ['block', 'irq', 'block']\nfrom = 'a/x==1'\nto = 'b'\nkey = 'k'";
        let told = options("", Some(file)).expect("valid");
        assert_eq!(told.trackers, ["block", "irq"]);
        let pair = told.pair.expect("a pair");
        assert_eq!((pair.from.as_str(), pair.key.as_str()), ("a/x==1", "k"));
        let typed = options("--tracker softirq --from c --to d", Some(file)).expect("valid");
        assert_eq!(typed.trackers, ["softirq"]);
        let pair = typed.pair.expect("a pair");
        assert_eq!((pair.to.as_str(), pair.key.as_str()), ("d", "$tid"));
    }

    #[test]
    fn what_is_over_the_limit_has_its_snapshots_beside_the_store_unless_somebody_says_where() {
        let file = "store = '/s'\nover = '1ms'\nunit = ['a']\ncgroup = ['b']\ncontainer = ['c']";
        let told = options("", Some(file)).expect("valid");
        let over = told.over.clone().expect("a watch");
        assert_eq!(over.over, Duration::from_ms(1));
        assert_eq!(over.snapshots, PathBuf::from("/s-snapshots"));
        assert_eq!(over.keep, KEEP_SNAPSHOTS);
        assert_eq!((told.groups.len(), told.scopes().len()), (3, 2));
        let line = "--over 2ms --snapshots /t --keep-snapshots 3 --unit x --store S";
        let told = options(line, Some(file)).expect("valid");
        let over = told.over.clone().expect("a watch");
        assert_eq!(
            (over.over, over.snapshots),
            (Duration::from_ms(2), "/t".into())
        );
        assert_eq!((over.keep.as_str(), told.groups.len()), ("3", 3));
    }

    #[test]
    fn other_machines_are_served_by_a_token_alone_and_it_is_a_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        let door = |listen: &str, token: &str, mode: u32| {
            std::fs::write(&file, token).expect("written");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&file, mode).expect("set");
            let line = format!("--listen {listen} --token-file {}", file.display());
            options(&line, None).map(|options| options.door)
        };
        let token = "0123456789abcdefg+/=";
        let found = door("192.0.2.7:9464", &format!("{token}\nmore"), 0o600).expect("valid");
        let address = "192.0.2.7:9464".parse().expect("an address");
        assert_eq!(found, Some(Door::Known(address, token.to_owned())));
        for (listen, token, mode) in [
            ("192.0.2.7:9464", token, 0o644),
            ("192.0.2.7:9464", "short", 0o600),
            ("192.0.2.7:9464", "", 0o600),
            ("192.0.2.7:9464", "0123456789 abcdefg", 0o600),
            ("192.0.2.7", token, 0o600),
            ("rt7:9464", token, 0o600),
        ] {
            let error = door(listen, token, mode).expect_err(listen);
            assert!(error.value_found().is_some() && error.fixed_by().is_some());
            assert!(!format!("{error:#}").contains("abcdefg"), "{error:#}");
        }
        let here = options("--listen 127.0.0.1:7", None).expect("valid");
        assert_eq!(here.door, Some(Door::Here(7)));
        let typed = options("--port 5", Some("listen = '192.0.2.7:9'")).expect("valid");
        assert_eq!(typed.door, Some(Door::Here(5)));
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
        check("--listen 192.0.2.7:9464", None, "needs a token");
        check("", Some("port = 1\nlisten = '127.0.0.1:2'"), "at one place");
        check("", Some("[otlp]\nto = 'h:4318'"), "address of a collector");
        check("", Some("[otlp]\nto = 'http://h'\nevery = '5'"), "no unit");
        check("--over 1", None, "no unit");
        check("--snapshots /t", None, "longer than --over");
        check(
            "--over 1ms --keep-snapshots x",
            None,
            "no number of snapshots",
        );
        check("--keep-size 3X", None, "--keep-size is not a size");
        check("", Some("every = '1m'\nevry = '2m'"), "line 2");
        check("", Some("every = '1m'\n\nport = 'x'"), "line 3");
        check("--tracker jitter", None, "no such tracker");
        // Nobody watches a process of that name here.
        let refused = options("--tracker jitter", None).expect_err("no such tracker");
        assert_eq!(
            refused.fixed_by(),
            Some("'rtscope watch list' has the trackers")
        );
        check("", Some("tracker = ['x']"), "no such tracker");
        check("", Some("from = 'a'"), "of two events");
        check("", Some("key = 'a'"), "of two events");
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
