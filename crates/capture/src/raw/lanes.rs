//! From the rings to files, page by page, without a look at them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as StdInstant;

use bpf_host::ContextRing;
use event::{Cpu, Result};
use ftrace::{Instance, PagePipe, Spliced, Splicer};

use super::facts::{RawCpu, contexts_of, pages_of};
use crate::channels::Ring;
use crate::kernel_ctf::CpuTotals;
use crate::lanes::CpuRecord;
use crate::progress::POLL_PERIOD;

/// One CPU's way from its ring to its file.
pub(crate) struct RawLane<'a> {
    pipe: &'a mut PagePipe,
    instance: &'a Instance,
    file: File,
    path: std::path::PathBuf,
    /// None once the kernel or the file system refused to move pages: they are copied then.
    splicer: Option<Splicer>,
    page: Vec<u8>,
    pages: u64,
    facts: RawCpu,
    /// What BPF reads at its events, and where that is kept.
    contexts: Option<(ContextRing, File)>,
}

impl<'a> RawLane<'a> {
    pub fn create(root: &Path, ring: Ring<'a>) -> Result<RawLane<'a>> {
        let Ring {
            pipe,
            instance,
            contexts,
            ..
        } = ring;
        let path = pages_of(root, pipe.cpu());
        let folder = path.parent().unwrap_or(root);
        let created = std::fs::create_dir_all(folder).and_then(|()| File::create(&path));
        let file = created.map_err(|error| ctf::writer::write_error(&path, error))?;
        let keep = |ring: ContextRing| {
            let path = contexts_of(root, pipe.cpu());
            let file = File::create(&path);
            let file = file.map_err(|error| ctf::writer::write_error(&path, error))?;
            Ok((ring, file))
        };
        let contexts = contexts.map(keep).transpose()?;
        let context_bytes = contexts.as_ref().map(|(ring, _)| ring.record_bytes());
        Ok(RawLane {
            splicer: Splicer::new().ok(),
            page: vec![0; pipe.page_size_bytes()],
            pages: 0,
            facts: RawCpu {
                context_bytes,
                ..RawCpu::new(pipe.cpu())
            },
            contexts,
            pipe,
            instance,
            file,
            path,
        })
    }

    fn write_error(&self, error: std::io::Error) -> event::Error {
        ctf::writer::write_error(&self.path, error)
    }

    /// Moves what is in the ring; only full pages, unless it is the `last` time.
    fn empty(&mut self, last: bool) -> Result<()> {
        // Before the first page: what was overwritten until now lies before what is read next.
        let overrun = self.instance.statistics(self.pipe.cpu())?.overrun;
        if self.facts.overruns.last().map_or(0, |(_, known)| *known) < overrun {
            self.facts.overruns.push((self.pages, overrun));
        }
        while let Some(splicer) = &mut self.splicer {
            match splicer.pages(self.pipe, &self.file) {
                Ok(Spliced::Pages(count)) => self.pages += count as u64,
                Ok(Spliced::Nothing) => break,
                Ok(Spliced::Refused) => self.splicer = None,
                Err(error) => return Err(self.write_error(error)),
            }
        }
        if self.splicer.is_some() && !last {
            return Ok(());
        }
        while self.pipe.read_page(&mut self.page)? {
            let written = self.file.write_all(&self.page);
            written.map_err(|error| self.write_error(error))?;
            self.pages += 1;
        }
        Ok(())
    }

    /// Keeps what BPF read.
    fn keep_contexts(&mut self) -> Result<()> {
        let Some((ring, file)) = &mut self.contexts else {
            return Ok(());
        };
        let mut written = Ok(());
        ring.take(|records, _| written = file.write_all(records))?;
        written.map_err(|error| self.write_error(error))
    }

    fn finish(mut self) -> Result<(RawCpu, CpuRecord)> {
        let statistics = self.instance.statistics(self.pipe.cpu())?;
        self.facts.lost = statistics.lost();
        self.facts.pages = self.pages;
        let written = CpuTotals {
            events: statistics.read,
            discarded: statistics.lost(),
            size_bytes: self.pages * self.page.len() as u64,
            ..CpuTotals::none(Cpu(self.facts.cpu))
        };
        Ok((
            self.facts,
            CpuRecord {
                channel: 0,
                written,
                statistics,
            },
        ))
    }
}

/// What became of the CPUs of one reader: what conversion needs, and what was read.
pub(crate) type RawRecord = (RawCpu, CpuRecord);

/// Empties the rings now and then until `drained` is raised, and then a last time.
pub(crate) fn read_lanes(
    mut lanes: Vec<RawLane<'_>>,
    drained: &AtomicBool,
) -> Result<Vec<RawRecord>> {
    loop {
        let last = drained.load(Ordering::Acquire);
        let begin = StdInstant::now();
        for lane in &mut lanes {
            lane.empty(last)?;
            lane.keep_contexts()?;
        }
        if last {
            return lanes.into_iter().map(RawLane::finish).collect();
        }
        std::thread::sleep(POLL_PERIOD.saturating_sub(begin.elapsed()));
    }
}
