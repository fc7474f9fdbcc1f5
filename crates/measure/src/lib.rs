//! Measurements: is this machine fit for real time?
//!
//! [`cyclic`] is the classic one: threads that sleep until an instant and note how late they run.
//! [`deadline`] asks whether tasks with deadlines keep them.
//! [`gaps`] looks for moments in which a thread that never sleeps did not run.
//! [`looping`] is npt's: a loop that only reads the counter, and what an event adds to it.
//! [`preempt`] asks whether the urgent one runs at once: when it is woken, when it waits for a
//! lock, when a message comes.
//! [`journal`] keeps a measurement of days on disk while it goes on.
//! [`queue`] asks how long a packet waits for its reader, [`steps`] whether single steps of traced
//! processes come back.
//! [`load`] keeps the machine busy meanwhile, [`tail`] says what a run of some length can show.
//! What makes a thread a real-time task, and what it sleeps on, is in the crate `host`.
//!
//! # Design constraints
//! - A measuring thread allocates nothing, takes no lock and makes no system call but its sleep;
//!   whoever reads its figures meanwhile does so without its help.
//! - Nothing is printed here.

pub mod counter;
pub mod cyclic;
pub mod deadline;
pub mod gaps;
pub mod histogram;
pub mod journal;
pub mod load;
pub mod looping;
mod nudge;
pub mod preempt;
pub mod queue;
pub mod steps;
pub mod tail;
mod worker;
