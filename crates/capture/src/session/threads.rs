//! The threads that empty the kernel's rings for a session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use event::{Cpu, Result};

use super::archive::{Archive, Got, OfKernel};
use crate::channels::{Ring, RingId};
use crate::housekeeping;
use crate::lanes::{CpuRecord, Lane, Reader, shares};
use crate::record::READERS_MAX;
use crate::syscalls::{CallsSummary, SyscallRecorder};
use crate::turn::{Ended, Fills, Turn, Turns};

/// What all readers share.
pub(super) struct Written<'w> {
    pub fills: &'w Fills,
    /// Raised when events no longer come in: the readers empty the rings a last time.
    pub drained: &'w AtomicBool,
    /// Raised by whoever cannot go on.
    pub failed: &'w AtomicBool,
    pub cpus: &'w [Cpu],
}

type OfCpus<'s> = ScopedJoinHandle<'s, Result<Vec<CpuRecord>>>;
type OfCalls<'s> = ScopedJoinHandle<'s, Result<CallsSummary>>;

/// Running readers.
pub(super) struct Readers<'s> {
    cpus: Vec<(OfCpus<'s>, Vec<RingId>, Sender<Turn>)>,
    calls: Option<(OfCalls<'s>, Sender<Turn>)>,
    /// Where they say what the streams before a turn got.
    pub ended: Receiver<Ended>,
}

impl<'w> Written<'w> {
    /// The ways of all CPUs into the first archive.
    pub fn lanes<'p>(
        &self,
        rings: Vec<Ring<'p>>,
        archive: &mut Archive,
        of: &OfKernel<'_>,
    ) -> Result<Vec<Lane<'p>>> {
        let begin = archive.begin;
        let mut lanes = Vec::new();
        for ring in rings {
            if let Some(trace) = archive.kernel() {
                let mut converter = trace.ring(ring.id, &of.groups)?;
                converter.covers(begin)?;
                lanes.push(Lane::new(ring, converter));
            }
        }
        Ok(lanes)
    }

    /// Starts the readers.
    pub fn start<'s, 'e>(
        &self,
        scope: &'s Scope<'s, 'e>,
        (lanes, calls): (Vec<Lane<'e>>, Option<SyscallRecorder>),
        archive: &Archive,
    ) -> Readers<'s>
    where
        'w: 'e,
    {
        let (ended, all_ended) = channel();
        let Written {
            fills,
            drained,
            failed,
            cpus,
        } = *self;
        let start = |share: Vec<Lane<'e>>| {
            let own: Vec<RingId> = share.iter().map(Lane::id).collect();
            let (turns, asked) = channel();
            let turning = Turns {
                asked,
                ended: ended.clone(),
                fills,
            };
            let reader = Reader::new(share, archive.progress());
            let reader = reader.turning(turning);
            let thread = scope.spawn(move || {
                housekeeping::pin(cpus);
                let result = reader.read(drained);
                if result.is_err() {
                    failed.store(true, Ordering::Release);
                }
                result
            });
            (thread, own, turns)
        };
        let shares = shares(lanes, cpus.len().clamp(1, READERS_MAX));
        let of_cpus = shares.into_iter().map(start).collect();
        let calls = calls.map(|calls| {
            let (turns, asked) = channel();
            let turning = Turns {
                asked,
                ended: ended.clone(),
                fills,
            };
            let progress = archive.progress();
            let thread = scope.spawn(move || {
                housekeeping::pin(cpus);
                let result = calls.read_until(drained, progress, Some(turning));
                if result.is_err() {
                    failed.store(true, Ordering::Release);
                }
                result
            });
            (thread, turns)
        });
        Readers {
            cpus: of_cpus,
            calls,
            ended: all_ended,
        }
    }
}

impl Readers<'_> {
    /// What each reader is to turn to, at an instant that is to be filled in.
    pub fn turns(
        &self,
        next: &mut Archive,
        of: &OfKernel<'_>,
    ) -> Result<Vec<(&Sender<Turn>, Turn)>> {
        let at = next.begin;
        let mut streams = match next.kernel() {
            Some(trace) => trace.streams(&of.rings)?,
            None => Vec::new(),
        };
        let mut turns = Vec::new();
        for (_, own, desk) in &self.cpus {
            let all = std::mem::take(&mut streams).into_iter();
            let (of_reader, others) = all.partition(|(ring, _)| own.contains(ring));
            streams = others;
            let turn = Turn {
                at,
                streams: of_reader,
                progress: next.progress(),
            };
            turns.push((desk, turn));
        }
        if let Some((_, desk)) = &self.calls
            && let Some(trace) = next.kernel()
        {
            let (streams, _) = trace.calls(&of.cpus)?;
            let turn = Turn {
                at,
                streams,
                progress: next.progress(),
            };
            turns.push((desk, turn));
        }
        Ok(turns)
    }

    /// Waits for all of them, and adds what their last streams got.
    pub fn join(self, got: &mut Got) -> Result<()> {
        let mut joined = Ok(());
        for (thread, ..) in self.cpus {
            match thread.join() {
                Ok(Ok(cpus)) => cpus.iter().for_each(|cpu| {
                    let written = &cpu.written;
                    got.add(written.events, written.discarded, written.size_bytes);
                }),
                Ok(Err(error)) => joined = joined.and(Err(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match self.calls.map(|(thread, _)| thread.join()) {
            None => (),
            Some(Ok(Ok(calls))) => got.add(calls.events, calls.lost, calls.size_bytes),
            Some(Ok(Err(error))) => joined = joined.and(Err(error)),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
        joined
    }
}
