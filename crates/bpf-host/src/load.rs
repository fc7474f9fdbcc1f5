//! A short load of our own for measuring our own cost: pairs of threads that wake each other
//! through pipes, as hackbench does, and a thread that a 1 kHz timer wakes.

use std::io::{Read, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use event::{Error, Result};

const PAIRS: usize = 4;
const TIMER_PERIOD: Duration = Duration::from_millis(1);

/// The load runs while this lives.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start() -> Result<Self> {
        let mut load = Load {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..PAIRS {
            load.start_pair()
                .map_err(|cause| Error::io("cannot start the measuring load", cause))?;
        }
        let stop = Arc::clone(&load.stop);
        load.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(TIMER_PERIOD);
            }
        }));
        Ok(load)
    }

    /// Two threads, two pipes, one byte that goes round; a closed pipe ends both.
    fn start_pair(&mut self) -> std::io::Result<()> {
        let (mut here_reader, mut here_writer) = pipe()?;
        let (mut there_reader, mut there_writer) = pipe()?;
        let stop = Arc::clone(&self.stop);
        self.threads.push(std::thread::spawn(move || {
            let mut byte = [0];
            while !stop.load(Ordering::Relaxed)
                && there_writer.write_all(&byte).is_ok()
                && here_reader.read_exact(&mut byte).is_ok()
            {}
        }));
        self.threads.push(std::thread::spawn(move || {
            let mut byte = [0];
            while there_reader.read_exact(&mut byte).is_ok() && here_writer.write_all(&byte).is_ok()
            {
            }
        }));
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread of the load has nothing to say; that it is gone is all that counts.
            let _ = thread.join();
        }
    }
}
