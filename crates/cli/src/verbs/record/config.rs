//! From what a recording was asked for to what the capture takes.

use std::sync::Arc;

use capture::{EventSelection, Probe, RecordConfig, Track, named_event};
use event::Result;
use ftrace::{DynamicEvents, EventName, Tracefs};
use host::users;

use crate::options::{RecordOptions, Target, TrackOptions};
use crate::signals;
use crate::verbs::room;
use crate::verbs::watch::targets::{Matched, Whom};

/// What the capture is to do.
pub(super) fn config(options: RecordOptions) -> Result<RecordConfig> {
    let filters: Result<Vec<_>> = options
        .filters
        .into_iter()
        .map(|(name, filter)| Ok((event_name(&name, &options.probes)?, filter)))
        .collect();
    let bytes = room::kernel_buffer(options.buffer_bytes)?;
    for channel in &options.channels {
        room::kernel_buffer(channel.buffer_bytes_per_cpu as u64)?;
    }
    Ok(RecordConfig {
        duration: options.duration,
        kernel: options.kernel,
        contexts: options.contexts,
        user: options.user,
        events: EventSelection::new(&options.events),
        has_first: options.has_first,
        channels: options.channels,
        command: (!options.command.is_empty()).then_some(options.command),
        filters: filters?,
        track: options.track.map(track),
        probes: options.probes,
        functions: options.functions,
        memory_maps: options.maps,
        own_calls: options.own_calls,
        raw: options.raw,
        to: options.to,
        is_enough: signals::is_asked_again,
        buffer_bytes_per_cpu: bytes,
        stop: signals::take_over()?,
        ..RecordConfig::new(options.output)
    })
}

/// Whose events alone are recorded.
pub(super) fn track(options: TrackOptions) -> Track {
    let (words, command) = (options.words.clone(), options.command);
    let has_newcomers = options.has_newcomers();
    let users = options.users;
    let whom = Whom {
        target: Target::Tasks(options.tasks),
        asked: options.groups,
        family: None,
    };
    let find = move || {
        let mut matched = Matched::find(&whom)?;
        let processes = matched.by_program();
        processes
            .into_iter()
            .for_each(|process| matched.target.add(process));
        let mut found = matched.tids();
        found.extend(users::threads_of(&users));
        found.sort_unstable();
        found.dedup();
        Ok(found)
    };
    Track {
        words,
        command,
        has_newcomers,
        find: Arc::new(find),
    }
}

/// The event called `name` by the kernel, with or without its system, or by LTTng.
fn event_name(name: &str, probes: &[Probe]) -> Result<EventName> {
    if probes.iter().any(|probe| probe.name == name) {
        return Ok(EventName {
            system: DynamicEvents::group(),
            name: name.to_owned(),
        });
    }
    let available = Tracefs::find()?.available_events()?;
    named_event(name, &available).cloned()
}
