//! Every reader, with sound inputs to begin with.

mod conversation;
mod ctf;
mod evidence;
mod ftrace;
mod languages;
mod relay;
mod ring;
mod walk;

use crate::canary;
use crate::engine::Reader;

/// All of them.
pub static ALL: &[Reader] = &[
    ctf::METADATA,
    ctf::STREAM,
    ctf::TRACE,
    ftrace::DAT,
    ftrace::PAGES,
    ftrace::FORMAT,
    ftrace::TEXT,
    ftrace::PERFETTO,
    languages::FILTER,
    languages::PERIOD,
    evidence::EVIDENCE,
    ring::RING,
    ring::OBJECTS,
    relay::RELAY,
    conversation::CONVERSATION,
];

/// Planted bugs, and the word that tells what should be found.
pub static CANARIES: &[(Reader, &str)] = &[
    (planted("canary", canary::panics), "planted"),
    (planted("hoarder", canary::hoards), "memory"),
    (planted("looper", canary::loops), "time"),
];

const fn planted(name: &'static str, run: fn(&[u8])) -> Reader {
    Reader {
        name,
        what: "a planted bug",
        seeds: |_| vec![vec![0; 4]],
        grammar: None,
        run,
    }
}
