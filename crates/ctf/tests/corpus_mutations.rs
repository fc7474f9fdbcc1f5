//! Real traces, cut and changed at many places: the reader ends, never panics.
//!
//! The corpus is not part of the project: name its directory in RTSCOPE_CORPUS.

use std::fs;
use std::path::{Path, PathBuf};

use ctf::reader::{Schema, Step, StreamReader, metadata_text};
use event::FieldId;

/// Changes of each trace's metadata, and of each of its stream files.
const CHANGES: u64 = 12;
/// No more of a stream file is walked: what breaks a reader stands in the first packets.
const STREAM_BYTES_MAX: usize = 64 << 10;

/// A sequence of numbers that is the same in every run (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit.max(1)
    }

    fn change(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut changed = bytes.to_vec();
        match self.below(3) {
            0 => changed.truncate(self.below(bytes.len())),
            1 => changed[self.below(bytes.len())] = self.below(256) as u8,
            _ => {
                let (from, to) = (self.below(bytes.len()), self.below(bytes.len()));
                let piece = bytes[from..(from + 40).min(bytes.len())].to_vec();
                changed.splice(to..to, piece);
            }
        }
        changed
    }
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    if dir.join("metadata").is_file() {
        return found.push(dir.to_owned());
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().is_dir())
        .for_each(|entry| find(&entry.path(), found));
}

fn walk(schema: &Schema, bytes: &[u8]) -> u64 {
    let mut reader = StreamReader::new(schema, bytes);
    let mut steps = 0;
    loop {
        match reader.step() {
            Step::End => return steps,
            Step::Event => {
                let event = reader.event().unwrap();
                let fields = schema.classes[event.class().0 as usize].fields.len();
                (0..fields).for_each(|place| drop(event.value(FieldId(place as u16))));
            }
            Step::Lost(_) | Step::Damage(_) | Step::Unread(_) => {}
        }
        steps += 1;
    }
}

#[test]
#[ignore = "needs the corpus of traces (RTSCOPE_CORPUS)"]
fn real_traces_with_changed_bytes_end_without_a_panic() {
    let corpus = std::env::var_os("RTSCOPE_CORPUS").expect("RTSCOPE_CORPUS names the corpus");
    let mut dirs = Vec::new();
    find(Path::new(&corpus), &mut dirs);
    let mut numbers = Numbers(1);
    let (mut schemas, mut steps) = (0, 0);
    for dir in &dirs {
        let metadata = fs::read(dir.join("metadata")).unwrap();
        let files = fs::read_dir(dir)
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let is_stream = |path: &PathBuf| path.is_file() && !path.ends_with("metadata");
        let streams: Vec<Vec<u8>> = files
            .filter(is_stream)
            .map(|p| fs::read(p).unwrap())
            .collect();
        for change in 0..CHANGES {
            // The first walk has whole metadata, so that changed streams are read deep.
            let bytes = if change < 2 {
                metadata.clone()
            } else {
                numbers.change(&metadata)
            };
            let Ok(text) = metadata_text(&bytes) else {
                continue;
            };
            let Ok(schema) = Schema::parse(&text) else {
                continue;
            };
            schemas += 1;
            for stream in streams.iter().filter(|stream| !stream.is_empty()) {
                let stream = &stream[..stream.len().min(STREAM_BYTES_MAX)];
                steps += walk(&schema, &numbers.change(stream));
            }
        }
    }
    eprintln!(
        "{} traces, {schemas} schemas understood, {steps} steps",
        dirs.len()
    );
    assert!(
        schemas > dirs.len(),
        "most changes leave a schema to walk with"
    );
}
