//! From a raw recording to the trace that would have been there without `--raw`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctf::writer::StagedDir;
use event::{Cpu, Error, Instant, Result};
use ftrace::{Formats, Page, PageLayout};

use super::facts::{FOLDER, RawCpu, RawFacts, pages_of};
use crate::kernel_ctf::{
    Before, CpuConverter, CpuTotals, KernelClasses, KernelContexts, ThreadGroups,
};
use crate::kernel_trace::KernelTrace;

/// What came of a raw recording.
#[derive(Clone, Debug)]
pub struct RawSummary {
    /// Where the trace is.
    pub path: PathBuf,
    /// Per CPU.
    pub cpus: Vec<CpuTotals>,
    /// Whether its recorder was killed: what came last is not there.
    pub is_cut: bool,
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
        let missed_min = overrun.saturating_sub(self.converter.discarded());
        self.converter
            .page(&self.page, Before::Running, missed_min)?;
        self.before += 1;
        self.next(layout)
    }
}

/// Converts the raw recording `from` into the trace `to`.
///
/// # Errors
/// [`event::ErrorKind::AlreadyExists`] when `to` is there, [`event::ErrorKind::Corrupt`] when
/// `from` makes no sense; otherwise what the operating system says.
pub fn convert_raw(from: &Path, to: &Path) -> Result<RawSummary> {
    let facts = RawFacts::read(from)?;
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
        let file = File::open(&path)
            .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
        let mut converter = trace.cpu(Cpu(cpu.cpu), &groups)?;
        converter.covers(Instant::from_ns(facts.begin_ns))?;
        let mut pages = Pages {
            file,
            facts: cpu.clone(),
            page: vec![0; formats.layout.page_size_bytes()],
            begin_ns: None,
            before: 0,
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
    let cpus = all.into_iter().map(|pages| end(pages, &facts));
    let cpus = cpus.collect::<Result<Vec<_>>>()?;
    drop(trace);
    copy_rest(from, staged.path())?;
    Ok(RawSummary {
        path: staged.commit()?,
        cpus,
        is_cut: facts.end_ns.is_none(),
    })
}

/// The last losses of a CPU, and the end of its stream.
fn end(pages: Pages, facts: &RawFacts) -> Result<CpuTotals> {
    let Pages {
        mut converter,
        facts: cpu,
        ..
    } = pages;
    match facts.end_ns {
        Some(end_ns) => {
            converter.lost(cpu.lost)?;
            converter.covers(Instant::from_ns(end_ns))?;
        }
        // What its recorder did not write is missing.
        None => converter.lost(converter.discarded() + 1)?,
    }
    converter.finish()
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
