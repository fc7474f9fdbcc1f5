//! What a sender says that has the token: a receiver writes it, and nothing outside of its folder.

use std::cell::RefCell;
use std::sync::Arc;

use relay::{Peer, Store};
use tempfile::TempDir;

use crate::engine::Reader;
use crate::random::Random;

/// A conversation, from its first byte on.
pub const RELAY: Reader = Reader {
    name: "relay",
    what: "what a sender of recordings says",
    seeds,
    grammar: None,
    run,
};

thread_local! {
    /// The folder of the receiver, and one around it; made anew when something is in it.
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// A word of the protocol.
pub(super) fn frame(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let fields = fields.concat();
    let length = fields.len() as u32 + 1;
    [&length.to_le_bytes()[..], &[kind], &fields].concat()
}

/// A text in it.
pub(super) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A trace with a stream and metadata, whole and thrown away; and a greeting out of order.
fn seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let number = |number: u32| number.to_le_bytes();
    let long = |number: u64| number.to_le_bytes();
    let begin = || b"rtscope\x01".to_vec();
    let archive = frame(5, &[&number(1), &text("trace")]);
    let stream = frame(
        7,
        &[&number(0), &number(1), &[0], &text("kernel/channel0_0")],
    );
    let data = |file, offset| frame(9, &[&number(file), &long(offset), &[7; 40]]);
    let whole = frame(7, &[&number(1), &number(1), &[1], &text("kernel/metadata")]);
    let put = frame(10, &[&number(1), &long(40)]);
    let until = frame(12, &[&number(1), &long(99)]);
    let finish = frame(13, &[&number(1), &[1], &long(2), &long(3)]);
    let all = [
        &archive,
        &stream,
        &data(0, 0),
        &data(0, 40),
        &whole,
        &data(1, 0),
        &put,
        &until,
    ];
    let all: Vec<u8> = all.into_iter().flatten().copied().collect();
    let hello = frame(2, &[&[1, 0], &[0; 64], &text("host")]);
    vec![
        [begin(), all.clone(), finish].concat(),
        [begin(), all, frame(14, &[&number(1)]), frame(16, &[])].concat(),
        [begin(), hello].concat(),
    ]
}

fn run(bytes: &[u8]) {
    FOLDER.with_borrow_mut(|folder| {
        let around = folder.get_or_insert_with(|| tempfile::tempdir().expect("a folder"));
        let root = around.path().join("received");
        let store = Arc::new(Store::open(&root).expect("a folder"));
        let mut peer = Peer::trusting(store, [7; 16], "host").expect("random");
        let mut out = Vec::new();
        // What is refused is refused.
        let _ = peer.take(bytes, &mut out, &|| Box::new(|| ()));
        let beside = std::fs::read_dir(around.path()).expect("a folder").count();
        assert_eq!(beside, 1, "something is outside of the folder");
        let hosts = std::fs::read_dir(&root).expect("a folder").flatten();
        let names: Vec<_> = hosts.map(|host| host.file_name()).collect();
        assert!(names.iter().all(|name| name == "host"), "{names:?}");
        if !names.is_empty() {
            *folder = None;
        }
    });
}
