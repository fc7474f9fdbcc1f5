//! A thread that measures: started, and only handed out once it is what it is to be.

use std::sync::mpsc;
use std::thread::JoinHandle;

use event::{Cpu, Error, Result, Tid};

use host::task::{self, Policy};

use crate::nudge;

/// Starts a thread called `name` that does `work`, and waits until it has its CPU and its
/// priority. Its result is none only when it did not come so far.
///
/// # Errors
/// What kept it from its CPU or its priority; it has ended then.
pub(crate) fn start<T: Send + 'static>(
    name: String,
    cpu: Option<Cpu>,
    policy: Policy,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(Tid, JoinHandle<Option<T>>)> {
    let (ready, is_ready) = mpsc::channel();
    let body = move || {
        let prepared = prepare(cpu, policy);
        let failed = prepared.is_err();
        if ready.send(prepared).is_err() || failed {
            return None;
        }
        Some(work())
    };
    let thread = std::thread::Builder::new()
        .name(name)
        .spawn(body)
        .map_err(|error| Error::io("cannot start a measuring thread", error))?;
    let gone = |_| {
        Err(Error::io(
            "a measuring thread panicked",
            std::io::Error::other("start"),
        ))
    };
    match is_ready.recv().unwrap_or_else(gone) {
        Ok(tid) => Ok((tid, thread)),
        Err(error) => {
            thread.join().ok();
            Err(error)
        }
    }
}

/// Makes the calling thread what it is to be.
pub(crate) fn prepare(cpu: Option<Cpu>, policy: Policy) -> Result<Tid> {
    // Signals are for the thread that reads.
    nudge::block_other_signals();
    if let Some(cpu) = cpu {
        task::stay_on(cpu)?;
    }
    task::schedule(policy)?;
    Ok(Tid(rustix::thread::gettid().as_raw_nonzero().get()))
}
