//! From what a recording was asked for to what the capture takes.

use capture::{EventSelection, Probe, RecordConfig};
use event::{Error, ErrorKind, Result};
use ftrace::{DynamicEvents, EventName, Tracefs};

use crate::options::RecordOptions;
use crate::signals;

/// What the capture is to do.
pub(super) fn config(options: RecordOptions) -> Result<RecordConfig> {
    let filters: Result<Vec<_>> = options
        .filters
        .into_iter()
        .map(|(name, filter)| Ok((event_name(&name, &options.probes)?, filter)))
        .collect();
    let bytes = usize::try_from(options.buffer_bytes).map_err(|_| {
        Error::new(
            ErrorKind::InvalidInput,
            "--buffer is larger than this machine can address",
        )
    })?;
    Ok(RecordConfig {
        duration: options.duration,
        kernel: options.kernel,
        user: options.user,
        events: EventSelection::new(&options.events),
        command: (!options.command.is_empty()).then_some(options.command),
        filters: filters?,
        probes: options.probes,
        memory_maps: options.maps,
        own_calls: options.own_calls,
        buffer_bytes_per_cpu: bytes,
        stop: signals::take_over()?,
        ..RecordConfig::new(options.output)
    })
}

/// The event called `name`, with or without its system.
fn event_name(name: &str, probes: &[Probe]) -> Result<EventName> {
    if probes.iter().any(|probe| probe.name == name) {
        return Ok(EventName {
            system: DynamicEvents::group(),
            name: name.to_owned(),
        });
    }
    if let Some(event) = EventName::parse(name) {
        return Ok(event);
    }
    let mut known = Tracefs::find()?.available_events()?.into_iter();
    known.find(|event| event.name == name).ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "--filter names an event that this kernel does not have",
        )
        .found(format!("'{name}'"))
        .fix("sudo grep NAME /sys/kernel/tracing/available_events finds it")
    })
}
