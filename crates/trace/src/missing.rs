//! Streams of a CTF trace that should be there and are not.

use std::collections::{BTreeMap, BTreeSet};

use event::Cpu;

use crate::ctf_trace::Part;
use crate::{LostFrom, TraceInfo};

/// LTTng's kernel tracer writes a stream of each channel for each CPU.
const EVERY_CPU: &str = "lttng-modules";
/// A trace that rtscope wrote has this in its environment.
const OURS: &str = "rtscope_version";
/// How files are called there whose streams only those CPUs have that have some. All others are
/// channels of the kernel's events, of which each CPU has a file.
const NO_CHANNELS: [&str; 5] = [
    "evidence",
    "evidence_gone",
    "state",
    "statedump",
    "syscalls",
];
/// The CPUs that rtscope recorded, as a list: each has a stream of the kernel's events.
pub const RECORDED_CPUS: &str = "rtscope_cpus";
/// The events of which `record --filter` let the kernel write some only, as a list: `a,b`.
pub const FILTERED_EVENTS: &str = "rtscope_filtered_events";
/// Whose events alone `record --track` let the kernel write, in its words. What others did is not
/// in the trace, nor who else had a CPU.
pub const TRACKED_TASKS: &str = "rtscope_tracked_tasks";
/// More CPUs than a kernel can be built for.
const CPUS_MAX: u32 = 8192;

impl TraceInfo {
    /// Whether each CPU that was recorded has a stream, and nothing says which these are: a CPU
    /// that events name, behind those that have one, lost its own.
    pub fn has_a_stream_of_every_cpu(&self) -> bool {
        !self.environment.contains_key(RECORDED_CPUS) && is_of_every_cpu(&self.environment)
    }

    /// Whether a filter of the recording left some of these events out.
    pub fn is_filtered(&self, event: &str) -> bool {
        let said = self.environment.get(FILTERED_EVENTS);
        said.is_some_and(|list| list.split(',').any(|name| name == event))
    }
}

fn is_of_every_cpu(environment: &BTreeMap<String, String>) -> bool {
    let tracer = environment.get("tracer_name");
    tracer.is_some_and(|name| name == EVERY_CPU)
}

/// The CPUs of streams that are missing, each as often as it is, and what they held: a link that
/// leads nowhere, an empty file where others are not, a CPU that other channels have. None is a CPU
/// that nobody knows.
pub(crate) fn streams(part: &Part) -> Vec<(Option<Cpu>, LostFrom)> {
    let files = part.files.streams().iter().zip(part.files.indexes());
    let known: Vec<(&str, u32)> = files
        .clone()
        .filter_map(|(file, index)| Some((file.name(), index.cpu?)))
        .collect();
    let spelling = Spelling::of(&known);
    let cpu = |name: &str| spelling.and_then(|spelling| spelling.cpu(name)).map(Cpu);
    let of_file = |name: &str| (cpu(name), part.kind_of_stream(None));
    let dangling = part.files.dangling().iter();
    let mut missing: Vec<_> = dangling.map(|name| of_file(name)).collect();
    let has_bytes = part
        .files
        .streams()
        .iter()
        .any(|file| file.size_bytes() > 0);
    let empty = files.clone().filter(|(file, _)| file.size_bytes() == 0);
    if has_bytes {
        missing.extend(empty.map(|(file, _)| of_file(file.name())));
    }
    if is_of_every_cpu(&part.environment) {
        let is_ours = part.environment.contains_key(OURS);
        let last = files.clone().filter_map(|(_, index)| index.cpu).max();
        let files = files.filter(|(file, _)| !is_ours || is_of_channel(file.name()));
        let known = files.filter_map(|(_, index)| Some((index.stream_class, index.cpu?)));
        let left_out = match recorded(&part.environment) {
            Some(recorded) => without_stream(recorded, known),
            None => left_out(known, last),
        };
        let left_out = left_out.into_iter();
        missing.extend(left_out.map(|cpu| (Some(Cpu(cpu)), LostFrom::Recording)));
    }
    missing
}

/// CPUs that have no stream of a channel, although they lie between others or another channel has
/// them; `last` is the last CPU that any stream has.
fn left_out(streams: impl Iterator<Item = (Option<u64>, u32)>, last: Option<u32>) -> Vec<u32> {
    let mut channels: BTreeMap<Option<u64>, BTreeSet<u32>> = BTreeMap::new();
    for (channel, cpu) in streams.filter(|(_, cpu)| *cpu < CPUS_MAX) {
        channels.entry(channel).or_default().insert(cpu);
    }
    let last = last.filter(|cpu| *cpu < CPUS_MAX);
    let all = || (0..=last.unwrap_or(0)).filter(|_| last.is_some());
    let missing = channels
        .values()
        .flat_map(|cpus| all().filter(|cpu| !cpus.contains(cpu)));
    missing.collect()
}

/// The CPUs that the trace says were recorded.
pub(crate) fn recorded(environment: &BTreeMap<String, String>) -> Option<Vec<Cpu>> {
    Cpu::parse_list(environment.get(RECORDED_CPUS)?).ok()
}

/// Those of them that have no stream of a channel: of any, where there is none at all.
fn without_stream(
    recorded: Vec<Cpu>,
    streams: impl Iterator<Item = (Option<u64>, u32)>,
) -> Vec<u32> {
    let mut channels: BTreeMap<Option<u64>, BTreeSet<u32>> = BTreeMap::new();
    for (channel, cpu) in streams {
        channels.entry(channel).or_default().insert(cpu);
    }
    let is_there = |cpu: &u32| {
        let mut all = channels.values();
        !channels.is_empty() && all.all(|there| there.contains(cpu))
    };
    let recorded = recorded.into_iter().map(|cpu| cpu.0);
    recorded.filter(|cpu| !is_there(cpu)).collect()
}

/// Whether a file of ours, as `NAME_3`, has events of a channel.
fn is_of_channel(file: &str) -> bool {
    let name = file.rsplit_once('_').map_or(file, |(name, _)| name);
    !NO_CHANNELS.contains(&name)
}

/// How names of files spell their CPU: by which number from the end, as in `channel0_3` or, when
/// the tracer rotated them, `channel0_3_12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spelling(usize);

impl Spelling {
    /// The one that is right for all.
    fn of(known: &[(&str, u32)]) -> Option<Spelling> {
        let is_right = |spelling: &Spelling| {
            let mut known = known.iter();
            known.all(|(name, cpu)| spelling.cpu(name) == Some(*cpu))
        };
        let mut all = [Spelling(0), Spelling(1)].into_iter().filter(is_right);
        all.next().filter(|_| !known.is_empty())
    }

    fn cpu(self, name: &str) -> Option<u32> {
        let is_digit = |c: char| c.is_ascii_digit();
        let mut numbers = name
            .rsplit(|c| !is_digit(c))
            .filter(|word| !word.is_empty());
        numbers.nth(self.0)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_of_a_file_is_spelled_as_those_of_the_others_are() {
        let check = |known: &[(&str, u32)], name: &str, expect: Option<u32>| {
            let spelling = Spelling::of(known);
            assert_eq!(
                spelling.and_then(|spelling| spelling.cpu(name)),
                expect,
                "{name}"
            );
        };
        check(
            &[("channel0_0", 0), ("channel0_2", 2)],
            "channel0_1",
            Some(1),
        );
        check(
            &[("channel0_0_7", 0), ("channel0_2_7", 2)],
            "channel0_1_7",
            Some(1),
        );
        check(&[("stream", 0)], "other", None);
        check(&[("a_1", 0)], "a_2", None);
        check(&[], "a_2", None);
    }

    #[test]
    fn a_cpu_is_left_out_between_others_and_where_another_channel_has_it() {
        let check = |streams: &[(u64, u32)], last: Option<u32>, expect: &[u32]| {
            let streams = streams.iter().map(|(channel, cpu)| (Some(*channel), *cpu));
            assert_eq!(left_out(streams, last), expect);
        };
        check(&[(0, 0), (0, 1)], Some(1), &[]);
        check(&[(0, 0), (0, 2)], Some(2), &[1]);
        check(&[(0, 0), (0, 1), (1, 0)], Some(1), &[1]);
        // Only what a watch saw says that there is a CPU 1.
        check(&[(0, 0)], Some(1), &[1]);
        check(&[], None, &[]);
    }

    #[test]
    fn a_cpu_that_was_recorded_has_a_stream_and_no_other_is_missing() {
        let check = |said: &str, streams: &[u32], expect: Option<&[u32]>| {
            let environment = [(RECORDED_CPUS.to_owned(), said.to_owned())].into();
            let streams = streams.iter().map(|cpu| (Some(0), *cpu));
            let found = recorded(&environment).map(|cpus| without_stream(cpus, streams));
            assert_eq!(found.as_deref(), expect, "{said}");
        };
        check("0,1", &[0, 1], Some(&[]));
        check("0,1", &[0], Some(&[1]));
        check("0-3", &[2], Some(&[0, 1, 3]));
        // Others were not recorded.
        check("0,2", &[2, 0], Some(&[]));
        check("2", &[0, 2], Some(&[]));
        check("nonsense", &[0], None);
    }

    #[test]
    fn each_channel_has_a_stream_of_every_cpu_that_was_recorded() {
        let check = |files: &[(&str, u32)], expect: &[u32]| {
            let channels = files.iter().filter(|(name, _)| is_of_channel(name));
            let class = |name: &str| name.bytes().map(u64::from).next();
            let streams = channels.map(|(name, cpu)| (class(name), *cpu));
            let recorded = vec![Cpu(0), Cpu(1)];
            assert_eq!(without_stream(recorded, streams), expect, "{files:?}");
        };
        let statedump = ("statedump_0", 0);
        check(&[("channel0_0", 0), ("channel0_1", 1), statedump], &[]);
        check(&[("rare_0", 0), ("rare_1", 1), statedump], &[]);
        check(&[("rare_0", 0), statedump, ("evidence_gone_1", 1)], &[1]);
        let one = [("channel0_0", 0), ("channel0_1", 1), ("rare_1", 1)];
        check(&one, &[0]);
        check(&[statedump, ("syscalls_1", 1)], &[0, 1]);
    }
}
