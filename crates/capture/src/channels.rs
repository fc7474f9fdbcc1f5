//! The channels of a recording: each has rings of its own, in an instance of its own, so that
//! events that come often take no room from rare ones. All of them are one trace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bpf_host::ContextRing;
use event::{Cpu, Error, ErrorKind, Result, Tid};
use ftrace::{EventName, Formats, Instance, PagePipe};

use crate::kernel_filter;
use crate::probes::Probes;
use crate::recorder::{FORK, Mode, Recorder, RecorderConfig};
use crate::select::EventSelection;

/// The name that LTTng gives its first channel.
pub(crate) const CHANNEL_NAME: &str = "channel0";

/// A channel beside the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// What it is called.
    pub name: String,
    /// The events that come in it, and in no other.
    pub events: EventSelection,
    /// The size of each CPU's ring.
    pub buffer_bytes_per_cpu: usize,
    /// What a full ring does.
    pub mode: Mode,
}

/// Which ring: of which channel, and of which CPU. The first channel is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RingId {
    pub channel: usize,
    pub cpu: Cpu,
}

/// A ring that is to be emptied.
pub(crate) struct Ring<'a> {
    pub id: RingId,
    pub instance: &'a Instance,
    pub pipe: &'a mut PagePipe,
    /// What BPF reads at its events.
    pub contexts: Option<ContextRing>,
    /// Whether it refuses events when it is full.
    pub refuses: bool,
}

/// Which events come in which channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Division {
    /// Of each channel, the first one before all others.
    pub events: Vec<Vec<EventName>>,
    /// What was asked for and this kernel does not have.
    pub absent: Vec<String>,
}

impl Division {
    /// Divides what was asked for: a channel takes its events from the first one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an event of two channels; as [`EventSelection::resolve`].
    pub fn of(
        first: Option<&EventSelection>,
        channels: &[Channel],
        available: &[EventName],
    ) -> Result<Division> {
        let mut division = Division::default();
        let mut taken: BTreeMap<EventName, &str> = BTreeMap::new();
        let mut named = Vec::new();
        for channel in channels {
            let selected = channel.events.resolve(available)?;
            for event in &selected.events {
                if let Some(other) = taken.insert(event.clone(), &channel.name) {
                    return Err(of_two(event, other, &channel.name));
                }
            }
            division.absent.extend(selected.absent);
            named.push(selected.events);
        }
        let first = first.map(|first| first.resolve(available)).transpose()?;
        let mut first = first.unwrap_or_default();
        first.events.retain(|event| !taken.contains_key(event));
        division.absent.extend(first.absent);
        division.events.push(first.events);
        division.events.append(&mut named);
        Ok(division)
    }

    /// All events.
    pub fn all(&self) -> Vec<EventName> {
        self.events.iter().flatten().cloned().collect()
    }
}

fn of_two(event: &EventName, one: &str, other: &str) -> Error {
    let what = "an event comes in one channel, and two ask for it";
    Error::new(ErrorKind::InvalidInput, what)
        .found(format!("{event}: {one} and {other}"))
        .fix("leave it out of one of them: the trace has each event once")
}

/// The recorders of all channels.
pub(crate) struct Channels {
    /// With the number of the channel; one without events of ftrace's has none.
    recorders: Vec<(usize, Recorder)>,
    formats: Arc<Formats>,
    absent: Vec<String>,
}

impl Channels {
    /// Starts a recorder for each channel of `division` that has events: `usual` is what is asked
    /// of the first one, and what is not a channel's own is as there.
    ///
    /// # Errors
    /// As [`Recorder::start`].
    pub fn start(
        usual: &RecorderConfig,
        channels: &[Channel],
        division: &Division,
    ) -> Result<Channels> {
        let all = division.all();
        let stranger = usual.filters.iter().find(|(event, _)| !all.contains(event));
        if let Some((event, text)) = stranger.filter(|_| !channels.is_empty()) {
            return Err(kernel_filter::not_recorded(event, text));
        }
        let mut started = Vec::new();
        for (place, events) in division.events.iter().enumerate() {
            let channel = place.checked_sub(1).and_then(|place| channels.get(place));
            let mut config = match channel {
                Some(channel) => RecorderConfig {
                    events: only(events),
                    buffer_bytes_per_cpu: channel.buffer_bytes_per_cpu,
                    mode: channel.mode,
                    functions: Default::default(),
                    ..usual.clone()
                },
                None if channels.is_empty() => usual.clone(),
                None => RecorderConfig {
                    events: only(events),
                    ..usual.clone()
                },
            };
            if !channels.is_empty() {
                config.filters.retain(|(event, _)| events.contains(event));
                // None of ftrace's: what is left is a system call's.
                if events.iter().all(|event| usual.without.contains(event)) {
                    continue;
                }
            }
            started.push((place, Recorder::start(&config)?));
        }
        if started.is_empty() {
            // Of system calls alone: switches say whose they are.
            started.push((
                0,
                Recorder::start(&RecorderConfig {
                    events: only(&all),
                    ..usual.clone()
                })?,
            ));
        }
        let formats = match &started[..] {
            [(_, recorder)] => recorder.formats(),
            all => {
                let all: Vec<_> = all.iter().map(|(_, recorder)| recorder.formats()).collect();
                let events = all.iter().flat_map(|formats| formats.iter().cloned());
                Arc::new(Formats::new(all[0].layout, events))
            }
        };
        Ok(Channels {
            recorders: started,
            formats,
            absent: division.absent.clone(),
        })
    }

    /// Keeps `probes` in place for as long as they record.
    pub fn with_probes(mut self, probes: Option<Probes>) -> Self {
        if let Some((place, recorder)) = self.recorders.pop() {
            self.recorders.push((place, recorder.with_probes(probes)));
        }
        self
    }

    /// The CPUs that are recorded.
    pub fn cpus(&self) -> Vec<Cpu> {
        self.recorders[0].1.cpus()
    }

    /// All rings.
    pub fn rings(&self) -> Vec<RingId> {
        let rings = |(channel, recorder): &(usize, Recorder)| {
            let channel = *channel;
            let cpus = recorder.cpus().into_iter();
            cpus.map(move |cpu| RingId { channel, cpu })
                .collect::<Vec<_>>()
        };
        self.recorders.iter().flat_map(rings).collect()
    }

    /// What is needed to understand the pages of all of them.
    pub fn formats(&self) -> Arc<Formats> {
        Arc::clone(&self.formats)
    }

    /// Events of the asked sets that this kernel does not have.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// What could not be had of probes and functions.
    pub fn left_out(&self) -> Vec<String> {
        let all = self.recorders.iter();
        all.flat_map(|(_, recorder)| recorder.left_out()).collect()
    }

    /// Whose events alone are recorded now, where not everybody's are.
    pub fn tracked(&self) -> Result<Vec<Tid>> {
        self.recorders[0].1.tracked()
    }

    /// The instances, and all rings.
    pub fn parts(&mut self) -> (Vec<&Instance>, Vec<Ring<'_>>) {
        let (mut instances, mut rings) = (Vec::new(), Vec::new());
        for (channel, recorder) in &mut self.recorders {
            let mut contexts = recorder.context_rings();
            let refuses = recorder.mode() == Mode::Discard;
            let (instance, pipes) = recorder.parts();
            instances.push(instance);
            rings.extend(pipes.iter_mut().map(|pipe| Ring {
                id: RingId {
                    channel: *channel,
                    cpu: pipe.cpu(),
                },
                instance,
                contexts: contexts.remove(&pipe.cpu()),
                pipe,
                refuses,
            }));
        }
        (instances, rings)
    }
}

/// Keeps events out of all rings.
///
/// # Errors
/// The first that the kernel says.
pub(crate) fn stop(instances: &[&Instance]) -> Result<()> {
    let stopped = instances.iter().map(|instance| instance.stop());
    stopped.fold(Ok(()), Result::and)
}

/// These events by their full names.
fn only(events: &[EventName]) -> EventSelection {
    EventSelection::new(events.iter().map(ToString::to_string))
}

/// Where who descends from whom is recorded, for whoever tracks tasks: in the channel that has it,
/// else in the first that has any event.
pub(crate) fn with_fork(division: &mut Division, available: &[EventName]) {
    let is_fork = |event: &&EventName| event.to_string() == FORK;
    let Some(fork) = available.iter().find(is_fork) else {
        return;
    };
    let mut all = division.events.iter().flatten();
    if !all.any(|event| event == fork)
        && let Some(events) = division.events.iter_mut().find(|events| !events.is_empty())
    {
        events.push(fork.clone());
    }
}

/// What the channels are called beside the first.
pub(crate) fn channel_names(channels: &[Channel]) -> Vec<String> {
    channels
        .iter()
        .map(|channel| channel.name.clone())
        .collect()
}

/// What the channel with this number is called.
pub(crate) fn name(channels: &[Channel], number: usize) -> &str {
    let named = number.checked_sub(1).and_then(|place| channels.get(place));
    named.map_or(CHANNEL_NAME, |channel| &channel.name)
}

/// The size of the rings of the channel with this number; `first_bytes` is that of the first.
pub(crate) fn buffer_bytes(channels: &[Channel], number: usize, first_bytes: usize) -> usize {
    let named = number.checked_sub(1).and_then(|place| channels.get(place));
    named.map_or(first_bytes, |channel| channel.buffer_bytes_per_cpu)
}

/// The size of the rings of system calls: that of the first channel that has one of them.
pub(crate) fn calls_bytes(
    (channels, first_bytes): (&[Channel], usize),
    division: &Division,
    calls: &BTreeSet<EventName>,
) -> usize {
    let has_calls = |events: &Vec<EventName>| events.iter().any(|event| calls.contains(event));
    let number = division.events.iter().position(has_calls);
    buffer_bytes(channels, number.unwrap_or(0), first_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(name: &str, events: &[&str]) -> Channel {
        Channel {
            name: name.to_owned(),
            events: EventSelection::new(events),
            buffer_bytes_per_cpu: 1 << 20,
            mode: Mode::Stream,
        }
    }

    #[test]
    fn a_channel_takes_its_events_from_the_first_and_shares_none_with_another() {
        let names = [
            "sched:sched_switch",
            "sched:sched_waking",
            "irq:softirq_entry",
        ];
        let available: Vec<EventName> = names
            .iter()
            .filter_map(|name| EventName::parse(name))
            .collect();
        let check =
            |first: Option<&[&str]>, channels: &[Channel], expect: Result<&[&str], &str>| {
                let first = first.map(EventSelection::new);
                let found = Division::of(first.as_ref(), channels, &available);
                let words = |events: &Vec<EventName>| {
                    let names = events.iter().map(|event| event.name.as_str());
                    names.collect::<Vec<_>>().join(" ")
                };
                let found = found.map(|found| found.events.iter().map(words).collect::<Vec<_>>());
                let found = found.map_err(|error| error.value_found().unwrap_or("").to_owned());
                let expect = expect.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
                assert_eq!(found, expect.map_err(str::to_owned));
            };
        let first: &[&str] = &["sched:*", "irq:*"];
        check(
            Some(first),
            &[],
            Ok(&["softirq_entry sched_switch sched_waking"]),
        );
        let rare = channel("rare", &["softirq_entry"]);
        let two = [rare.clone()];
        check(
            Some(first),
            &two,
            Ok(&["sched_switch sched_waking", "softirq_entry"]),
        );
        check(None, &two, Ok(&["", "softirq_entry"]));
        let both = [rare, channel("also", &["irq:*"])];
        check(None, &both, Err("irq:softirq_entry: rare and also"));
    }
}
