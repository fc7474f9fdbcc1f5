//! What a receiver says to senders that are hostile.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::frame::{FRAME_BYTES_MAX, STRANGER_BYTES_MAX};

fn peer() -> (Peer, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(&folder.path().join("received")).expect("a folder");
    let peer = Peer::trusting(Arc::new(store), [7; 16], "host").expect("random");
    (peer, folder)
}

fn take(peer: &mut Peer, frames: &[Frame]) -> std::result::Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    begin(&mut bytes);
    for frame in frames {
        frame.write(&mut bytes);
    }
    let mut out = Vec::new();
    let hang_up = || -> Box<dyn FnOnce() + Send> { Box::new(|| ()) };
    peer.take(&bytes, &mut out, &hang_up).map(|()| out)
}

fn archive(name: &str) -> Frame {
    Frame::Archive {
        archive: 1,
        name: name.to_owned(),
    }
}

fn open(path: &str, is_whole: bool) -> Frame {
    Frame::Open {
        file: 1,
        archive: 1,
        is_whole,
        path: path.to_owned(),
    }
}

fn data(offset: u64) -> Frame {
    Frame::Data {
        file: 1,
        offset,
        bytes: vec![1; 10],
    }
}

#[test]
fn what_no_sender_says_is_refused() {
    let check = |frames: &[Frame], expect: Option<Reason>| {
        let (mut peer, _folder) = peer();
        let taken = take(&mut peer, frames);
        assert_eq!(
            taken.err().map(|refusal| refusal.reason),
            expect,
            "{frames:?}"
        );
    };
    let stream = open("kernel/channel0_0", false);
    check(&[archive("trace"), stream.clone(), data(0), data(10)], None);
    check(
        &[archive("trace"), stream.clone(), data(1)],
        Some(Reason::Order),
    );
    check(
        &[archive("trace"), stream.clone(), data(0), data(0)],
        Some(Reason::Order),
    );
    check(&[archive("trace"), data(0)], Some(Reason::Order));
    check(std::slice::from_ref(&stream), Some(Reason::Order));
    check(&[archive("trace"), archive("trace")], Some(Reason::Order));
    check(
        &[archive("trace"), stream.clone(), stream],
        Some(Reason::Order),
    );
    for name in ["..", "a/b", ".trace", "", "a b"] {
        check(&[archive(name)], Some(Reason::Name));
    }
    for path in ["../x", "/etc/x", ".written-until", "a//b", "kernel/.."] {
        check(&[archive("trace"), open(path, true)], Some(Reason::Name));
    }
    let put = |size_bytes| Frame::Put {
        file: 1,
        size_bytes,
    };
    let whole = open("kernel/metadata", true);
    check(&[archive("trace"), whole.clone(), data(0), put(10)], None);
    check(
        &[archive("trace"), whole.clone(), data(0), put(9)],
        Some(Reason::Order),
    );
    check(
        &[archive("trace"), whole, data(0), put(10), data(10)],
        Some(Reason::Order),
    );
    let hello = Frame::Hello {
        version: VERSION,
        nonce: [0; 16],
        recording: [0; 16],
        host: "host".to_owned(),
        proof: [0; 32],
    };
    check(&[hello], Some(Reason::Order));
    check(
        &[Frame::Welcome {
            version: 1,
            nonce: [0; 16],
        }],
        Some(Reason::Order),
    );
}

#[test]
fn a_stranger_is_refused_before_anything_is_kept() {
    let check = |bytes: &[u8], expect: Reason| {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("a folder");
        let token = Token::new(&[1; 16]).expect("a token");
        let mut out = Vec::new();
        let mut peer = Peer::new(Arc::new(store), token, &mut out).expect("random");
        let hang_up = || -> Box<dyn FnOnce() + Send> { Box::new(|| ()) };
        let refusal = peer
            .take(bytes, &mut out, &hang_up)
            .expect_err("a stranger");
        assert_eq!(refusal.reason, expect);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    };
    let mut greeting = Vec::new();
    begin(&mut greeting);
    let with = |frame: &[u8]| [&greeting[..], frame].concat();
    check(b"GET / HTTP/1.1\r\n", Reason::Order);
    check(&with(&u32::MAX.to_le_bytes()), Reason::Order);
    check(
        &with(&(STRANGER_BYTES_MAX as u32 + 1).to_le_bytes()),
        Reason::Order,
    );
    check(&with(&[0; 4]), Reason::Order);
    check(&with(&[1, 0, 0, 0, 99]), Reason::Order);
    let frame = |frame: Frame| {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        with(&bytes)
    };
    check(&frame(archive("trace")), Reason::Order);
    let hello = |version, host: &str| Frame::Hello {
        version,
        nonce: [0; 16],
        recording: [0; 16],
        host: host.to_owned(),
        proof: [0; 32],
    };
    check(&frame(hello(VERSION + 1, "host")), Reason::Version);
    check(&frame(hello(VERSION, "host")), Reason::Token);
    check(&frame(hello(VERSION, "../host")), Reason::Token);
}

#[test]
fn a_disk_that_is_full_refuses_for_now_and_leaves_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let full = Path::new("/dev/full");
    std::os::unix::fs::symlink(full, folder.path().join("stream")).expect("a link");
    let mut incoming = Incoming::open(folder.path(), Path::new("stream"), false).expect("open");
    let error = incoming.append(&[1; 10]).expect_err("full");
    assert_eq!(incoming.size_bytes, 0);
    let refusal = Refusal::from(error);
    assert_eq!(refusal.reason, Reason::Full);
    assert!(refusal.reason.passes() && refusal.text.contains("disk is full"));
}

#[test]
fn a_connection_that_another_replaced_writes_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Store::open(folder.path()).expect("a folder"));
    let mut old = Peer::trusting(Arc::clone(&store), [7; 16], "host").expect("random");
    take(&mut old, &[archive("trace"), open("kernel/a", false)]).expect("fine");
    let mut new = Peer::trusting(store, [7; 16], "host").expect("random");
    take(
        &mut new,
        &[archive("trace"), open("kernel/a", false), data(0)],
    )
    .expect("fine");
    let mut bytes = Vec::new();
    data(0).write(&mut bytes);
    let mut out = Vec::new();
    let hang_up = || -> Box<dyn FnOnce() + Send> { Box::new(|| ()) };
    let refusal = old.take(&bytes, &mut out, &hang_up).expect_err("replaced");
    assert_eq!(refusal.reason, Reason::Replaced);
}

#[test]
fn hosts_do_not_share_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Store::open(folder.path()).expect("a folder"));
    for (id, host) in [([7; 16], "one"), ([8; 16], "two")] {
        let mut peer = Peer::trusting(Arc::clone(&store), id, host).expect("random");
        take(
            &mut peer,
            &[archive("trace"), open("kernel/a", false), data(0)],
        )
        .expect("fine");
        let staged = format!("{host}/.trace.partial-{}", std::process::id());
        let stream = folder.path().join(staged).join("kernel/a");
        assert_eq!(fs::read(stream).expect("a file"), [1; 10]);
    }
    // Nobody takes another's recording under another name.
    assert!(store.join([7; 16], "two", Box::new(|| ())).is_none());
}

/// Frames of every kind, their fields from one heap of numbers.
fn frame() -> impl Strategy<Value = Frame> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u64>(), any::<bool>());
    let random = (any::<[u8; 16]>(), any::<[u8; 32]>());
    let texts = (".{0,40}", prop::collection::vec(any::<u8>(), 0..200));
    (0..17u8, numbers, random, texts).prop_map(|(kind, numbers, (nonce, proof), texts)| {
        let ((file, archive, number, is_whole), (text, bytes)) = (numbers, texts);
        let (version, recording, size_bytes) = (file as u16, nonce, number);
        match kind {
            0 => Frame::Welcome { version, nonce },
            1 => Frame::Hello {
                version,
                nonce,
                recording,
                host: text,
                proof,
            },
            2 => Frame::Known { proof },
            3 => Frame::Refused {
                reason: Reason::Full,
                text,
            },
            4 => Frame::Archive {
                archive,
                name: text,
            },
            5 => Frame::Ready { archive },
            6 => Frame::Open {
                file,
                archive,
                is_whole,
                path: text,
            },
            7 => Frame::Have { file, size_bytes },
            8 => Frame::Data {
                file,
                offset: number,
                bytes,
            },
            9 => Frame::Put { file, size_bytes },
            10 => Frame::Ack { file, size_bytes },
            11 => Frame::Until {
                archive,
                time_ns: number as i64,
            },
            12 => Frame::Finish {
                archive,
                is_whole,
                events: number,
                lost: u64::from(file),
            },
            13 => Frame::Forget { archive },
            14 => Frame::Finished { archive },
            15 => Frame::Ping,
            _ => Frame::Pong,
        }
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read_again_in_any_pieces(
        frames in prop::collection::vec(frame(), 0..10),
        piece in 1..50usize,
    ) {
        let mut bytes = Vec::new();
        begin(&mut bytes);
        for frame in &frames {
            frame.write(&mut bytes);
        }
        let mut decoder = Decoder::new();
        decoder.trust();
        let mut read = Vec::new();
        for piece in bytes.chunks(piece) {
            decoder.push(piece);
            while let Some(frame) = decoder.next_frame().expect("ours") {
                read.push(frame);
            }
        }
        prop_assert!(!decoder.is_within());
        prop_assert_eq!(read, frames);
    }

    #[test]
    fn no_bytes_end_a_receiver_or_get_out_of_its_folder(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        frames in prop::collection::vec(frame(), 0..6),
        at in any::<prop::sample::Index>(),
    ) {
        let (mut peer, folder) = peer();
        let mut sound = Vec::new();
        begin(&mut sound);
        for frame in &frames {
            frame.write(&mut sound);
        }
        let place = at.index(sound.len());
        sound.splice(place..place, bytes.drain(..));
        let hang_up = || -> Box<dyn FnOnce() + Send> { Box::new(|| ()) };
        let mut out = Vec::new();
        let _ = peer.take(&sound, &mut out, &hang_up);
        prop_assert!(out.len() < FRAME_BYTES_MAX);
        let around = fs::read_dir(folder.path()).expect("a folder").count();
        prop_assert_eq!(around, 1);
    }
}
