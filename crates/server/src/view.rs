//! A trace that is looked at, and what is known of it so far.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use event::{Result, TimeRange};
use serde_json::Value;
use timeline::{Builder, Index, Spilled, Walked};
use trace::{Item, OpenOptions, Root, Trace};

use crate::answers::Report;
use crate::cache::{self, Change, Files};
use crate::counted::Counted;
use crate::foreign::ForeignReport;
use crate::matches::Matches;

/// Pages look at what is known so far this often, at most.
const PUBLISH_EVERY: Duration = Duration::from_millis(400);
/// And no more of the time goes into it than one part in so many.
const PUBLISH_PART: u32 = 20;
/// Answers that took long are kept, so many.
const KEPT: usize = 16;

/// How to look at a trace.
#[derive(Clone, Debug, Default)]
pub struct ViewOptions {
    /// Where indexes are kept; none: nowhere.
    pub cache: Option<PathBuf>,
    /// Which build of the program: an index of another one is not believed.
    pub build: String,
    /// Reports of others that the page offers.
    pub foreign: Vec<ForeignReport>,
}

/// How far the index is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub done: bool,
    /// Of the trace's time, 0 to 1.
    pub share: f64,
    pub error: Option<String>,
    /// It was kept from another time.
    pub from_cache: bool,
}

/// Answers by their questions, the last ones that were asked.
pub(crate) struct Kept<T>(Mutex<VecDeque<(String, Arc<T>)>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept(Mutex::default())
    }
}

impl<T> Kept<T> {
    /// The answer to `question`, where somebody asked for it lately.
    pub fn known(&self, question: &str) -> Option<Arc<T>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(asked, _)| asked == question);
        found.map(|(_, answer)| Arc::clone(answer))
    }

    /// The answer to `question`, made when nobody asked for it lately.
    pub fn get(&self, question: &str, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        if let Some(answer) = self.known(question) {
            return Ok(answer);
        }
        let answer = Arc::new(make()?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((question.to_owned(), Arc::clone(&answer)));
        kept.truncate(KEPT);
        Ok(answer)
    }
}

/// A trace that is looked at.
pub struct View {
    pub(crate) trace: Trace,
    pub(crate) name: String,
    roots: Vec<PathBuf>,
    pub(crate) options: ViewOptions,
    files: Files,
    /// How often the trace was read before.
    pub(crate) generation: u64,
    known: RwLock<(Arc<Index>, Progress)>,
    pub(crate) matches: Kept<Matches>,
    pub(crate) diagnoses: Kept<Value>,
    pub(crate) reports: Kept<Report>,
    pub(crate) counters: Kept<Counted>,
}

impl View {
    /// Opens traces as one. Nothing is read before [`View::build`].
    ///
    /// # Errors
    /// As [`Trace::open_all`]; traces of several machines.
    pub fn open(roots: &[PathBuf], options: ViewOptions) -> Result<View> {
        let files = Files::below(roots);
        let opened: Vec<Root> = roots.iter().map(Root::from).collect();
        let trace = Trace::open_all(&opened, &OpenOptions::default())?;
        let name = roots.iter().map(|root| root.display().to_string());
        let name = name.collect::<Vec<_>>().join(" ");
        let mut view = View::of(trace, name);
        view.roots = roots.to_vec();
        (view.options, view.files) = (options, files);
        Ok(view)
    }

    /// A trace that is open already.
    pub fn of(trace: Trace, name: String) -> View {
        View {
            trace,
            name,
            roots: Vec::new(),
            options: ViewOptions::default(),
            files: Files::default(),
            generation: 0,
            known: RwLock::default(),
            matches: Kept::default(),
            diagnoses: Kept::default(),
            reports: Kept::default(),
            counters: Kept::default(),
        }
    }

    /// Makes the index, or takes the one that was kept; what it has so far can be looked at
    /// meanwhile. Ends early when `stop` is raised.
    pub fn build(&self, stop: &AtomicBool) {
        let fingerprint = self.files.fingerprint();
        let key = [self.options.build.as_bytes(), b"\0", &fingerprint].concat();
        let folder = self.options.cache.as_ref();
        let place = folder.map(|folder| cache::place(folder, &self.roots));
        if let Some(index) = place.as_ref().and_then(|place| cache::read(place, &key)) {
            self.publish(index, 1.0, |progress| {
                (progress.done, progress.from_cache) = (true, true);
            });
            return;
        }
        let kept = place.and_then(|place| cache::Partial::new(&place));
        let (partial, file) = kept.unzip();
        match self.walk(file, stop) {
            Ok((index, spilled)) => {
                let whole = !stop.load(Ordering::Relaxed) && self.change() == Change::None;
                let spilled = spilled.filter(|_| whole);
                let written = spilled.is_some_and(|spilled| spilled.keep(&index, &key).is_ok());
                if let Some(partial) = partial.filter(|_| written) {
                    partial.finish();
                }
                self.publish(index, 1.0, |progress| progress.done = true);
            }
            Err(error) => {
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                known.1.error = Some(format!("{error:#}"));
            }
        }
    }

    /// Walks; what outgrows memory goes into `file`.
    fn walk(&self, file: Option<File>, stop: &AtomicBool) -> Result<(Index, Option<Spilled>)> {
        let range = self.trace.range().unwrap_or(TimeRange::ALL);
        let begin_ns = self.trace.wall_ns(range.begin);
        let whole_ns = range.duration().as_ns().max(1) as f64;
        let (mut published, mut cost) = (Instant::now(), Duration::ZERO);
        let look = |walked: &Walked<'_>| {
            if published.elapsed() >= PUBLISH_EVERY.max(cost * PUBLISH_PART) {
                let begun = Instant::now();
                let share = walked.now_ns.saturating_sub(begin_ns) as f64 / whole_ns;
                self.publish(walked.index(), share.clamp(0.0, 1.0), |_| {});
                (published, cost) = (Instant::now(), begun.elapsed());
            }
            !stop.load(Ordering::Relaxed)
        };
        let builder = Builder::new(&self.trace);
        match file {
            Some(file) => builder
                .walk_into(file, look)
                .map(|(index, spilled)| (index, Some(spilled))),
            None => builder.walk(look).map(|index| (index, None)),
        }
    }

    fn publish(&self, index: Index, share: f64, fix: impl FnOnce(&mut Progress)) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.0 = Arc::new(index);
        known.1.share = share;
        fix(&mut known.1);
    }

    /// What is known so far.
    pub(crate) fn known(&self) -> (Arc<Index>, Progress) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&known.0), known.1.clone())
    }

    pub(crate) fn index(&self) -> Arc<Index> {
        self.known().0
    }

    /// The first event, in nanoseconds of the wall clock, however far the index is.
    pub(crate) fn first_ns(&self) -> Result<i64> {
        let mut cursor = self.trace.cursor(TimeRange::ALL);
        while let Some(item) = cursor.next()? {
            if let Item::Event(event) = item {
                return Ok(self.trace.wall_ns(event.time()));
            }
        }
        Ok(0)
    }

    /// How the files differ from those that were opened.
    pub(crate) fn change(&self) -> Change {
        self.files.change_to(&Files::below(&self.roots))
    }

    /// The same trace as it is now. Nothing is read before [`View::build`].
    ///
    /// # Errors
    /// As [`View::open`].
    pub(crate) fn again(&self) -> Result<View> {
        let mut view = View::open(&self.roots, self.options.clone())?;
        view.generation = self.generation + 1;
        Ok(view)
    }
}
