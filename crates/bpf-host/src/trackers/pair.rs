//! Any pair of events: where its programs are attached, and how the code of its filters gets into
//! them.

use std::path::PathBuf;

use abi::raw;
use abi::trackers::{RawMark, RawPairSeen, key_text};
use event::{Error, ErrorKind, Instant, Result, Tid};
use libbpf_rs::{Link, MapCore, MapFlags, Object, UprobeOpts};

use super::{DetailKind, KeyKind, OpenIn, Tracker, object};
use crate::object;
use crate::packed::Packed;

/// The compiled programs, before a filter's code is in them.
const OBJECT: Packed = object!("pair");

/// Where an event happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairPlace {
    /// A tracepoint of the kernel.
    Tracepoint {
        /// Its system, such as `sched`.
        system: String,
        /// Its name there.
        name: String,
    },
    /// A function of a program or library.
    Function {
        /// The file.
        file: PathBuf,
        /// Where in the file its code begins: in several places where several have its name.
        offsets: Vec<u64>,
        /// Its returns are meant, not its calls.
        returns: bool,
    },
    /// A mark that a program's author left in it (USDT).
    Mark {
        /// The file.
        file: PathBuf,
        /// All places in it that have the mark; at most `PAIR_SITES`.
        sites: Vec<MarkSite>,
    },
}

/// A mark in one place of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkSite {
    /// Where its instruction is.
    pub offset: u64,
    /// Where the counter is that says whether anybody listens; 0 without one.
    pub semaphore_offset: u64,
    /// Where its arguments are.
    pub arguments: RawMark,
}

/// One event of a pair, and the code of its filter and key ([`abi::trackers::RawPairFrame`] is what
/// it is lent).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairSide {
    /// Where it happens.
    pub place: PairPlace,
    /// Instructions; in the first register 1 when the event is meant.
    pub code: Vec<u64>,
}

/// Two events that make an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Begins it.
    pub from: PairSide,
    /// Ends it.
    pub to: PairSide,
    /// Bytes of a ring into which every event goes that was seen, for a test; none for nobody.
    pub oracle_bytes: Option<u32>,
}

/// A part of a pair's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairPart {
    /// A number with a sign.
    Signed,
    /// A number without one.
    Unsigned,
    /// A text.
    Text,
}

/// An event that a pair saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairSeen {
    /// It ends an interval.
    pub is_end: bool,
    /// The key's numbers.
    pub numbers: [u64; 2],
    /// The key's text.
    pub text: String,
    /// When, by the tracker's own stamp.
    pub at: Instant,
    /// Which task ran.
    pub tid: Tid,
}

/// What each side of a pair saw so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Events of those that begin, and of those that end.
    pub seen: [u64; 2],
    /// How many of them the filter let through.
    pub matched: [u64; 2],
    /// Ends of which no begin was open.
    pub alone: u64,
}

/// The tracker of a pair, described as the others are. It lives as long as the process, of which
/// one is made: all that is said of trackers is said of `&'static` ones.
pub fn pair_tracker(from: &str, to: &str, parts: &[PairPart]) -> &'static Tracker {
    let series: &'static str = Box::leak(format!("{from} to {to}").into_boxed_str());
    Box::leak(Box::new(Tracker {
        name: "pair",
        help: "from one event to another",
        series: Box::leak(Box::new([series])),
        whose: "the task that runs when it begins",
        other: &["ended by"],
        key: KeyKind::Pair(Box::leak(parts.into())),
        detail: DetailKind::None,
        open: OpenIn::Keys,
        stays_on_its_cpu: false,
        hooks: &[],
        software_events: &[],
        for_stacks: &[],
        below: "",
        object: OBJECT,
    }))
}

/// The numbers that begin the room for each side's code, in `bpf/trackers/pair.bpf.c`.
const MARKS: [i32; 2] = [0x5254_5346, 0x5254_5354];
/// Where the kernel's program finds the arguments of marks.
pub(super) const MARKS_MAP: &str = "pair_marks";
/// `r0 = NUMBER`
const LOAD: u64 = 0xb7;
/// `goto +0`, which does nothing.
const NOTHING: u64 = 0x05;
const WORD: usize = size_of::<u64>();

/// The object with the code of both sides in it.
pub(super) fn with_code(bytes: &[u8], pair: &Pair) -> Result<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    for (mark, side) in MARKS.into_iter().zip([&pair.from, &pair.to]) {
        let begin = room(&bytes, mark)?;
        let words = bytes[begin + WORD..].chunks_exact(WORD);
        let empty = words.take_while(|word| **word == NOTHING.to_le_bytes());
        let room = 1 + empty.count();
        if side.code.len() > room {
            let error = Error::new(
                ErrorKind::Unsupported,
                "a filter or key is too long for the kernel",
            );
            let found = format!("{} instructions, {room} have room", side.code.len());
            return Err(error.found(found).fix("make it shorter"));
        }
        let code = side.code.iter().copied();
        let code = code.chain(std::iter::repeat(NOTHING)).take(room);
        for (place, word) in bytes[begin..].chunks_exact_mut(WORD).zip(code) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
    Ok(bytes)
}

/// Where the room for a side begins.
fn room(bytes: &[u8], mark: i32) -> Result<usize> {
    let load = (LOAD | u64::from(mark as u32) << 32).to_le_bytes();
    let begin = [load, NOTHING.to_le_bytes()].concat();
    let mut words = bytes.windows(begin.len());
    words.position(|words| words == begin).ok_or_else(|| {
        let what = "the BPF object has no room for filters";
        Error::new(ErrorKind::Corrupt, what).fix("cargo clean -p bpf-host && cargo build")
    })
}

impl Pair {
    /// Whether one of its programs is this.
    pub(super) fn uses(&self, program: &str) -> bool {
        self.from.place.program(false) == program || self.to.place.program(true) == program
    }

    /// The marks of both sides: each finds its arguments by its place among them.
    fn sites(&self) -> impl Iterator<Item = &MarkSite> {
        self.from.place.sites().iter().chain(self.to.place.sites())
    }

    /// How many places both sides' marks have.
    pub(super) fn site_count(&self) -> usize {
        self.sites().count()
    }

    /// Attaches the end first: an event that is both ends what is open before it begins anew.
    pub(super) fn attach(&self, object: &Object) -> Result<Vec<Link>> {
        for (number, site) in self.sites().enumerate() {
            let number = (number as u32).to_ne_bytes();
            object::map(object, MARKS_MAP)?
                .update(&number, raw::bytes(&site.arguments), MapFlags::ANY)
                .map_err(|error| object::explain("fill", &error))?;
        }
        let of_from = self.from.place.sites().len() as u64;
        let mut links = self.to.place.attach(object, true, of_from)?;
        links.extend(self.from.place.attach(object, false, 0)?);
        Ok(links)
    }
}

impl PairPlace {
    fn program(&self, is_end: bool) -> &'static str {
        match (self, is_end) {
            (PairPlace::Tracepoint { .. }, false) => "from_tracepoint",
            (PairPlace::Tracepoint { .. }, true) => "to_tracepoint",
            (PairPlace::Function { .. }, false) => "from_function",
            (PairPlace::Function { .. }, true) => "to_function",
            (PairPlace::Mark { .. }, false) => "from_mark",
            (PairPlace::Mark { .. }, true) => "to_mark",
        }
    }

    fn sites(&self) -> &[MarkSite] {
        match self {
            PairPlace::Mark { sites, .. } => sites,
            _ => &[],
        }
    }

    /// The first of its marks has this number.
    fn attach(&self, object: &Object, is_end: bool, first_site: u64) -> Result<Vec<Link>> {
        const EVERY_PROCESS: i32 = -1;
        let name = self.program(is_end);
        let mut programs = object.progs_mut();
        let program = programs.find(|program| program.name() == name);
        let program = program.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "the BPF object has no such program").found(name)
        })?;
        let links = match self {
            PairPlace::Tracepoint { system, name } => {
                let system = libbpf_rs::TracepointCategory::Custom(system.clone());
                program
                    .attach_tracepoint(system, name)
                    .map(|link| vec![link])
            }
            PairPlace::Function {
                file,
                offsets,
                returns,
            } => {
                let attach = |offset: &u64| {
                    let options = UprobeOpts {
                        retprobe: *returns,
                        ..UprobeOpts::default()
                    };
                    let offset = *offset as usize;
                    program.attach_uprobe_with_opts(EVERY_PROCESS, file, offset, options)
                };
                offsets.iter().map(attach).collect()
            }
            PairPlace::Mark { file, sites } => {
                let attach = |(number, site): (u64, &MarkSite)| {
                    let options = UprobeOpts {
                        ref_ctr_offset: site.semaphore_offset as usize,
                        cookie: number,
                        ..UprobeOpts::default()
                    };
                    let offset = site.offset as usize;
                    program.attach_uprobe_with_opts(EVERY_PROCESS, file, offset, options)
                };
                (first_site..).zip(sites).map(attach).collect()
            }
        };
        links.map_err(|error| object::explain("attach", &error))
    }
}

/// Reads an event that an oracle was sent.
pub(super) fn decode_seen(bytes: &[u8]) -> Result<PairSeen> {
    let seen: RawPairSeen = raw::read(bytes).ok_or_else(|| {
        let error = Error::new(ErrorKind::Corrupt, "an event of a pair makes no sense");
        error.found(format!("{} bytes", bytes.len()))
    })?;
    Ok(PairSeen {
        is_end: seen.side == 1,
        numbers: seen.key.numbers,
        text: key_text(&seen.key),
        at: Instant::from_ns(seen.time_ns as i64),
        tid: Tid(seen.tid),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(from: usize, to: usize) -> Pair {
        let side = |length: usize, word: u64| PairSide {
            place: PairPlace::Tracepoint {
                system: "sched".into(),
                name: "sched_switch".into(),
            },
            code: vec![word; length],
        };
        Pair {
            from: side(from, 0x1111),
            to: side(to, 0x2222),
            oracle_bytes: None,
        }
    }

    fn count(bytes: &[u8], word: u64) -> usize {
        let word = word.to_le_bytes();
        let found = bytes.windows(WORD).filter(|window| **window == word);
        found.count()
    }

    #[test]
    fn each_sides_code_lies_in_its_own_room_and_what_is_left_does_nothing() {
        let object = OBJECT.unpacked().expect("an object");
        let before = count(&object, NOTHING);
        let bytes = with_code(&object, &pair(3, 1024)).expect("it fits");
        assert_eq!(bytes.len(), object.len());
        assert_eq!((count(&bytes, 0x1111), count(&bytes, 0x2222)), (3, 1024));
        // The numbers that began the room are instructions, too.
        assert_eq!(count(&bytes, NOTHING), before + 2 - 3 - 1024);
    }

    #[test]
    fn code_that_has_no_room_is_refused_with_both_lengths() {
        let object = OBJECT.unpacked().expect("an object");
        let error = with_code(&object, &pair(1, 1026)).expect_err("too long");
        let found = error.value_found().expect("lengths");
        assert_eq!(found, "1026 instructions, 1025 have room");
        assert!(error.fixed_by().is_some());
    }
}
