//! The evidence stream of `docs/format/evidence.md`: hits and records as encoded events.

use std::collections::BTreeMap;

use ctf::writer::EnvValue;
use event::evidence::{Evidence, Hit, Kind, Sum};
use event::{Cpu, Instant};

pub(crate) use event::evidence::classes;

/// An encoded event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub cpu: Cpu,
    pub time: Instant,
    pub class: u32,
    pub payload: Vec<u8>,
}

/// How many events each CPU has and their sum, for the `env` of the trace: what is missing later,
/// or is not what was written, is seen.
pub(crate) fn promise(events: &[Encoded]) -> (String, EnvValue) {
    let mut sums: BTreeMap<u32, Sum> = BTreeMap::new();
    for event in events {
        let sum = sums.entry(event.cpu.0).or_default();
        sum.add(event.class, &event.payload);
    }
    let sums = sums.iter().map(|(cpu, sum)| format!("{cpu}:{sum}"));
    let said = sums.collect::<Vec<_>>().join(",");
    ("rtscope_evidence_events".to_owned(), EnvValue::Text(said))
}

/// Encodes hits and records, in the order of time.
pub(crate) fn encode(hits: &[Hit], evidence: &[Evidence]) -> Vec<Encoded> {
    let hits = hits.iter().map(|hit| {
        let mut payload = Vec::new();
        hit.encode(&mut payload);
        Encoded {
            cpu: hit.cpu(),
            time: hit.end,
            class: Kind::Hit.class(),
            payload,
        }
    });
    let records = evidence.iter().map(|record| {
        let mut payload = Vec::new();
        record.encode(&mut payload);
        Encoded {
            cpu: record.cpu(),
            time: record.time(),
            class: record.kind().class(),
            payload,
        }
    });
    let mut encoded: Vec<_> = hits.chain(records).collect();
    encoded.sort_by_key(|event| event.time);
    encoded
}
