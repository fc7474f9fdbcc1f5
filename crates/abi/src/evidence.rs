//! Reads evidence: what only the kernel's watch sees.

use std::mem::offset_of;

use event::evidence::{Evidence, Machine, Place};
use event::{Cpu, Instant};

use crate::raw;

/// What a whole slot says; none when its kind is unknown or it makes no sense.
pub fn decode_evidence(slot: &raw::Evidence, cpu: Cpu, machine: &Machine) -> Option<Evidence> {
    let place = Place {
        cpu,
        time: Instant::from_ns(slot.time_ns as i64),
    };
    let payload = &raw::bytes(slot)[offset_of!(raw::Evidence, words)..];
    Evidence::from_kernel(slot.kind, place, payload, machine)
}
