//! The two ways of the kernel's pages: into streams at once, or into files as they are.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use event::{Instant, Result};

use crate::channels::Ring;
use crate::kernel_ctf::ThreadGroups;
use crate::kernel_trace::KernelTrace;
use crate::lanes::{CpuRecord, Lane, Reader, shares};
use crate::progress::{Progress, Source};
use crate::raw::{self, RawCpu, RawLane};

/// What each reader empties rings into.
pub(crate) enum Lanes<'a> {
    Ctf(Vec<Lane<'a>>),
    Raw(Vec<RawLane<'a>>),
}

/// Of one CPU: what the conversion of its pages needs, where they were kept as they are.
pub(crate) type Read = (Option<RawCpu>, CpuRecord);

impl<'a> Lanes<'a> {
    /// Each ring's pages are converted at once.
    pub fn ctf(
        rings: Vec<Ring<'a>>,
        trace: &mut KernelTrace,
        groups: &Arc<ThreadGroups>,
        begin: Instant,
    ) -> Result<Lanes<'a>> {
        let lanes = rings.into_iter().map(|ring| {
            let mut converter = trace.ring(ring.id, groups)?;
            converter.covers(begin)?;
            Ok(Lane::new(ring, converter))
        });
        Ok(Lanes::Ctf(lanes.collect::<Result<_>>()?))
    }

    /// They are kept below `root` as they are.
    pub fn raw(rings: Vec<Ring<'a>>, root: &Path) -> Result<Lanes<'a>> {
        let lanes = rings.into_iter().map(|ring| RawLane::create(root, ring));
        Ok(Lanes::Raw(lanes.collect::<Result<_>>()?))
    }

    /// Deals them out to at most `count` readers.
    pub fn shares(self, count: usize) -> Vec<Lanes<'a>> {
        match self {
            Lanes::Ctf(lanes) => shares(lanes, count).into_iter().map(Lanes::Ctf).collect(),
            Lanes::Raw(lanes) => shares(lanes, count).into_iter().map(Lanes::Raw).collect(),
        }
    }

    pub fn read(
        self,
        progress: (Arc<Progress>, Source),
        drained: &AtomicBool,
    ) -> Result<Vec<Read>> {
        match self {
            Lanes::Ctf(lanes) => {
                let records = Reader::new(lanes, progress).read(drained)?;
                Ok(records.into_iter().map(|record| (None, record)).collect())
            }
            Lanes::Raw(lanes) => {
                let records = raw::read_lanes(lanes, drained)?;
                let known = |(facts, record)| (Some(facts), record);
                Ok(records.into_iter().map(known).collect())
            }
        }
    }
}
