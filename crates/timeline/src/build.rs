//! The one pass over a trace that makes an [`Index`].

use event::{Error, Result, TimeRange};
use kernel_state::{Follow, Kernel};
use trace::{Item, Trace};

use crate::collect::Collect;
use crate::gather::{Teller, Told};
use crate::index::Index;

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

    /// Walks. `look` is told now and then how far the walk is, and ends it by a no. The tracks are
    /// put together on another thread meanwhile.
    ///
    /// # Errors
    /// As [`trace::Cursor::next`]; a trace of several machines, or of one that was
    /// recorded twice; no thread can be had.
    pub fn walk(&self, look: impl FnMut(&Walked<'_>) -> bool) -> Result<Index> {
        kernel_state::bind::one_kernel(self.trace)?;
        let (teller, heard) = Teller::new();
        std::thread::scope(|scope| {
            let gather = std::thread::Builder::new()
                .name("rtscope-tracks".to_owned())
                .spawn_scoped(scope, || heard.gather())
                .map_err(|error| Error::io("cannot start the thread of the tracks", error))?;
            // Its end is the end of what the other one hears.
            let (head, open) = self.tell(teller, look)?;
            match gather.join() {
                Ok(gathered) => Ok(gathered.finish(head, open)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Tells all of the trace; gives the index but for its tracks, and what is still open.
    fn tell(
        &self,
        teller: Teller,
        mut look: impl FnMut(&Walked<'_>) -> bool,
    ) -> Result<(Index, Vec<Told>)> {
        let follows = Follow {
            stretches: true,
            queues: true,
            stale_names: false,
        };
        let mut kernel = Kernel::new(self.trace, follows);
        let mut collect = Collect::new(self.trace, teller);
        let offset_ns = self.trace.info().wall_offset.as_ns();
        let mut cursor = self.trace.cursor(TimeRange::ALL);
        cursor.each_while(|item| {
            match item {
                Item::Event(event) => {
                    let now_ns = event.time().as_ns().saturating_add(offset_ns);
                    collect.lose(&mut kernel, now_ns);
                    collect.count(now_ns);
                    collect.beside(event, now_ns);
                    kernel.event(event, now_ns, &mut collect);
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
        })?;
        // What the model holds back until it knows more is told at its end.
        if let Some(end_ns) = collect.last_ns() {
            kernel.finish(end_ns, &mut collect);
        }
        collect.flush();
        Ok(collect.finish(&kernel))
    }
}
