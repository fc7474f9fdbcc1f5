//! Whole conversations without a network, which end at any byte.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctf::writer::{Outlet, StagedDir};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{End, Peer, Route, Store};

fn token() -> Token {
    Token::new(b"a token of sixteen bytes").expect("a token")
}

/// A recorder with its spool, and a receiver.
struct Scene {
    folder: TempDir,
    book: Arc<Book>,
    sender: Sender,
    store: Arc<Store>,
}

impl Scene {
    fn new() -> Scene {
        // In memory: room is given back behind what was written, and a disk is waited for.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder");
        let store = Store::open(&folder.path().join("received")).expect("a folder");
        Scene {
            book: Arc::new(Book::new(u64::MAX)),
            sender: Sender {
                token: token(),
                host: "host".to_owned(),
                recording: [7; 16],
            },
            store: Arc::new(store),
            folder,
        }
    }

    fn trace(&self, name: &str) -> Trace {
        let staged = StagedDir::create(&self.folder.path().join("sent").join(name));
        let staged = staged.expect("a folder");
        let root = staged.path().to_owned();
        fs::create_dir(root.join("kernel")).expect("a folder");
        let route = Route::new(&self.book, &root, name);
        Trace {
            outlet: route.outlet(),
            route,
            staged,
            root,
            expect: BTreeMap::new(),
        }
    }

    /// The receiver is killed, and another begins.
    fn restart(&mut self) {
        let store = Store::open(&self.folder.path().join("received"));
        self.store = Arc::new(store.expect("a folder"));
    }

    /// One connection, which ends after so many bytes to the receiver and from it; none in the
    /// order of events is left out. Whether it came to its end by itself.
    fn talk(&self, to_receiver: usize, to_sender: usize) -> Result<bool> {
        let mut courier = Courier::new(Arc::clone(&self.book), self.sender.clone())?;
        let mut answers = Vec::new();
        let mut peer = Peer::new(Arc::clone(&self.store), token(), &mut answers)?;
        let (mut there, mut back) = (to_receiver, to_sender);
        loop {
            let mut sent = Vec::new();
            courier.give(&mut sent)?;
            let is_quiet = sent.is_empty() && answers.is_empty();
            if is_quiet {
                return Ok(true);
            }
            let end = sent.len().min(there);
            let hang_up = || -> Box<dyn FnOnce() + Send> { Box::new(|| ()) };
            // In pieces that fall anywhere.
            for piece in sent[..end].chunks(1000) {
                if peer.take(piece, &mut answers, &hang_up).is_err() {
                    // What was said last tells why.
                    courier.take(&answers)?;
                    panic!("refused without a word");
                }
            }
            there -= end;
            let heard = answers.len().min(back);
            courier.take(&answers[..heard])?;
            back -= heard;
            if end < sent.len() || heard < answers.len() {
                return Ok(false);
            }
            answers.clear();
        }
    }

    fn received(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let root = self.folder.path().join("received/host").join(name);
        read_all(&root, &root, &mut found);
        found
    }
}

fn read_all(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_all(root, &path, found);
        } else if !entry.file_name().as_encoded_bytes().starts_with(b".from") {
            let below = path.strip_prefix(root).expect("below").to_owned();
            found.insert(below, fs::read(&path).expect("a file"));
        }
    }
}

/// A trace that is written, and what it holds.
struct Trace {
    outlet: Arc<dyn Outlet>,
    route: Route,
    staged: StagedDir,
    root: PathBuf,
    expect: BTreeMap<PathBuf, Vec<u8>>,
}

impl Trace {
    /// A packet of so many bytes at the end of a stream.
    fn packet(&mut self, stream: u8, bytes: usize) {
        let below = PathBuf::from(format!("kernel/channel0_{stream}"));
        let path = self.root.join(&below);
        let all = self.expect.entry(below).or_default();
        let packet: Vec<u8> = (0..bytes).map(|at| (at + all.len()) as u8 | 1).collect();
        let mut file = File::options().append(true).create(true).open(&path);
        let file = file.as_mut().expect("a file");
        file.write_all(&packet).expect("room");
        all.extend(packet);
        self.outlet.wrote(&path, all.len() as u64, 1);
    }

    fn whole(&mut self, name: &str, bytes: &[u8]) {
        let below = Path::new("kernel").join(name);
        fs::write(self.root.join(&below), bytes).expect("room");
        self.expect.insert(below, bytes.to_owned());
    }

    fn until(&self, ns: i64) {
        let path = self.root.join(".written-until");
        fs::write(path, ns.to_le_bytes()).expect("room");
    }

    fn end(self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (events, lost) = (1, 0);
        self.route.end(End::Whole { events, lost }, self.staged);
        self.expect
    }
}

/// What happens between two connections.
#[derive(Clone, Debug)]
enum Act {
    Packet(u8, usize),
    Metadata(u8),
    Until(i64),
    Restart,
    Talk(usize, usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (0..3u8, 1..4000usize).prop_map(|(stream, bytes)| Act::Packet(stream, bytes)),
        1 => any::<u8>().prop_map(Act::Metadata),
        1 => (1..1_000_000i64).prop_map(Act::Until),
        1 => Just(Act::Restart),
        4 => (0..9000usize, 0..600usize).prop_map(|(there, back)| Act::Talk(there, back)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_is_cut_each_byte_arrives_once(acts in prop::collection::vec(act(), 1..30)) {
        let mut scene = Scene::new();
        let mut trace = scene.trace("trace");
        trace.whole("metadata", b"first");
        for act in acts {
            match act {
                Act::Packet(stream, bytes) => trace.packet(stream, bytes),
                Act::Metadata(byte) => trace.whole("metadata", &[byte; 3000]),
                Act::Until(ns) => trace.until(ns),
                Act::Restart => scene.restart(),
                Act::Talk(there, back) => {
                    scene.talk(there, back).expect("nobody refuses");
                }
            }
        }
        let expect = trace.end();
        prop_assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
        prop_assert_eq!(scene.received("trace"), expect);
        prop_assert!(scene.book.lock().archives.is_empty());
        prop_assert_eq!(scene.book.lock().figures.waiting_bytes, 0);
        prop_assert_eq!(fs::read_dir(scene.folder.path().join("sent")).expect("there").count(), 0);
    }
}

/// Cuts a conversation behind each of its first bytes, in both directions.
#[test]
fn a_conversation_that_ends_behind_any_byte_is_resumed() {
    let complete = |cuts: &[(usize, usize)]| {
        let scene = Scene::new();
        let mut trace = scene.trace("trace");
        trace.whole("metadata", b"metadata");
        trace.packet(0, 40);
        let expect = trace.end();
        for (there, back) in cuts {
            scene.talk(*there, *back).expect("nobody refuses");
        }
        assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
        assert_eq!(scene.received("trace"), expect, "{cuts:?}");
    };
    for bytes in 0..330 {
        complete(&[(bytes, usize::MAX)]);
    }
    for bytes in 0..140 {
        complete(&[(usize::MAX, bytes)]);
    }
}

#[test]
fn what_arrived_is_readable_at_any_time_and_has_its_instant_behind_it() {
    let scene = Scene::new();
    let mut trace = scene.trace("trace");
    trace.whole("metadata", b"metadata");
    trace.packet(0, 5000);
    trace.until(77);
    assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
    let staged = format!(".trace.partial-{}", std::process::id());
    let received = scene.received(&staged);
    let until = received.get(Path::new(".written-until"));
    assert_eq!(until, Some(&77i64.to_le_bytes().to_vec()));
    let stream = Path::new("kernel/channel0_0");
    assert_eq!(received.get(stream), trace.expect.get(stream));
    // What the other side has takes no room here.
    let left = fs::read(trace.root.join(stream)).expect("a file");
    assert!(left.iter().all(|byte| *byte == 0));
    trace.packet(0, 100);
    let expect = trace.end();
    assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
    assert_eq!(scene.received("trace"), expect);
}

#[test]
fn a_recorder_that_fails_leaves_what_arrived_with_its_mark() {
    let scene = Scene::new();
    let mut trace = scene.trace("trace");
    trace.whole("metadata", b"metadata");
    trace.packet(0, 100);
    assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
    let expect = trace.expect.clone();
    drop(trace);
    assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
    let mut received = scene.received("trace");
    assert!(received.remove(Path::new(".written-until")).is_some());
    assert_eq!(received, expect);
}

#[test]
fn what_is_thrown_away_here_is_not_kept_there() {
    let scene = Scene::new();
    let mut trace = scene.trace("trace");
    trace.whole("metadata", b"metadata");
    trace.packet(0, 100);
    assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
    trace.route.end(End::Forgotten, trace.staged);
    assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
    let host = scene.folder.path().join("received/host");
    assert_eq!(fs::read_dir(host).expect("a folder").count(), 0);
    assert!(scene.book.lock().archives.is_empty());
}

#[test]
fn a_name_that_is_another_recording_s_is_refused_and_nothing_of_it_changed() {
    let mut scene = Scene::new();
    let mut trace = scene.trace("trace");
    trace.whole("metadata", b"mine");
    trace.end();
    assert!(scene.talk(usize::MAX, usize::MAX).expect("nobody refuses"));
    let before = scene.received("trace");
    scene.sender.recording = [8; 16];
    let mut other = scene.trace("trace");
    other.whole("metadata", b"another's");
    other.end();
    let error = scene.talk(usize::MAX, usize::MAX).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    let found = error.value_found().unwrap_or_default();
    assert!(found.contains("of this name already"), "{found}");
    assert_eq!(scene.received("trace"), before);
}

#[test]
fn another_token_is_refused_by_both_sides() {
    let mut scene = Scene::new();
    scene.sender.token = Token::new(b"another of sixteen bytes").expect("a token");
    let error = scene.talk(usize::MAX, usize::MAX).expect_err("refused");
    assert!(
        error.to_string().contains("the token is another"),
        "{error}"
    );
    // A receiver that pretends to know.
    let book = Arc::new(Book::new(1));
    let mut courier = Courier::new(book, scene.sender.clone()).expect("random");
    let mut bytes = Vec::new();
    begin(&mut bytes);
    let (version, nonce) = (VERSION, [1; 16]);
    Frame::Welcome { version, nonce }.write(&mut bytes);
    Frame::Known { proof: [0; 32] }.write(&mut bytes);
    let error = courier.take(&bytes).expect_err("no proof");
    assert!(error.what().contains("does not have our token"), "{error}");
    assert!(!courier.is_known());
}
