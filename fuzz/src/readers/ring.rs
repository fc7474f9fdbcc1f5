//! Rings of traced processes, which may write there what they like.

use ring::{Layout, Records, Table};

use super::ITEMS_MAX;
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
