//! What a session was asked to do: what was typed, and behind it what a file says.

use std::path::{Path, PathBuf};

use capture::Keep;
use capture::session::SessionName;
use event::{Duration, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keep::keep;
use super::receive::to;
use super::record::RecordOptions;
use super::settings::settings;
use super::words::{parse_size, positive_duration};
use crate::flags::{RecordStart, RecordTo, RecordWhat};

/// A shorter archive holds little but its own tables.
const EVERY_MIN: Duration = Duration::from_ms(100);
/// The same of its size.
const SIZE_MIN_BYTES: u64 = 1 << 20;
/// What `--keep` takes.
const KEEP_FIX: &str = "give archives, room or both, as in 20, 10G or 20/10G";

/// The settings of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    output: Option<PathBuf>,
    events: Vec<String>,
    user: Vec<String>,
    exclude: Vec<String>,
    ring: Option<String>,
    rings_per_user: Option<String>,
    context: Vec<String>,
    filter: Vec<String>,
    track: Vec<String>,
    uprobe: Vec<String>,
    uretprobe: Vec<String>,
    usdt: Vec<String>,
    probe: Vec<String>,
    retprobe: Vec<String>,
    functions: Vec<String>,
    event_file: Vec<String>,
    channel: Vec<String>,
    maps: bool,
    #[serde(rename = "self")]
    own_calls: bool,
    buffer: Option<String>,
    flight: bool,
    rotate_every: Option<String>,
    rotate_size: Option<String>,
    keep: Option<String>,
    duration: Option<String>,
    to: Option<String>,
    token_file: Option<PathBuf>,
    spool: Option<String>,
}

/// A session, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOptions {
    /// Its name.
    pub name: SessionName,
    /// What it records, where to, and for how long.
    pub record: RecordOptions,
    /// Whether rings keep their newest events.
    pub flight: bool,
    /// A new archive so often.
    pub rotate_every: Option<Duration>,
    /// A new archive when it is so large.
    pub rotate_size_bytes: Option<u64>,
    /// Which archives stay.
    pub keep: Keep,
    /// All of that in the words of a file.
    saved: Saved,
}

/// What was asked for, typed or in a file, in the words of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Saved {
    output: PathBuf,
    #[serde(flatten)]
    what: RecordWhat,
    flight: bool,
    rotate_every: Option<String>,
    rotate_size: Option<String>,
    keep: Option<String>,
    duration: Option<String>,
    to: Option<String>,
    token_file: Option<PathBuf>,
    spool: Option<String>,
}

/// A line of a file of settings: TOML writes these values as JSON does.
pub fn setting(key: &str, value: &Value) -> String {
    format!("{key} = {value}\n")
}

/// Refuses what a session in flight cannot do.
fn require_flying(record: &RecordOptions) -> Result<()> {
    let refuse = |what: &str, found: &str, fix: &str| {
        Err(Error::new(ErrorKind::Unsupported, what)
            .found(found)
            .fix(fix))
    };
    if record.track.is_some() {
        return refuse(
            "a session in flight keeps everybody's events",
            "flight, and track",
            "leave one of them away",
        );
    }
    if !record.channels.is_empty() {
        return refuse(
            "a session in flight has one channel",
            "flight, and channel",
            "start a session in flight for each, with --events and --buffer of its own",
        );
    }
    if record.contexts.needs_reader() {
        return refuse(
            "a session in flight keeps no contexts that ftrace does not note",
            "flight, and such a context",
            "leave --flight out, or ask for tid, pid, cpu_id, interruptible, preemptible, \
             preempt_count, migratable, need_reschedule, irq_context or call stacks",
        );
    }
    Ok(())
}

impl SessionOptions {
    /// From what was typed and the file that it names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what makes no sense, with the place in the file;
    /// [`ErrorKind::NotFound`] when there is no such file.
    pub fn new(typed: &RecordStart) -> Result<Self> {
        let name = SessionName::parse(&typed.name)?;
        let file = match &typed.config {
            Some(path) => settings(path, "docs/sessions.md")?,
            None => Settings::default(),
        };
        let either = |typed: &Option<String>, file: &Option<String>| {
            typed.as_ref().or(file.as_ref()).cloned()
        };
        let flight = typed.flight || file.flight;
        let every = either(&typed.rotate_every, &file.rotate_every);
        let size = either(&typed.rotate_size, &file.rotate_size);
        if flight && (every.is_some() || size.is_some()) {
            let what = "a session in flight has no archives to rotate";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found("flight, and rotate_every or rotate_size")
                .fix("leave one of them away"));
        }
        let what = what(&typed.what, &file);
        let mut record = RecordOptions::of(&what)?;
        if let Some(track) = &record.track {
            track.require_no_command()?;
        }
        if flight {
            require_flying(&record)?;
        }
        let output = typed.output.clone().or(file.output);
        record.output = output.unwrap_or_else(|| format!("rtscope-{name}").into());
        let length = either(&typed.duration, &file.duration);
        let duration = length
            .as_ref()
            .map(|text| positive_duration("--duration", text));
        record.duration = duration.transpose()?;
        let kept = either(&typed.keep, &file.keep);
        let there = RecordTo {
            to: either(&typed.to.to, &file.to),
            token_file: typed.to.token_file.clone().or(file.token_file),
            spool: either(&typed.to.spool, &file.spool),
        };
        record.to = to(&there)?;
        if record.to.is_some() && (flight || kept.is_some()) {
            let what = "a session that streams keeps nothing here";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found("--to, and --keep or --flight")
                .fix("leave one of them away"));
        }
        let saved = Saved {
            output: record.output.clone(),
            what,
            flight,
            rotate_every: every.clone(),
            rotate_size: size.clone(),
            keep: kept.clone(),
            duration: length,
            to: there.to,
            token_file: there.token_file,
            spool: there.spool,
        };
        Ok(SessionOptions {
            saved,
            name,
            record,
            flight,
            rotate_every: every.map(|text| rotate_every(&text)).transpose()?,
            rotate_size_bytes: size.map(|text| rotate_size(&text)).transpose()?,
            keep: kept.map_or(Ok(Keep::ALL), |text| {
                keep("--keep", &text, "archives", KEEP_FIX)
            })?,
        })
    }
}

impl SessionOptions {
    /// All that was asked for as a file of settings, which means the same in every folder.
    ///
    /// # Errors
    /// When this folder cannot be named.
    pub fn settings(&self) -> Result<String> {
        let absolute = |path: &Path| {
            let absolute = std::path::absolute(path);
            absolute.map_err(|cause| Error::io("cannot name the folder we are in", cause))
        };
        let mut saved = self.saved.clone();
        saved.output = absolute(&saved.output)?;
        saved.token_file = saved.token_file.as_deref().map(absolute).transpose()?;
        for file in &mut saved.what.event_file {
            let path = Path::new(file.as_str());
            if path.exists() {
                *file = absolute(path)?.to_string_lossy().into_owned();
            }
        }
        let table = serde_json::to_value(&saved).unwrap_or_default();
        let is_said = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) => !list.is_empty(),
            _ => true,
        };
        let lines = table.as_object().into_iter().flatten();
        let lines = lines.filter(|(_, value)| is_said(value));
        Ok(lines.map(|(key, value)| setting(key, value)).collect())
    }
}

/// What is typed goes before what the file says, list by list.
fn what(typed: &RecordWhat, file: &Settings) -> RecordWhat {
    let list = |typed: &Vec<String>, file: &Vec<String>| match typed.is_empty() {
        true => file.clone(),
        false => typed.clone(),
    };
    let either =
        |typed: &Option<String>, file: &Option<String>| typed.as_ref().or(file.as_ref()).cloned();
    RecordWhat {
        events: list(&typed.events, &file.events),
        user: list(&typed.user, &file.user),
        exclude: list(&typed.exclude, &file.exclude),
        ring: either(&typed.ring, &file.ring),
        rings_per_user: either(&typed.rings_per_user, &file.rings_per_user),
        context: list(&typed.context, &file.context),
        filter: list(&typed.filter, &file.filter),
        track: list(&typed.track, &file.track),
        uprobe: list(&typed.uprobe, &file.uprobe),
        uretprobe: list(&typed.uretprobe, &file.uretprobe),
        usdt: list(&typed.usdt, &file.usdt),
        probe: list(&typed.probe, &file.probe),
        retprobe: list(&typed.retprobe, &file.retprobe),
        functions: list(&typed.functions, &file.functions),
        event_file: list(&typed.event_file, &file.event_file),
        channel: list(&typed.channel, &file.channel),
        maps: typed.maps || file.maps,
        own_calls: typed.own_calls || file.own_calls,
        buffer: either(&typed.buffer, &file.buffer),
    }
}

fn rotate_every(text: &str) -> Result<Duration> {
    let every = positive_duration("--rotate-every", text)?;
    match every < EVERY_MIN {
        true => Err(
            Error::new(ErrorKind::InvalidInput, "the archives are too short")
                .found(every.to_string())
                .fix(format!("give --rotate-every {EVERY_MIN} or more")),
        ),
        false => Ok(every),
    }
}

fn rotate_size(text: &str) -> Result<u64> {
    let bytes = parse_size("--rotate-size", text)?;
    match bytes < SIZE_MIN_BYTES {
        true => Err(
            Error::new(ErrorKind::InvalidInput, "the archives are too small")
                .found(format!("{bytes} bytes"))
                .fix("give --rotate-size 1M or more"),
        ),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        start: RecordStart,
    }

    fn options(line: &str, file: Option<&str>) -> Result<SessionOptions> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("session.toml");
        let words = std::iter::once("start").chain(line.split_whitespace());
        let mut typed = Line::try_parse_from(words).expect("parses").start;
        if let Some(text) = file {
            std::fs::write(&path, text).expect("written");
            typed.config = Some(path);
        }
        SessionOptions::new(&typed)
    }

    #[test]
    fn what_is_typed_goes_before_what_a_file_says() {
        let plain = options("night", None).expect("valid");
        assert_eq!(plain.record.output, Path::new("rtscope-night"));
        assert!(plain.record.kernel && plain.keep == Keep::ALL && !plain.flight);
        let file = "output = '/data'\nevents = ['sched', 'irq']\nuser = ['npt:*']\n\
                    rotate_every = '10m'\nrotate_size = '100M'\nkeep = '20/2G'\nbuffer = '8M'\n\
                    self = true\nmaps = true\nduration = '1h'\ncontext = ['prio']\n\
                    exclude = ['npt:noise']\nring = '3M'\nrings_per_user = '64M'";
        let told = options("night", Some(file)).expect("valid");
        assert_eq!(told.record.output, Path::new("/data"));
        assert_eq!(told.record.events, ["sched", "irq"]);
        assert_eq!(told.record.buffer_bytes, 8 << 20);
        assert!(told.record.own_calls && told.record.maps);
        let user = told.record.user.expect("applications");
        assert_eq!(user.ring_bytes(), Some(4 << 20));
        assert_eq!(user.user_bytes(), Some(64 << 20));
        assert_eq!(told.rotate_every, Some(Duration::from_ms(600_000)));
        assert_eq!(told.rotate_size_bytes, Some(100 << 20));
        let keep = Keep {
            count: 20,
            bytes: Some(2 << 30),
        };
        assert_eq!(told.keep, keep);
        let line = "night --events timer --keep 3 --rotate-every 1s -o here";
        let other = options(line, Some(file)).expect("valid");
        assert_eq!(other.record.events, ["timer"]);
        assert_eq!((other.keep.count, other.keep.bytes), (3, None));
        assert_eq!(other.rotate_every, Some(Duration::from_ms(1000)));
        assert_eq!(other.record.output, Path::new("here"));
    }

    #[test]
    fn what_was_asked_for_is_a_file_that_asks_for_the_same() {
        let check = |line: &str, expect: &[&str]| {
            let first = options(line, None).expect("valid");
            let text = first.settings().expect("settings");
            assert_eq!(text.lines().collect::<Vec<_>>(), expect, "{line}");
            let again = options("night", Some(&text)).expect("valid");
            assert_eq!(again.settings().expect("settings"), text);
            assert_eq!(
                again.record,
                RecordOptions {
                    output: again.record.output.clone(),
                    ..first.record
                }
            );
            assert_eq!((again.flight, again.keep), (first.flight, first.keep));
        };
        check("night -o /a", &["output = \"/a\""]);
        let line = "night -o /a --events sched,irq --buffer 8M --self --rotate-every 10m --keep 3 \
                    --track pid:1 --maps";
        let mut expect = vec![
            "buffer = \"8M\"",
            "events = [\"sched\",\"irq\"]",
            "keep = \"3\"",
            "maps = true",
            "output = \"/a\"",
            "rotate_every = \"10m\"",
            "self = true",
            "track = [\"pid:1\"]",
        ];
        check(line, &expect);
        expect.retain(|line| line.starts_with("output"));
        expect.insert(0, "flight = true");
        check("night -o /a --flight", &expect);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let check = |line: &str, file: Option<&str>, expect: &str| {
            let error = options(line, file).expect_err(expect);
            assert!(error.what().contains(expect), "{error:#}");
            assert!(
                error.value_found().is_some() && error.fixed_by().is_some(),
                "{error:#}"
            );
        };
        check("a/b", None, "not a name for a session");
        check("night --rotate-every 1ms", None, "too short");
        check("night --rotate-every 5", None, "no unit");
        check("night --rotate-size 4K", None, "too small");
        check("night --keep 0", None, "--keep is no number of archives");
        check("night --keep 3/x", None, "--keep is no number of archives");
        check("night --buffer 3X", None, "--buffer is not a size");
        check("night", Some("evnts = []"), "line 1, column 1");
        check(
            "night",
            Some("events = []\n  flihgt = true"),
            "line 2, column 3",
        );
        check("night", Some("events = []\nkeep = 3"), "line 2, column 8");
        check(
            "night",
            Some("# \u{e4}\u{e4}\nself = \"\u{e4}\""),
            "line 2, column 8",
        );
        check("night", Some("[["), "line 1");
        check(
            "night",
            Some("flight = true\nrotate_every = '1s'"),
            "in flight",
        );
        check("night --flight", Some("rotate_size = '5M'"), "in flight");
        check("night --flight --context tid,prio", None, "in flight");
        check("night", Some("events = ['sched']\nevents = []"), "line 2");
    }
}
