//! Any pair of events: from what was typed to the tracker that measures from one to the other.

mod mark;
mod place;
mod spec;

use std::mem::offset_of;

use abi::trackers::{RawPairFrame, RawPairKey};
use bpf_host::trackers::{Pair, PairPart, PairSide, Tracker, pair_tracker};
use event::{Error, ErrorKind, Result};
use expr::kernel::{Compiled, Frame, KeyPart, Written, compile};
use expr::{Expr, Key};

use place::Event;
use spec::Spec;

/// Two events and what both have in common, as they are typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairQuestion {
    /// `EVENT[/FILTER]`: begins an interval.
    pub from: String,
    /// Ends it.
    pub to: String,
    /// The key of both.
    pub key: String,
}

/// What belongs together when nothing is said of it.
pub const KEY_DEFAULT: &str = "$tid";

/// The memory that the kernel's program lends to the code.
fn frame() -> Frame {
    let key = offset_of!(RawPairFrame, key);
    Frame {
        now: offset_of!(RawPairFrame, now_ns) as i16,
        prio: offset_of!(RawPairFrame, prio) as i16,
        numbers: (key + offset_of!(RawPairKey, numbers)) as i16,
        text: (key + offset_of!(RawPairKey, text)) as i16,
        slots: offset_of!(RawPairFrame, slots) as i16,
        looked_at: offset_of!(RawPairFrame, looked_at) as i16,
    }
}

// Both say how much room there is.
const _: () = {
    assert!(expr::kernel::KEY_NUMBERS == abi::trackers::PAIR_NUMBERS);
    assert!(expr::kernel::KEY_TEXT_BYTES == abi::raw::COMM_LENGTH);
    assert!(expr::kernel::SLOTS == abi::trackers::PAIR_SLOTS);
    assert!(expr::kernel::TEXT_BYTES == abi::trackers::PAIR_TEXT);
};

/// Finds both events on this machine and makes the code of their filters and key.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an event, a file, a function or a field that there is not,
/// [`ErrorKind::InvalidInput`] for what cannot be read, [`ErrorKind::Unsupported`] for what the
/// kernel cannot tell.
pub fn pair(question: &PairQuestion) -> Result<(&'static Tracker, Pair)> {
    let key = Key::parse(&question.key)?;
    let (from, to) = (Spec::parse(&question.from)?, Spec::parse(&question.to)?);
    let (from_event, to_event) = (Event::find(&from)?, Event::find(&to)?);
    let from_code = code(&from, &from_event, &key.from(), &question.key)?;
    let to_code = code(&to, &to_event, &key.to(), &question.key)?;
    same_parts(&from_code.parts, &to_code.parts, &key, &question.key)?;
    let parts: Vec<_> = from_code.parts.iter().map(part).collect();
    let tracker = pair_tracker(&from_event.name, &to_event.name, &parts);
    let side = |event: Event, code: Compiled| PairSide {
        place: event.place,
        code: code.code,
    };
    let pair = Pair {
        from: side(from_event, from_code),
        to: side(to_event, to_code),
        oracle_bytes: None,
    };
    Ok((tracker, pair))
}

/// Refuses a file that none of the processes that are meant runs any more.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a file that was replaced since they started.
pub fn pair_is_of(question: &PairQuestion, pids: &[u32]) -> Result<()> {
    for text in [&question.from, &question.to] {
        if let Some(file) = Spec::parse(text)?.file() {
            crate::programs::not_replaced(file, pids)?;
        }
    }
    Ok(())
}

fn code(
    spec: &Spec<'_>,
    event: &Event,
    key: &[&expr::Operand],
    key_text: &str,
) -> Result<Compiled> {
    let written = |at| Written {
        text: spec.text,
        at,
    };
    let filter = spec.filter_at.map(|at| Expr::parse_in(spec.text, at));
    let filter = filter.transpose()?;
    let filter = filter.as_ref().zip(spec.filter_at.map(written));
    let key_written = Written {
        text: key_text,
        at: 0,
    };
    compile(filter, (key, key_written), &event.layout, &frame())
}

fn part(part: &KeyPart) -> PairPart {
    match part {
        KeyPart::Number { signed: true } => PairPart::Signed,
        KeyPart::Number { signed: false } => PairPart::Unsigned,
        KeyPart::Text => PairPart::Text,
    }
}

/// A text never equals a number.
fn same_parts(from: &[KeyPart], to: &[KeyPart], key: &Key, text: &str) -> Result<()> {
    let is_text = |part: &KeyPart| *part == KeyPart::Text;
    let differ = |(from, to): (&KeyPart, &KeyPart)| is_text(from) != is_text(to);
    let Some(place) = from.iter().zip(to).position(differ) else {
        return Ok(());
    };
    let kind = |part: &KeyPart| if is_text(part) { "a text" } else { "a number" };
    let what = format!(
        "the key is {} where it begins and {} where it ends",
        kind(&from[place]),
        kind(&to[place])
    );
    let error = Error::new(ErrorKind::InvalidInput, what);
    let fix = "compare numbers with numbers and texts with texts, as in tid=next_tid";
    Err(error.found(key.pointed(text, place)).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(from: &str, to: &str, key: &str) -> PairQuestion {
        PairQuestion {
            from: from.into(),
            to: to.into(),
            key: key.into(),
        }
    }

    #[test]
    fn keys_of_two_kinds_are_refused_at_their_column() {
        let key = Key::parse("a, b = c").expect("a key");
        let number = KeyPart::Number { signed: true };
        let check = |from: &[KeyPart], to: &[KeyPart], expect: Option<&str>| {
            let error = same_parts(from, to, &key, "a, b = c").err();
            let found = error.as_ref().and_then(Error::value_found);
            let column = found.and_then(|found| found.lines().next());
            assert_eq!(column, expect);
        };
        let unsigned = KeyPart::Number { signed: false };
        check(&[number, KeyPart::Text], &[unsigned, KeyPart::Text], None);
        check(
            &[number, KeyPart::Text],
            &[number, number],
            Some("at column 4"),
        );
        check(&[KeyPart::Text], &[number], Some("at column 1"));
    }

    #[test]
    fn a_mistake_is_told_before_anything_is_looked_for() {
        let check = |from: &str, key: &str, what: &str| {
            let error = pair(&question(from, "sched_switch", key)).expect_err(from);
            assert!(error.to_string().contains(what), "{from}: {error}");
            assert!(error.fixed_by().is_some(), "{from}: {error}");
        };
        check("sched_switch", "tid tid", "key cannot be read");
        check("", "tid", "no event");
        check("/comm", "tid", "no event");
        check("uprobe:/bin/sh", "tid", "no function");
        check("usdt:/bin/sh:x", "tid", "no mark");
        check("uprobe:/no/such:f", "tid", "no such program or library");
    }
}
