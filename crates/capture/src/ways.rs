//! The two ways of the kernel's pages: into streams at once, or into files as they are.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use event::{Instant, Result};
use ftrace::{Instance, PagePipe};

use crate::kernel_ctf::{CpuConverter, ThreadGroups};
use crate::kernel_trace::KernelTrace;
use crate::lanes::{CpuRecord, Lane, Reader, shares};
use crate::progress::{Progress, Source};
use crate::raw::{self, RawCpu, RawLane};
use crate::recorder::ContextRings;

fn covered(mut converter: CpuConverter, begin: Instant) -> Result<CpuConverter> {
    converter.covers(begin)?;
    Ok(converter)
}

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
        (pipes, mut rings): (&'a mut [PagePipe], ContextRings),
        trace: &mut KernelTrace,
        groups: &Arc<ThreadGroups>,
        begin: Instant,
    ) -> Result<Lanes<'a>> {
        let converters: Result<Vec<_>> = pipes
            .iter()
            .map(|pipe| covered(trace.cpu(pipe.cpu(), groups)?, begin))
            .collect();
        let pipes = pipes.iter_mut().zip(converters?);
        Ok(Lanes::Ctf(
            pipes
                .map(|(pipe, to)| {
                    let contexts = rings.remove(&pipe.cpu());
                    Lane::new(pipe, to).with_contexts(contexts)
                })
                .collect(),
        ))
    }

    /// They are kept below `root` as they are.
    pub fn raw(
        (pipes, mut rings): (&'a mut [PagePipe], ContextRings),
        root: &Path,
    ) -> Result<Lanes<'a>> {
        let lanes = pipes.iter_mut().map(|pipe| {
            let contexts = rings.remove(&pipe.cpu());
            RawLane::create(root, pipe, contexts)
        });
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
        instance: &Instance,
        progress: (Arc<Progress>, Source),
        drained: &AtomicBool,
    ) -> Result<Vec<Read>> {
        match self {
            Lanes::Ctf(lanes) => {
                let records = Reader::new(lanes, instance, progress).read(drained)?;
                Ok(records.into_iter().map(|record| (None, record)).collect())
            }
            Lanes::Raw(lanes) => {
                let records = raw::read_lanes(lanes, instance, drained)?;
                let known = |(facts, record)| (Some(facts), record);
                Ok(records.into_iter().map(known).collect())
            }
        }
    }
}
