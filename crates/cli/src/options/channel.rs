//! `--channel 'NAME events=LIST [buffer=SIZE] [mode=MODE]'`: events in buffers of their own.

use capture::{Channel, EventSelection, Mode};
use event::{Error, ErrorKind, Result};

use super::words::parse_size;

/// What a trace calls other streams of its own.
const TAKEN: [&str; 5] = ["channel0", "evidence", "state", "statedump", "syscalls"];
const EXAMPLE: &str = "--channel 'irqs events=irq,softirq buffer=16M mode=discard'";
/// So long a name may be: it begins the names of files.
const NAME_MAX: usize = 64;

/// The channels that were typed; who says no size has `buffer_bytes`.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for what makes no sense.
pub(super) fn channels(typed: &[String], buffer_bytes: u64) -> Result<Vec<Channel>> {
    let mut channels: Vec<Channel> = Vec::new();
    for text in typed {
        let channel = channel(text, buffer_bytes)?;
        if channels.iter().any(|other| other.name == channel.name) {
            let what = "two channels have the same name";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("'{}'", channel.name))
                .fix("name each once, with all its events: events=irq,softirq"));
        }
        channels.push(channel);
    }
    Ok(channels)
}

fn channel(text: &str, buffer_bytes: u64) -> Result<Channel> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_name = !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(is_letter);
    if !is_name || TAKEN.contains(&name) {
        let what = "--channel does not begin with a name for a channel";
        return Err(Error::new(ErrorKind::InvalidInput, what)
            .found(format!("'{text}'"))
            .fix(format!(
                "letters, digits, '_' and '-', and none of {}, as in {EXAMPLE}",
                TAKEN.join(", ")
            )));
    }
    let (mut events, mut bytes, mut mode) = (Vec::new(), buffer_bytes, Mode::Stream);
    for word in words {
        match word.split_once('=') {
            Some(("events", list)) => events.extend(list.split(',').filter(|one| !one.is_empty())),
            Some(("buffer", size)) => bytes = parse_size("buffer=", size)?,
            Some(("mode", "overwrite")) => mode = Mode::Stream,
            Some(("mode", "discard")) => mode = Mode::Discard,
            _ => return Err(refuse(name, "says what channels do not know", word)),
        }
    }
    if events.is_empty() {
        return Err(refuse(name, "has no events", text));
    }
    Ok(Channel {
        name: name.to_owned(),
        events: EventSelection::new(events),
        buffer_bytes_per_cpu: usize::try_from(bytes).unwrap_or(usize::MAX),
        mode,
    })
}

fn refuse(name: &str, what: &str, found: &str) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!("the channel {name} {what}"),
    )
    .found(format!("'{found}'"))
    .fix(format!(
        "events=LIST, buffer=SIZE, mode=overwrite or mode=discard, as in {EXAMPLE}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_has_a_name_its_events_a_size_and_what_it_does_when_it_is_full() {
        let check = |typed: &[&str], expect: Result<&[(&str, usize, Mode)], &str>| {
            let typed: Vec<String> = typed.iter().map(|text| (*text).to_owned()).collect();
            let found = channels(&typed, 4 << 20).map_err(|error| error.what().to_owned());
            let found = found.map(|all| {
                let facts = |one: Channel| (one.name, one.buffer_bytes_per_cpu, one.mode);
                all.into_iter().map(facts).collect::<Vec<_>>()
            });
            let expect = expect.map(|all| {
                let owned = all
                    .iter()
                    .map(|(name, bytes, mode)| ((*name).to_owned(), *bytes, *mode));
                owned.collect::<Vec<_>>()
            });
            assert_eq!(found, expect.map_err(str::to_owned), "{typed:?}");
        };
        check(&[], Ok(&[]));
        let two = [
            "irqs events=irq,softirq buffer=16M",
            "rare  mode=discard events=module",
        ];
        let irqs = ("irqs", 16 << 20, Mode::Stream);
        check(&two, Ok(&[irqs, ("rare", 4 << 20, Mode::Discard)]));
        check(
            &["a events=irq", "a events=sched"],
            Err("two channels have the same name"),
        );
        let no_name = "--channel does not begin with a name for a channel";
        check(&["events=irq"], Err(no_name));
        check(&["channel0 events=irq"], Err(no_name));
        check(&["../x events=irq"], Err(no_name));
        check(&["a"], Err("the channel a has no events"));
        check(&["a events="], Err("the channel a has no events"));
        check(
            &["a events=irq size=4M"],
            Err("the channel a says what channels do not know"),
        );
        check(
            &["a events=irq mode=keep"],
            Err("the channel a says what channels do not know"),
        );
        check(&["a events=irq buffer=0"], Err("buffer= is not a size"));
    }
}
