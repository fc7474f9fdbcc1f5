//! What `rtscope record` was asked to do.

use std::ffi::OsString;
use std::path::PathBuf;

use abi::rings::{RING_BYTES_MAX, SUBBUFFER_BYTES_MIN};
use capture::{Channel, FunctionPatterns, KernelContexts, Probe, UserConfig};
use diagnosis::{TaskFilter, Until};
use event::{Duration, Error, ErrorKind, Result};
use host::groups::Asked;
use relay::To;

use super::channel::channels;
use super::events::Wanted;
use super::receive::to;
use super::tasks::{groups, processes, tasks};
use super::track::TrackOptions;
use super::{BUFFER_DEFAULT_BYTES, parse_size, positive_duration};
use crate::flags;

/// Eight sub-buffers of the smallest size, as the probe makes them.
const RING_BYTES_MIN: u64 = 8 * SUBBUFFER_BYTES_MIN;
/// Of less than this for all programs of a user, few would have any.
const USER_BYTES_MIN: u64 = 1 << 20;

/// A recording, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordOptions {
    /// Where the trace goes.
    pub output: PathBuf,
    /// When it ends by itself.
    pub duration: Option<Duration>,
    /// Sets, events and patterns; empty means the default set.
    pub events: Vec<String>,
    /// Probes in programs and in the kernel.
    pub probes: Vec<Probe>,
    /// Functions of the kernel.
    pub functions: FunctionPatterns,
    /// Whether any of these were asked for beside channels.
    pub has_first: bool,
    /// Channels of the kernel's events, with buffers of their own.
    pub channels: Vec<Channel>,
    /// Whether the kernel's events are wanted: not when only applications were asked for.
    pub kernel: bool,
    /// What each of the kernel's events carries besides its fields.
    pub contexts: KernelContexts,
    /// Events of applications.
    pub user: Option<UserConfig>,
    /// Filters: event, and expression.
    pub filters: Vec<(String, String)>,
    /// Whose events alone; everybody's when nobody was named.
    pub track: Option<TrackOptions>,
    /// Whether the state dump has the memory of all processes.
    pub maps: bool,
    /// Whether system calls of our own are wanted too.
    pub own_calls: bool,
    /// Whether the kernel's pages are kept as they are.
    pub raw: bool,
    /// Where it goes besides.
    pub to: Option<To>,
    /// Whose worst delay is told at the end; empty: that of all real-time tasks.
    pub tasks: TaskFilter,
    /// These control groups, units and containers too.
    pub groups: Vec<Asked>,
    /// Where an activation then ends.
    pub until: Until,
    /// Kernel buffer of each CPU.
    pub buffer_bytes: u64,
    /// What to run meanwhile; empty means nothing.
    pub command: Vec<OsString>,
}

impl RecordOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning.
    pub fn new(typed: &flags::Record) -> Result<Self> {
        let duration = |text: &String| positive_duration("--duration", text);
        let usual = RecordOptions::of(&typed.what)?;
        if let Some(track) = usual.track.as_ref().filter(|_| typed.command.is_empty()) {
            track.require_no_command()?;
        }
        Ok(RecordOptions {
            output: typed
                .output
                .clone()
                .unwrap_or_else(|| "rtscope-trace".into()),
            duration: typed.duration.as_ref().map(duration).transpose()?,
            tasks: tasks(&typed.task, typed.tid)?.or(processes(&typed.pid, &typed.process)?),
            groups: groups(&typed.cgroup, &typed.unit, &typed.container),
            until: typed.until.into(),
            command: typed.command.clone(),
            raw: is_raw(typed, &usual)?,
            to: to(&typed.to)?,
            ..usual
        })
    }

    /// The events that were asked for, and the usual rest.
    ///
    /// # Errors
    /// As [`RecordOptions::new`].
    pub fn of(what: &flags::RecordWhat) -> Result<Self> {
        let size = |text: &String| parse_size("--buffer", text);
        let wanted = Wanted::new(what)?;
        let filters: Result<_> = wanted.filters.iter().map(|text| filter(text)).collect();
        let has_events = !(wanted.events.is_empty() && wanted.filters.is_empty());
        let has_channels = !what.channel.is_empty();
        let kernel = what.user.is_empty() || has_events || has_channels;
        let buffer_bytes = what.buffer.as_ref();
        let buffer_bytes = buffer_bytes.map_or(Ok(BUFFER_DEFAULT_BYTES), size)?;
        let (contexts, of_applications) = contexts(what, kernel)?;
        Ok(RecordOptions {
            output: PathBuf::new(),
            duration: None,
            kernel,
            // A filter is of an event that a channel may have.
            has_first: !wanted.events.is_empty() || !has_channels,
            channels: channels(&what.channel, buffer_bytes)?,
            events: wanted.events,
            probes: wanted.probes,
            functions: FunctionPatterns::new(&what.functions)?,
            contexts,
            user: (!what.user.is_empty())
                .then(|| applications(what, &of_applications))
                .transpose()?,
            filters: filters?,
            track: TrackOptions::new(&what.track)?,
            maps: what.maps,
            own_calls: what.own_calls,
            raw: false,
            to: None,
            tasks: tasks(&[], None)?,
            groups: Vec::new(),
            until: Until::Block,
            buffer_bytes,
            command: Vec::new(),
        })
    }
}

/// Whether pages are kept as they are: the kernel's alone.
fn is_raw(typed: &flags::Record, usual: &RecordOptions) -> Result<bool> {
    if typed.raw && !usual.channels.is_empty() {
        let what = "--raw keeps the pages of one channel";
        return Err(Error::new(ErrorKind::Unsupported, what)
            .found("--raw, and --channel")
            .fix("leave one of them out"));
    }
    match typed.raw && !usual.kernel {
        true => Err(
            Error::new(ErrorKind::InvalidInput, "--raw is for events of the kernel")
                .found("--user alone")
                .fix("leave --raw out, or add --events, as in --events default"),
        ),
        false => Ok(typed.raw),
    }
}

/// What the kernel's events are to carry, and what those of applications are.
fn contexts(what: &flags::RecordWhat, kernel: bool) -> Result<(KernelContexts, Vec<String>)> {
    let words = what.context.iter().flat_map(|words| words.split(','));
    let (mut of_kernel, mut of_applications) = (Vec::new(), Vec::new());
    for word in words.map(str::trim) {
        let can = (KernelContexts::has(word), UserConfig::has_context(word));
        match (can, kernel, what.user.is_empty()) {
            ((true, false), false, _) => return Err(no_kernel(word)),
            ((false, true), _, true) => return Err(no_applications(word)),
            // What nobody has is refused by whoever is recorded.
            ((false, false), _, true) => of_kernel.push(word),
            ((false, false), _, false) => of_applications.push(word.to_owned()),
            ((has_kernel, has_user), ..) => {
                of_kernel.extend((has_kernel && kernel).then_some(word));
                let is_told = has_user && !what.user.is_empty();
                of_applications.extend(is_told.then(|| word.to_owned()));
            }
        }
    }
    Ok((KernelContexts::new(of_kernel)?, of_applications))
}

/// A context of the kernel's events, and none of these are recorded.
fn no_kernel(word: &str) -> Error {
    let what = "only events of the kernel have this context, and none are recorded";
    Error::new(ErrorKind::InvalidInput, what)
        .found(format!("--context {word}, and --user alone"))
        .fix("add --events, as in --events sched; vpid and vtid are with --user always")
}

/// Not a context of the kernel's events, and nothing else is recorded.
fn no_applications(word: &str) -> Error {
    let what = "events of the kernel have no such context";
    Error::new(ErrorKind::Unsupported, what)
        .found(format!("--context {word}, and no --user"))
        .fix(format!(
            "leave it out, add --user, or take one of {}",
            KernelContexts::names()
        ))
}

/// Which events of applications, and how.
fn applications(what: &flags::RecordWhat, contexts: &[String]) -> Result<UserConfig> {
    let ring = what.ring.as_deref().map(ring_bytes).transpose()?;
    let of_user = what.rings_per_user.as_deref().map(user_bytes).transpose()?;
    let user = UserConfig::new(&what.user)?.without(&what.exclude)?;
    let user = user.with_contexts(contexts)?.with_rings(ring);
    Ok(user.with_rings_per_user(of_user))
}

/// What a user's programs may have together.
fn user_bytes(text: &str) -> Result<u64> {
    let flag = "--rings-per-user";
    let bytes = parse_size(flag, text)?;
    let (is_much, what) = (bytes > RING_BYTES_MAX, format!("{flag} is too "));
    match is_much || bytes < USER_BYTES_MIN {
        true => Err(Error::new(
            ErrorKind::InvalidInput,
            what + if is_much { "large" } else { "small" },
        )
        .found(format!("'{text}'"))
        .fix("give 1M to 4G: a program takes 32K at least with two CPUs")),
        false => Ok(bytes),
    }
}

/// Rings are powers of two, of some sub-buffers at least.
fn ring_bytes(text: &str) -> Result<u64> {
    let bytes = parse_size("--ring", text)?;
    match bytes > RING_BYTES_MAX {
        true => Err(Error::new(ErrorKind::InvalidInput, "--ring is too large")
            .found(format!("'{text}'"))
            .fix("give 4G or less")),
        false => Ok(bytes.next_power_of_two().max(RING_BYTES_MIN)),
    }
}

/// Reads `EVENT: EXPR`. The colon of `sched:sched_switch` has no space behind it.
fn filter(text: &str) -> Result<(String, String)> {
    let split = text
        .split_once(": ")
        .map(|(event, expr)| (event.trim(), expr.trim()));
    match split.filter(|(event, expr)| !event.is_empty() && !expr.is_empty()) {
        Some((event, text)) => {
            // A mistake is told here, before anything is looked for.
            expr::Expr::parse(text)?;
            Ok((event.to_owned(), text.to_owned()))
        }
        None => Err(
            Error::new(ErrorKind::InvalidInput, "--filter is not 'EVENT: EXPR'")
                .found(format!("'{text}'"))
                .fix("as in --filter 'sched_switch: next_prio < 0'"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_goes_to_the_events_that_can_carry_it() {
        let check =
            |context: &str, user: bool, events: bool, expect: Result<(usize, &[&str]), &str>| {
                let what = flags::RecordWhat {
                    context: vec![context.to_owned()],
                    user: user.then(|| "*".to_owned()).into_iter().collect(),
                    ..flags::RecordWhat::default()
                };
                let found = contexts(&what, events);
                let found =
                    found.map_err(|error| error.value_found().unwrap_or_default().to_owned());
                let expect = expect.map(|(kernel, of_applications)| {
                    let names = ["tid", "preemptible", "vuid"].into_iter().take(kernel);
                    let of_applications = of_applications.iter().map(|name| (*name).to_owned());
                    (
                        KernelContexts::new(names).expect("contexts"),
                        of_applications.collect::<Vec<_>>(),
                    )
                });
                assert_eq!(found, expect.map_err(str::to_owned), "{context}");
            };
        check("tid,preemptible", false, true, Ok((2, &[])));
        check("tid, policy", true, true, Ok((1, &["policy"])));
        check("tid,preemptible, vuid", true, true, Ok((3, &["vuid"])));
        check("vuid", true, false, Ok((0, &["vuid"])));
        check(
            "policy",
            false,
            true,
            Err("--context policy, and no --user"),
        );
        check("nonsense", false, true, Err("'nonsense'"));
        // Applications refuse it.
        check("nonsense", true, true, Ok((0, &["nonsense"])));
        check("tid", true, false, Err("--context tid, and --user alone"));
    }

    #[test]
    fn rings_are_powers_of_two_within_their_bounds() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(ring_bytes(text).ok(), expect, "{text}");
        };
        check("4M", Some(4 << 20));
        check("3M", Some(4 << 20));
        check("1", Some(32 << 10));
        check("4G", Some(4 << 30));
        check("5G", None);
        check("0", None);
        check("big", None);
    }

    #[test]
    fn what_a_user_may_have_is_neither_next_to_nothing_nor_beyond_all_rings() {
        let check = |text: &str, expect: Result<u64, &str>| {
            let found = user_bytes(text).map_err(|error| error.what().to_owned());
            assert_eq!(found, expect.map_err(str::to_owned), "{text}");
        };
        check("64M", Ok(64 << 20));
        check("1M", Ok(1 << 20));
        check("4G", Ok(4 << 30));
        check("1000K", Err("--rings-per-user is too small"));
        check("5G", Err("--rings-per-user is too large"));
    }

    #[test]
    fn a_filter_names_its_event_and_its_expression() {
        let check = |text: &str, expect: Option<(&str, &str)>| {
            let found = filter(text).ok();
            let found = found
                .as_ref()
                .map(|(event, expr)| (event.as_str(), expr.as_str()));
            assert_eq!(found, expect, "{text}");
        };
        check(
            "sched_switch: next_prio < 0",
            Some(("sched_switch", "next_prio < 0")),
        );
        check(
            "sched:sched_switch: next_pid == 1",
            Some(("sched:sched_switch", "next_pid == 1")),
        );
        check("sched:sched_switch", None);
        check(": x", None);
        check("a: ", None);
    }
}
