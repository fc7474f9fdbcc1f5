//! What senders with the token say, as words of which each is whole: whatever their order, what the
//! receiver has on its disk is what it took, and nothing else.
//!
//! The bytes of an input are read as a list of words with few names and numbers, so that most of
//! them mean something; [`super::relay`] breaks the words themselves.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use relay::{Peer, Store};
use tempfile::TempDir;

use super::relay::{frame, text};
use crate::engine::Reader;
use crate::random::Random;

/// Conversations of two connections of one recording, and one of another.
pub const CONVERSATION: Reader = Reader {
    name: "conversation",
    what: "what senders of recordings say in turn",
    seeds,
    grammar: None,
    run,
};

/// Names of traces; the last two are none.
const TRACES: [&str; 4] = ["night", "night-2", "../night", ".hidden"];
/// Names of files; the last three are none.
const FILES: [&str; 8] = [
    "kernel/channel0_0",
    "kernel/metadata",
    "kernel",
    "kernel/index/channel0_0.idx",
    "rtscope",
    "/etc/passwd",
    "kernel/../../x",
    ".from",
];
/// More words than this tell nothing new.
const WORDS_MAX: usize = 200;
const RECORDINGS: [[u8; 16]; 2] = [[7; 16], [9; 16]];

thread_local! {
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

fn seeds(random: &mut Random) -> Vec<Vec<u8>> {
    // Each number is a word and three numbers of it; see `Word`.
    let whole = vec![
        0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 9, 0, 2, 0, 5, 0, 1, 1, 0, 9, 2, 1, 4, 0, 3, 1, 0, 0, 4, 0,
        7, 0, 5, 0, 1, 0,
    ];
    let again = vec![
        0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 9, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 9, 0, 6, 0,
        0, 0,
    ];
    let other = vec![0, 0, 0, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 7, 0, 0, 0];
    let drawn = (0..4).map(|_| (0..120).map(|_| random.bits() as u8).collect());
    [whole, again, other].into_iter().chain(drawn).collect()
}

/// A trace as the receiver should have it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    files: BTreeMap<String, Vec<u8>>,
    is_finished: bool,
    /// Whether it keeps the mark of what is not complete.
    is_marked: bool,
}

/// A file that a connection has opened.
#[derive(Debug)]
struct Open {
    archive: u8,
    trace: String,
    path: String,
    is_whole: bool,
    size: u64,
}

/// A connection, and what it has said.
struct Connection {
    peer: Peer,
    recording: usize,
    archives: BTreeMap<u8, String>,
    files: BTreeMap<u8, Open>,
    /// Refused: nothing of it counts any more.
    is_over: bool,
}

/// The receiver, and what it should have.
struct Scene {
    store: Arc<Store>,
    connections: Vec<Connection>,
    /// The one that speaks.
    at: usize,
    traces: BTreeMap<String, Trace>,
    /// Whole files that are not complete, by trace and path.
    news: BTreeMap<(String, String), Vec<u8>>,
}

impl Scene {
    fn new(store: Arc<Store>) -> Scene {
        let mut scene = Scene {
            store,
            connections: Vec::new(),
            at: 0,
            traces: BTreeMap::new(),
            news: BTreeMap::new(),
        };
        scene.connect(0);
        scene
    }

    fn connect(&mut self, recording: usize) {
        let peer = Peer::trusting(Arc::clone(&self.store), RECORDINGS[recording], "host");
        self.connections.push(Connection {
            peer: peer.expect("random"),
            recording,
            archives: BTreeMap::new(),
            files: BTreeMap::new(),
            is_over: false,
        });
        self.at = self.connections.len() - 1;
    }

    /// Says a word, in two pieces; whether it was taken.
    fn say(&mut self, words: &[u8], cut: u8) -> bool {
        let newest = self
            .connections
            .iter()
            .rposition(|other| other.recording == self.connections[self.at].recording);
        let is_replaced = newest != Some(self.at);
        let connection = &mut self.connections[self.at];
        let (head, tail) = words.split_at(usize::from(cut) % words.len());
        let mut out = Vec::new();
        let hang_up = || -> Box<dyn FnOnce() + Send> { Box::new(|| ()) };
        let mut take = |bytes| connection.peer.take(bytes, &mut out, &hang_up).is_ok();
        let is_taken = take(head) && take(tail);
        assert!(!(is_taken && is_replaced), "a replaced connection is heard");
        connection.is_over |= !is_taken;
        is_taken
    }

    fn word(&mut self, word: [u8; 4]) {
        let [kind, a, b, c] = word;
        if kind % 10 == 8 {
            return match a % 3 {
                2 => self.at = usize::from(b) % self.connections.len(),
                recording => self.connect(usize::from(recording)),
            };
        }
        if self.connections[self.at].is_over {
            return;
        }
        match kind % 10 {
            0 => self.archive(a % 4, TRACES[usize::from(b) % TRACES.len()], c),
            1 => self.open(
                (a % 6, b % 4),
                FILES[usize::from(c >> 1) % FILES.len()],
                c & 1 == 1,
            ),
            2 => self.data(a % 6, b % 64, c),
            3 => self.put(a % 6, c),
            4 => drop(self.say(&frame(12, &[&number(a % 4), &long(u64::from(b))]), c)),
            5 => self.finish(a % 4, b & 1 == 1, c),
            6 => self.forget(a % 4, c),
            7 => assert!(self.say(&frame(16, &[]), c) || self.connections[self.at].is_over),
            _ => {
                // A kind that no sender says, or none at all.
                let is_taken = self.say(&frame(a | 0x10, &[&[b; 8]]), c);
                assert!(!is_taken, "kind {} is taken", a | 0x10);
            }
        }
    }

    fn archive(&mut self, archive: u8, name: &str, cut: u8) {
        if !self.say(&frame(5, &[&number(archive), &text(name)]), cut) {
            return;
        }
        let trace = self.traces.entry(name.to_owned()).or_default();
        if !trace.is_finished || trace.is_marked {
            // New, or one that its recording did not end: it goes on.
            (trace.is_finished, trace.is_marked) = (false, true);
        }
        let connection = &mut self.connections[self.at];
        connection.archives.insert(archive, name.to_owned());
    }

    fn open(&mut self, (file, archive): (u8, u8), path: &str, is_whole: bool) {
        let whole = [u8::from(is_whole)];
        let words = frame(7, &[&number(file), &number(archive), &whole, &text(path)]);
        if !self.say(&words, file) {
            return;
        }
        let connection = &mut self.connections[self.at];
        let name = connection.archives.get(&archive);
        let trace = name.expect("a trace that began").clone();
        let there = self
            .traces
            .get(&trace)
            .and_then(|trace| trace.files.get(path));
        let size = there
            .filter(|_| !is_whole)
            .map_or(0, |bytes| bytes.len() as u64);
        if is_whole {
            self.news
                .insert((trace.clone(), path.to_owned()), Vec::new());
        }
        connection.files.insert(
            file,
            Open {
                archive,
                trace,
                path: path.to_owned(),
                is_whole,
                size,
            },
        );
    }

    fn data(&mut self, file: u8, length: u8, byte: u8) {
        let known = self.connections[self.at].files.get(&file);
        let offset = known.map_or(0, |open| open.size) + u64::from(byte == 255);
        let bytes = vec![byte; usize::from(length)];
        let words = frame(9, &[&number(file), &long(offset), &bytes]);
        if !self.say(&words, length) {
            return;
        }
        assert!(byte != 255, "bytes behind the end are taken");
        let open = self.connections[self.at].files.get_mut(&file);
        let open = open.expect("a file that was opened");
        let place = (open.trace.clone(), open.path.clone());
        let content = match open.is_whole {
            true => self.news.entry(place).or_default(),
            false => {
                let trace = self.traces.get_mut(&open.trace).expect("a trace");
                trace.files.entry(open.path.clone()).or_default()
            }
        };
        let begin = offset as usize;
        content.resize(content.len().max(begin + bytes.len()), 0);
        content[begin..begin + bytes.len()].copy_from_slice(&bytes);
        open.size += u64::from(length);
    }

    fn put(&mut self, file: u8, cut: u8) {
        let known = self.connections[self.at].files.get(&file);
        let size = known.map_or(0, |open| open.size);
        if !self.say(&frame(10, &[&number(file), &long(size)]), cut) {
            self.connections[self.at].files.remove(&file);
            return;
        }
        let open = self.connections[self.at].files.remove(&file);
        let open = open.expect("a file that was opened");
        let content = self.news.remove(&(open.trace.clone(), open.path.clone()));
        let trace = self.traces.get_mut(&open.trace).expect("a trace");
        trace
            .files
            .insert(open.path, content.expect("a whole file"));
    }

    fn finish(&mut self, archive: u8, is_whole: bool, cut: u8) {
        let counts = [long(2), long(3)].concat();
        let words = frame(13, &[&number(archive), &[u8::from(is_whole)], &counts]);
        let Some(trace) = self.ended(archive, &words, cut) else {
            return;
        };
        let trace = self.traces.get_mut(&trace).expect("a trace");
        trace.is_finished = true;
        trace.is_marked = !is_whole;
    }

    fn forget(&mut self, archive: u8, cut: u8) {
        if let Some(trace) = self.ended(archive, &frame(14, &[&number(archive)]), cut) {
            self.traces.remove(&trace);
        }
    }

    /// Ends a trace of the connection that speaks; which one.
    fn ended(&mut self, archive: u8, words: &[u8], cut: u8) -> Option<String> {
        self.say(words, cut).then_some(())?;
        let connection = &mut self.connections[self.at];
        connection.files.retain(|_, open| open.archive != archive);
        let trace = connection.archives.remove(&archive);
        let trace = trace.expect("a trace that began");
        self.news.retain(|(of, _), _| *of != trace);
        Some(trace)
    }
}

fn number(number: u8) -> [u8; 4] {
    u32::from(number).to_le_bytes()
}

fn long(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Every file below `folder` that is not the receiver's own, by its path.
fn files_below(folder: &Path, below: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        let path = match below {
            "" => name.clone(),
            below => format!("{below}/{name}"),
        };
        if entry.path().is_dir() {
            files_below(&entry.path(), &path, found);
        } else if !name.starts_with('.') {
            found.insert(path, fs::read(entry.path()).expect("bytes"));
        }
    }
}

/// What is on the disk below the host's folder.
fn on_disk(host: &Path) -> BTreeMap<String, Trace> {
    let mut traces = BTreeMap::new();
    for entry in fs::read_dir(host).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().expect("a name");
        let staged = name
            .strip_prefix('.')
            .and_then(|name| name.split_once(".partial-"));
        let mut files = BTreeMap::new();
        files_below(&entry.path(), "", &mut files);
        let trace = Trace {
            files,
            is_finished: staged.is_none(),
            is_marked: entry.path().join(".written-until").exists(),
        };
        let name = staged.map_or(name.clone(), |(name, _)| name.to_owned());
        assert!(
            traces.insert(name, trace).is_none(),
            "a trace is there twice"
        );
    }
    traces
}

fn run(bytes: &[u8]) {
    FOLDER.with_borrow_mut(|folder| {
        let around = folder
            .take()
            .unwrap_or_else(|| tempfile::tempdir().expect("a folder"));
        let root = around.path().join("received");
        let store = Arc::new(Store::open(&root).expect("a folder"));
        let mut scene = Scene::new(store);
        for word in bytes.chunks_exact(4).take(WORDS_MAX) {
            scene.word([word[0], word[1], word[2], word[3]]);
        }
        let beside = fs::read_dir(around.path()).expect("a folder").count();
        assert_eq!(beside, 1, "something is outside of the folder");
        assert_eq!(on_disk(&root.join("host")), scene.traces);
        if scene.traces.is_empty() {
            *folder = Some(around);
        }
    });
}
