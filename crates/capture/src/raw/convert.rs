//! From a raw recording to the trace that would have been there without `--raw`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctf::writer::StagedDir;
use event::{Cpu, Error, Instant, Result};
use ftrace::{Formats, Page, PageLayout};

use super::facts::{FOLDER, RawCpu, RawFacts, contexts_of, pages_of};
use crate::kernel_ctf::{
    Before, CpuConverter, CpuTotals, KernelClasses, KernelContexts, Moments, ThreadGroups,
};
use crate::kernel_trace::KernelTrace;
use crate::progress;

/// What came of a raw recording.
#[derive(Clone, Debug)]
pub struct RawSummary {
    /// Where the trace is.
    pub path: PathBuf,
    /// Per CPU.
    pub cpus: Vec<CpuTotals>,
    /// Whether its recorder was killed, or its disk was full: what came last is not there.
    pub is_cut: bool,
    /// Pages that make no sense, and files that lack some: each is a loss in the trace.
    pub damages: u64,
}

/// One CPU's pages, on their way into its stream.
struct Pages {
    file: File,
    facts: RawCpu,
    page: Vec<u8>,
    /// The time of `page`; none when all were converted.
    begin_ns: Option<u64>,
    /// How many pages came before it.
    before: u64,
    /// Losses for what cannot be read.
    damages: u64,
    converter: CpuConverter,
}

impl Pages {
    /// Reads the next page; a page that was cut is none.
    fn next(&mut self, layout: &PageLayout) -> Result<()> {
        let read = self.file.read_exact(&mut self.page);
        self.begin_ns = match read {
            // One that makes no sense is the converter's to tell.
            Ok(()) => Some(Page::parse(layout, &self.page).map_or(0, |page| page.time_ns)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(Error::io("cannot read raw pages", error)),
        };
        Ok(())
    }

    fn convert(&mut self, layout: &PageLayout) -> Result<()> {
        let is_known = |(page, _): &&(u64, u64)| *page <= self.before;
        let overrun = self.facts.overruns.iter().rev().find(is_known);
        let overrun = overrun.map_or(0, |(_, overrun)| *overrun);
        let lost = self.converter.discarded() - self.damages;
        let damaged = self.converter.damaged_pages();
        self.converter
            .page(&self.page, Before::Running, overrun.saturating_sub(lost))?;
        if self.converter.damaged_pages() > damaged {
            self.damage()?;
        }
        self.before += 1;
        self.next(layout)
    }

    /// What could not be read is missing.
    fn damage(&mut self) -> Result<()> {
        self.damages += 1;
        self.converter.lost(self.converter.discarded() + 1)
    }
}

/// Converts the raw recording `from` into the trace `to`.
///
/// # Errors
/// [`event::ErrorKind::AlreadyExists`] when `to` is there, [`event::ErrorKind::Corrupt`] when
/// `from` makes no sense; otherwise what the operating system says.
pub fn convert_raw(from: &Path, to: &Path) -> Result<RawSummary> {
    let facts = RawFacts::read(from)?;
    let metadata = from.join("kernel/metadata");
    if !metadata.is_file() {
        return Err(missing(&metadata, std::io::ErrorKind::NotFound.into()));
    }
    let formats = Formats::read_saved(&from.join(FOLDER))?;
    let staged = StagedDir::create(to)?;
    let contexts = KernelContexts::new(facts.contexts.iter().map(String::as_str))?;
    let classes = KernelClasses::compile(&formats).carrying(&contexts.on_rt(facts.is_rt));
    let groups = Arc::new(ThreadGroups::new(facts.thread_groups.iter().copied()));
    let mut trace = KernelTrace::again(
        staged.path(),
        Arc::new(classes),
        (facts.uuid, facts.wall_offset_ns),
    )?;
    let mut all = Vec::with_capacity(facts.cpus.len());
    for cpu in &facts.cpus {
        let path = pages_of(from, Cpu(cpu.cpu));
        let file = File::open(&path).map_err(|error| missing(&path, error))?;
        let mut converter = trace.cpu(Cpu(cpu.cpu), &groups)?;
        converter.covers(Instant::from_ns(facts.begin_ns))?;
        let kept = cpu
            .context_bytes
            .map(|bytes| kept(from, Cpu(cpu.cpu), bytes));
        if let Some(kept) = kept.transpose()? {
            converter = converter.at_moments(kept);
        }
        let mut pages = Pages {
            file,
            facts: cpu.clone(),
            page: vec![0; formats.layout.page_size_bytes()],
            begin_ns: None,
            before: 0,
            damages: 0,
            converter,
        };
        pages.next(&formats.layout)?;
        all.push(pages);
    }
    // In the order of their times: who forks on one CPU says whose threads run on others.
    let begins = |pages: &&mut Pages| pages.begin_ns;
    while let Some(first) = all
        .iter_mut()
        .filter(|pages| pages.begin_ns.is_some())
        .min_by_key(begins)
    {
        first.convert(&formats.layout)?;
    }
    // Then each stream's end is a loss, those of others than the kernel too.
    let is_marked = facts.end_ns.is_none() && progress::mark_alike(from, staged.path())?;
    let ended = all.into_iter().map(|pages| end(pages, &facts, is_marked));
    let ended = ended.collect::<Result<Vec<_>>>()?;
    let (cpus, damages): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    drop(trace);
    copy_rest(from, staged.path())?;
    Ok(RawSummary {
        path: staged.commit()?,
        cpus,
        is_cut: facts.end_ns.is_none(),
        damages: damages.iter().sum(),
    })
}

/// Something that belongs to a raw recording is not there.
fn missing(path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("cannot read {}", path.display()), error)
        .fix("copy the whole folder that rtscope record --raw wrote")
}

/// What BPF read at the events of `cpu`.
fn kept(from: &Path, cpu: Cpu, record_bytes: usize) -> Result<Moments> {
    let path = contexts_of(from, cpu);
    let file = File::open(&path).map_err(|error| missing(&path, error))?;
    Ok(Moments::kept(file, record_bytes))
}

/// The last losses of a CPU, and the end of its stream; and how much of it could not be read.
fn end(mut pages: Pages, facts: &RawFacts, is_marked: bool) -> Result<(CpuTotals, u64)> {
    if pages.before < pages.facts.pages {
        pages.damage()?;
    }
    let (damages, lost) = (pages.damages, pages.facts.lost);
    let mut converter = pages.converter;
    match facts.end_ns {
        Some(end_ns) => {
            converter.lost(lost + damages)?;
            converter.covers(Instant::from_ns(end_ns))?;
        }
        // The mark says that more is missing.
        None if is_marked => converter.lost(converter.discarded())?,
        // What its recorder did not write is missing.
        None => converter.lost(converter.discarded() + 1)?,
    }
    Ok((converter.finish()?, damages))
}

/// Copies what is a trace already, and the metadata of all of it.
fn copy_rest(from: &Path, to: &Path) -> Result<()> {
    let failed = |path: &Path, error| Error::io(format!("cannot read {}", path.display()), error);
    for entry in fs::read_dir(from).map_err(|error| failed(from, error))? {
        let entry = entry.map_err(|error| failed(from, error))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let name = entry.file_name();
        if name == FOLDER || name.to_string_lossy().starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(|error| failed(&path, error))?;
        let copied = match (kind.is_dir(), kind.is_file()) {
            (true, _) => {
                let made = fs::create_dir_all(&target);
                made.map_err(|error| ctf::writer::write_error(&target, error))?;
                copy_rest(&path, &target)?;
                continue;
            }
            (_, true) => fs::copy(&path, &target),
            _ => continue,
        };
        copied.map_err(|error| ctf::writer::write_error(&target, error))?;
    }
    Ok(())
}
