//! The one pass over a trace that makes an [`Index`].

use std::fs::File;
use std::sync::Arc;

use event::{Error, Result};
use kernel_state::{Follow, Kernel};
use trace::{Carry, Item, Trace};

use crate::bytes::{self, Spilled};
use crate::collect::Collect;
use crate::gather::{Teller, Told};
use crate::index::Index;
use crate::kept::Spill;
use crate::read::{Events, Reader};

/// Events between two looks at how far the walk is.
const LOOK_EVENTS: u64 = 1 << 16;

/// Makes an [`Index`] of a trace of one machine.
pub struct Builder<'t> {
    trace: &'t Trace,
}

/// How far a walk is.
pub struct Walked<'a> {
    /// The events so far.
    pub events: u64,
    /// The last of them, in nanoseconds of the wall clock.
    pub now_ns: i64,
    kernel: &'a Kernel,
    collect: &'a Collect,
}

impl Walked<'_> {
    /// What is known so far; costs a copy of it.
    pub fn index(&self) -> Index {
        self.collect.look(self.kernel)
    }
}

impl<'t> Builder<'t> {
    /// For this trace.
    pub fn new(trace: &'t Trace) -> Builder<'t> {
        Builder { trace }
    }

    /// Walks. `look` is told now and then how far the walk is, and ends it by a no. On two other
    /// threads events are decoded and tracks are put together meanwhile.
    ///
    /// # Errors
    /// As [`trace::Cursor::next`]; a trace of several machines, or of one that was
    /// recorded twice; no thread can be had.
    pub fn walk(&self, look: impl FnMut(&Walked<'_>) -> bool) -> Result<Index> {
        Ok(self.walk_with(Spill::default(), look)?.0)
    }

    /// The same, with what no longer changes in `file`, an empty one that can be read and written:
    /// it may be much larger than the memory that is left. What of it can be [opened](Index::open)
    /// later is written by [`Spilled::keep`]. Where the file cannot be written it stays in memory.
    ///
    /// # Errors
    /// As [`Builder::walk`].
    pub fn walk_into(
        &self,
        file: File,
        look: impl FnMut(&Walked<'_>) -> bool,
    ) -> Result<(Index, Spilled)> {
        let (index, spill) = self.walk_with(bytes::begun(file), look)?;
        Ok((index, Spilled(spill)))
    }

    fn walk_with(
        &self,
        spill: Spill,
        look: impl FnMut(&Walked<'_>) -> bool,
    ) -> Result<(Index, Spill)> {
        kernel_state::bind::one_kernel(self.trace)?;
        let (teller, heard) = Teller::new();
        let kernel = Kernel::new(self.trace, FOLLOWS);
        let collect = Collect::new(self.trace, teller);
        let carry = Carry::new(self.trace.classes(), |class| {
            kernel.binding().get(class.id).is_some() || collect.reads(class.id)
        });
        let no_thread = |error| Error::io("cannot start a thread of the walk", error);
        std::thread::scope(|scope| {
            let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
            let gather = named("rtscope-tracks")
                .spawn_scoped(scope, || heard.gather(spill))
                .map_err(no_thread)?;
            let (reader, events) = Reader::new(self.trace, &carry);
            let reading = named("rtscope-events")
                .spawn_scoped(scope, || reader.read())
                .map_err(no_thread)?;
            // Its end is the end of what the other two work for.
            let (head, open) = tell(&events, (kernel, collect), self.offset_ns(), look);
            drop(events);
            joined(reading.join())?;
            Ok(joined(gather.join()).finish(head, open))
        })
    }

    fn offset_ns(&self) -> i64 {
        self.trace.info().wall_offset.as_ns()
    }
}

/// What a thread made; it panics here where it did there.
pub(crate) fn joined<T>(made: std::thread::Result<T>) -> T {
    made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What the walk follows.
const FOLLOWS: Follow = Follow {
    stretches: true,
    queues: true,
    stale_names: false,
};

/// Tells all that comes; gives the index but for its tracks, and what is still open.
fn tell(
    events: &Events<'_>,
    (mut kernel, mut collect): (Kernel, Collect),
    offset_ns: i64,
    mut look: impl FnMut(&Walked<'_>) -> bool,
) -> (Index, Vec<Told>) {
    let binding = Arc::clone(kernel.binding());
    events.each_while(|item| {
        match item {
            Item::Event(event) => {
                let now_ns = event.time().as_ns().saturating_add(offset_ns);
                collect.lose(&mut kernel, now_ns);
                collect.count(now_ns);
                collect.beside(event, now_ns);
                let bound = binding.get(event.class());
                kernel.bound_event(bound, event, now_ns, &mut collect);
                if !collect.events().is_multiple_of(LOOK_EVENTS) {
                    return true;
                }
                collect.flush();
                return look(&Walked {
                    events: collect.events(),
                    now_ns,
                    kernel: &kernel,
                    collect: &collect,
                });
            }
            Item::Lost(lost) => collect.lost(&mut kernel, lost, offset_ns),
            Item::Damage(_) => collect.damaged(),
        }
        true
    });
    // What the model holds back until it knows more is told at its end.
    if let Some(end_ns) = collect.last_ns() {
        kernel.finish(end_ns, &mut collect);
    }
    collect.flush();
    collect.finish(&kernel)
}
