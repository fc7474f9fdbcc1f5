//! Rings of traced processes, which may write there what they like.

use ring::{Layout, Records, Table, objects};

use super::walk::ITEMS_MAX;
use crate::engine::Reader;
use crate::random::Random;

/// The layout, the table of events and the records, all from the same bytes.
pub const RING: Reader = Reader {
    name: "ring",
    what: "rings that traced processes share: layout, table of events, records",
    seeds,
    grammar: None,
    run,
};

/// What a process says that it has loaded.
pub const OBJECTS: Reader = Reader {
    name: "objects",
    what: "programs and libraries that a traced process says it has loaded",
    seeds: |_| {
        vec![
            loaded(b"", b""),
            [loaded(&[1, 2, 3, 4], b"/bin/x"), loaded(b"", b"/y")].concat(),
        ]
    },
    grammar: None,
    run: run_objects,
};

/// A sound entry.
fn loaded(build_id: &[u8], path: &[u8]) -> Vec<u8> {
    let size = (40 + build_id.len() + path.len()).next_multiple_of(8);
    let mut bytes = Vec::new();
    bytes.extend((size as u32).to_le_bytes());
    bytes.extend((build_id.len() as u16).to_le_bytes());
    bytes.extend((path.len() as u16).to_le_bytes());
    for word in [0x1000_u64, 0x2000, 0x1000, 7] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(build_id);
    bytes.extend(path);
    bytes.resize(size, 0);
    bytes
}

fn run_objects(input: &[u8]) {
    let (objects, read_bytes) = objects(input);
    assert!(read_bytes <= input.len(), "objects beyond their area");
    let said: usize = objects.iter().map(|object| object.build_id.len()).sum();
    assert!(said <= read_bytes, "more bytes than there are");
    for object in objects {
        assert!(object.begin.checked_add(object.size_bytes).is_some());
    }
}

fn seeds(random: &mut Random) -> Vec<Vec<u8>> {
    let noise: Vec<u8> = (0..512).map(|_| random.bits() as u8).collect();
    vec![vec![0; 1024], noise]
}

fn run(input: &[u8]) {
    std::hint::black_box(Layout::parse(input, input.len() as u64).is_ok());
    let mut table = Table::default();
    std::hint::black_box(table.extend(input));
    let mut records = 0;
    for record in Records::new(input, 0, 4096, 0) {
        records += 1;
        assert!(records < ITEMS_MAX, "records without end");
        std::hint::black_box(record);
    }
}
