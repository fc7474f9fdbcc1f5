//! CTF: metadata of 1.8 and 2, stream files, whole traces with the index of their packets.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use ::ctf::reader::{Schema, Step, StreamReader, metadata_text};
use event::FieldId;

use super::walk::{self, ITEMS_MAX};
use crate::engine::Reader;
use crate::random::Random;

/// Metadata as text, in packets or as JSON; then a stream of what is left of the input.
pub const METADATA: Reader = Reader {
    name: "metadata",
    what: "CTF metadata: TSDL in text and packets, JSON of CTF 2",
    seeds: metadata_seeds,
    grammar: Some(include_str!("../../grammars/metadata.txt")),
    run: metadata,
};

/// The first byte chooses the metadata, the rest is a stream file.
pub const STREAM: Reader = Reader {
    name: "stream",
    what: "CTF stream files: packets, headers, every kind of field",
    seeds: stream_seeds,
    grammar: None,
    run: stream,
};

/// Two bytes of length, the metadata, a stream file: read as a directory.
pub const TRACE: Reader = Reader {
    name: "trace",
    what: "whole CTF traces: files, the index of their packets, the merge, seeking",
    seeds: trace_seeds,
    grammar: None,
    run: trace,
};

/// Metadata with one of everything.
const TSDL: &str = include_str!("../../seeds/everything.tsdl");
const JSON: &str = include_str!("../../seeds/everything.json");

/// Metadata of both byte orders, and of CTF 2.
fn texts() -> [String; 3] {
    let json = JSON.lines().filter(|line| !line.is_empty());
    [
        TSDL.replace("BYTE_ORDER", "le"),
        TSDL.replace("BYTE_ORDER", "be"),
        json.map(|line| format!("\x1e{line}\n")).collect(),
    ]
}

/// What our own writer makes: metadata and the stream of a CPU.
fn sample() -> Option<(Vec<u8>, Vec<u8>)> {
    let dir = tempfile::tempdir().ok()?;
    testkit::write_sample(dir.path()).ok()?;
    let metadata = fs::read(dir.path().join("metadata")).ok()?;
    let entries = fs::read_dir(dir.path()).ok()?.flatten();
    let mut streams: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    streams.retain(|path| path.is_file() && !path.ends_with("metadata"));
    streams.sort();
    Some((metadata, fs::read(streams.first()?).ok()?))
}

/// A text in a metadata packet (CTF 1.8, 7.1) of either byte order.
fn packetised(text: &str, big_endian: bool) -> Vec<u8> {
    let word = |value: u32| match big_endian {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    let bits = (37 + text.len() as u32) * 8;
    let mut out = word(0x75d1_1d57).to_vec();
    out.extend([7; 16]);
    out.extend(word(0));
    out.extend(word(bits));
    out.extend(word(bits));
    out.extend([0, 0, 0, 1, 8]);
    out.extend(text.bytes());
    out
}

fn metadata_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let texts = texts();
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|text| text.clone().into_bytes()).collect();
    seeds.push(packetised(&texts[0], false));
    seeds.push(packetised(&texts[1], true));
    seeds.extend(sample().map(|(metadata, _)| metadata));
    seeds
}

fn metadata(input: &[u8]) {
    let Ok(text) = metadata_text(input) else {
        return;
    };
    if let Ok(schema) = Schema::parse(&text) {
        let rest = &input[input.len().saturating_sub(300)..];
        walk(&schema, rest);
    }
}

/// Walks over a stream and reads every field.
fn walk(schema: &Schema, bytes: &[u8]) {
    let mut reader = StreamReader::new(schema, bytes);
    for _ in 0..ITEMS_MAX {
        match reader.step() {
            Step::End => return,
            Step::Event => {
                let Some(event) = reader.event() else {
                    continue;
                };
                let class = &schema.classes[event.class().0 as usize];
                for place in 0..class.fields.len() {
                    let id = FieldId(place as u16);
                    std::hint::black_box((event.i64(id), event.f64(id), event.text(id).len()));
                    std::hint::black_box(event.value(id));
                }
            }
            Step::Lost(_) | Step::Damage(_) | Step::Unread(_) => {}
        }
    }
    panic!("a walk without end");
}

/// The metadata that streams are read with; what does not parse is left out.
fn schemas() -> &'static [Schema] {
    static SCHEMAS: OnceLock<Vec<Schema>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let own = sample().and_then(|(metadata, _)| String::from_utf8(metadata).ok());
        let texts = texts().into_iter().chain(own);
        texts.filter_map(|text| Schema::parse(&text).ok()).collect()
    })
}

/// A packet of the metadata with everything: sizes, one event of every field, one of none.
fn packet(big_endian: bool) -> Vec<u8> {
    let order = |mut bytes: Vec<u8>| {
        if big_endian {
            bytes.reverse();
        }
        bytes
    };
    let mut bytes = order(0xC1FC_1FC1u32.to_le_bytes().to_vec());
    bytes.push(1);
    for word in [90u64 * 8, 100 * 8, 3] {
        bytes.extend(order(word.to_le_bytes().to_vec()));
    }
    bytes.push(0);
    bytes.extend(b"\x03\x01\0\0\x02\0\0\xff\xffhi\0\x01\0\0\0\x07\0\0\0\0\x2a\x01one\0\0\0\xc0?ab");
    bytes.resize(100, 0x1f);
    bytes
}

fn stream_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (schema, big_endian) in [(0u8, false), (1, true), (2, false)] {
        let mut seed = vec![schema];
        seed.extend(packet(big_endian));
        seed.extend(packet(big_endian));
        seeds.push(seed);
    }
    if let Some((_, stream)) = sample() {
        let mut seed = vec![3];
        seed.extend(&stream[..stream.len().min(8192)]);
        seeds.push(seed);
    }
    // CTF 2 with numbers of variable length: a packet header, then two events.
    seeds.push(
        b"\x02\xc1\xfc\x1f\xc1\x07\x80\x03\x80\x03\x80\x02\x01\x03\x02\x04abc\x03\x03\x04".into(),
    );
    seeds
}

fn stream(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let schemas = schemas();
    if let Some(schema) = schemas.get(usize::from(*choice) % schemas.len().max(1)) {
        walk(schema, bytes);
    }
}

fn trace_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = sample().into_iter().collect();
    let [little, big, _] = texts();
    pairs.push((little.into_bytes(), [packet(false), packet(false)].concat()));
    pairs.push((big.into_bytes(), packet(true)));
    let seed = |(metadata, stream): (Vec<u8>, Vec<u8>)| {
        let mut seed = (metadata.len() as u16).to_le_bytes().to_vec();
        seed.extend(metadata);
        seed.extend(stream);
        seed
    };
    pairs.into_iter().map(seed).collect()
}

thread_local! {
    static DIR: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
}

/// A directory that lives as long as the process; in memory where the machine has such a place.
fn directory() -> Option<PathBuf> {
    DIR.with_borrow_mut(|dir| {
        if dir.is_none() {
            let made = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
            *dir = made.ok();
        }
        dir.as_ref().map(|dir| dir.path().to_owned())
    })
}

fn trace(input: &[u8]) {
    let (Some((length, rest)), Some(dir)) = (input.split_first_chunk(), directory()) else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (metadata, stream) = rest.split_at(length);
    // Two streams of the same bytes, so that there is something to merge.
    let written = fs::write(dir.join("metadata"), metadata)
        .and_then(|()| fs::write(dir.join("a"), stream))
        .and_then(|()| fs::write(dir.join("b"), &stream[..stream.len() / 2]));
    if written.is_err() {
        return;
    }
    if let Ok(trace) = ::trace::Trace::open(&dir) {
        walk::walk(&trace);
    }
}
