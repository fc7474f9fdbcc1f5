//! Records of the kernel's watch.

use abi::raw;
use event::evidence::Machine;
use event::{Cpu, Duration};

use crate::engine::Reader;
use crate::random::Random;

/// Hits and evidence, as they come through the ring.
pub const EVIDENCE: Reader = Reader {
    name: "evidence",
    what: "hits and evidence of the kernel's watch",
    seeds,
    grammar: None,
    run,
};

fn seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let mut hit: raw::Hit = raw::zeroed();
    hit.steps_length = 3;
    let mut slot: raw::Evidence = raw::zeroed();
    slot.kind = 1;
    vec![raw::bytes(&hit).to_vec(), raw::bytes(&slot).to_vec()]
}

fn run(input: &[u8]) {
    std::hint::black_box(abi::decode_hit(input, Duration::from_ns(1)).is_ok());
    if let Some(slot) = raw::read::<raw::Evidence>(input) {
        let evidence = abi::decode_evidence(&slot, Cpu(0), &Machine::default());
        std::hint::black_box(evidence);
    }
}
