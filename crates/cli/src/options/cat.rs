//! What `cat` was asked to do.

use std::ffi::OsString;
use std::path::PathBuf;

use capture::UserConfig;
use event::{Duration, Error, ErrorKind, Result};
use expr::Expr;
use report::{EventClock, EventNames, EventOrigin, EventTextOptions};
use trace::{OpenOptions, Root};

use super::WindowOptions;
use crate::flags::{self, FieldWord, NameWord};

/// A print-out, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct CatOptions {
    /// The traces.
    pub roots: Vec<Root>,
    /// How to open them.
    pub open: OpenOptions,
    /// Where to look.
    pub window: WindowOptions,
    /// Only events that match.
    pub filter: Option<Expr>,
    /// How lines look; whether they are coloured is for the verb to say.
    pub text: EventTextOptions,
    /// Instead of stdout.
    pub output: Option<PathBuf>,
    /// Whether the trace is still being written.
    pub live: bool,
    /// In the place of a trace: what to print as it comes.
    pub passing: Option<Passing>,
    /// Whether addresses of code get names.
    pub debug_info: bool,
    /// Whether to go on behind bytes that cannot be understood.
    pub keep_going: bool,
}

/// Events that are printed as they come and kept nowhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Passing {
    /// Events of applications.
    pub user: UserConfig,
    /// What to run meanwhile; empty means nothing.
    pub command: Vec<OsString>,
}

impl CatOptions {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a word without a meaning.
    pub fn new(typed: &flags::Cat) -> Result<Self> {
        let mut roots: Vec<Root> = typed.trace.iter().map(Root::from).collect();
        let mut clock_offset = Duration::from_ns(typed.clock_offset_ns.unwrap_or(0));
        for word in &typed.clock_offset {
            match parse_offset(word, roots.len())? {
                (None, offset) => clock_offset += offset,
                (Some(place), offset) => roots[place].clock_offset = offset,
            }
        }
        let mut window = WindowOptions::new(&typed.window)?;
        window.utc = typed.clock_gmt;
        Ok(CatOptions {
            roots,
            open: OpenOptions {
                intersection: typed.stream_intersection,
                clock_offset,
                live: false,
            },
            window,
            filter: typed.filter.as_deref().map(Expr::parse).transpose()?,
            text: text(typed),
            output: typed.output.clone(),
            live: typed.live,
            passing: passing(typed)?,
            debug_info: typed.debug_info,
            keep_going: typed.keep_going,
        })
    }
}

fn passing(typed: &flags::Cat) -> Result<Option<Passing>> {
    if typed.user.is_empty() {
        return Ok(None);
    }
    Ok(Some(Passing {
        user: UserConfig::new(&typed.user)?.with_contexts(&typed.context)?,
        command: typed.command.clone(),
    }))
}

/// `-1.5`, or `2:-1.5` for the second of `count` traces.
fn parse_offset(word: &str, count: usize) -> Result<(Option<usize>, Duration)> {
    let refuse = || {
        Error::new(ErrorKind::InvalidInput, "--clock-offset is no time")
            .found(format!("'{word}', traces: {count}"))
            .fix("give seconds (-1.5), or the place of a trace and seconds (2:-1.5)")
    };
    let (place, seconds) = match word.split_once(':') {
        None => (None, word),
        Some((place, seconds)) => {
            let place: usize = place.parse().map_err(|_| refuse())?;
            if !(1..=count).contains(&place) {
                return Err(refuse());
            }
            (Some(place - 1), seconds)
        }
    };
    let (negative, digits) = match seconds.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, seconds.strip_prefix('+').unwrap_or(seconds)),
    };
    let offset = Duration::parse(&format!("{digits}s")).map_err(|_| refuse())?;
    let ns = offset.as_ns();
    Ok((place, Duration::from_ns(if negative { -ns } else { ns })))
}

fn text(typed: &flags::Cat) -> EventTextOptions {
    let clock = match typed {
        typed if typed.clock_date => EventClock::Date,
        typed if typed.clock_seconds => EventClock::WallSeconds,
        typed if typed.clock_trace => EventClock::TraceSeconds,
        typed if typed.clock_cycles => EventClock::Cycles,
        _ => EventClock::Day,
    };
    EventTextOptions {
        clock,
        utc: typed.clock_gmt,
        no_delta: typed.no_delta,
        names: match &typed.names[..] {
            [] => EventNames::default(),
            words => words.iter().fold(EventNames::NONE, add_name),
        },
        origin: match &typed.fields[..] {
            [] => EventOrigin::default(),
            words => words.iter().fold(EventOrigin::NONE, add_field),
        },
        color: false,
    }
}

fn add_name(mut names: EventNames, word: &NameWord) -> EventNames {
    match word {
        NameWord::Payload => names.payload = true,
        NameWord::Context => names.context = true,
        NameWord::Header => names.header = true,
        NameWord::Scope => names.scope = true,
        NameWord::All => return EventNames::ALL,
        NameWord::None => return EventNames::NONE,
    }
    names
}

fn add_field(mut origin: EventOrigin, word: &FieldWord) -> EventOrigin {
    match word {
        FieldWord::Trace => origin.trace = true,
        FieldWord::Hostname => origin.hostname = true,
        FieldWord::Domain => origin.domain = true,
        FieldWord::Procname => origin.procname = true,
        FieldWord::Vpid => origin.vpid = true,
        FieldWord::LogLevel => origin.log_level = true,
        FieldWord::Emf => origin.emf = true,
        FieldWord::All => return EventOrigin::ALL,
    }
    origin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_of_all_traces_or_of_one() {
        let check = |word: &str, expect: Option<(Option<usize>, i64)>| {
            let found = parse_offset(word, 2).ok();
            let found = found.map(|(place, offset)| (place, offset.as_ns()));
            assert_eq!(found, expect, "{word}");
        };
        check("5", Some((None, 5_000_000_000)));
        check("-0.25", Some((None, -250_000_000)));
        check("2:-1", Some((Some(1), -1_000_000_000)));
        check("3:1", None);
        check("0:1", None);
        check("soon", None);
        check("", None);
    }

    #[test]
    fn words_add_up_and_the_default_is_what_nothing_says() {
        let check = |names: &[NameWord], fields: &[FieldWord], expect: EventTextOptions| {
            let typed = flags::Cat {
                names: names.to_vec(),
                fields: fields.to_vec(),
                ..flags::Cat::default()
            };
            assert_eq!(text(&typed), expect);
        };
        let plain = EventTextOptions::default();
        check(&[], &[], plain);
        let names = EventNames {
            header: true,
            ..EventNames::NONE
        };
        let words = [NameWord::None, NameWord::Header];
        check(&words, &[], EventTextOptions { names, ..plain });
        let origin = EventOrigin {
            hostname: true,
            emf: true,
            ..EventOrigin::NONE
        };
        let words = [FieldWord::Hostname, FieldWord::Emf];
        check(&[], &words, EventTextOptions { origin, ..plain });
    }
}
