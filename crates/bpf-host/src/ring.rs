//! The ring that hits come through: a handle of its own, for a thread that does nothing else.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use event::evidence::{Hit, StepKind};
use event::{Duration, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, RingBuffer, RingBufferBuilder};

use crate::{kernel, object};

/// The hits of a running watch. Silent for ever once the watch is dropped.
pub struct HitRing {
    ring: RingBuffer<'static>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    threshold: Duration,
    floor: MapHandle,
}

// SAFETY: libbpf's ring buffer is bound to no thread, and its only callback owns an Arc<Mutex>.
unsafe impl Send for HitRing {}

impl HitRing {
    pub(crate) fn open(object: &Object, threshold: Duration) -> Result<HitRing> {
        let map = object::map(object, "hits")?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        let keep = move |bytes: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(bytes.to_vec());
            0
        };
        let refused = |error| object::explain("read", &error);
        let floor = object::map(object, "watch_floor")?;
        let floor = MapHandle::try_from(&floor).map_err(refused)?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, keep).map_err(refused)?;
        // It only wakes us, for hits that nobody was woken for.
        let bell = object::map(object, "bell")?;
        builder.add(&bell, |_: &[u8]| 0).map_err(refused)?;
        let ring = builder.build().map_err(refused)?;
        Ok(HitRing {
            ring,
            received,
            threshold,
            floor,
        })
    }

    /// From now on only latencies that are longer come through; the others are counted.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn raise_floor(&self, floor: Duration) -> Result<()> {
        let (key, value) = (0u32.to_ne_bytes(), floor.as_ns_unsigned().to_ne_bytes());
        let raised = self.floor.update(&key, &value, MapFlags::ANY);
        raised.map_err(|error| object::explain("raise the threshold of", &error))
    }

    /// Readable while the ring holds hits: for a caller that waits for something else too.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's own and lives as long as the ring.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// The hits that are in the ring now, without waiting.
    ///
    /// # Errors
    /// When a record makes no sense, or the system refuses.
    pub fn take(&mut self) -> Result<Vec<Hit>> {
        self.wait(std::time::Duration::ZERO)
    }

    /// Blocks in epoll until a hit comes or `timeout` has passed; returns the hits since the last
    /// call. A signal ends the wait early, without an error.
    ///
    /// # Errors
    /// When a record makes no sense, or the system refuses to wait.
    pub fn wait(&mut self, timeout: std::time::Duration) -> Result<Vec<Hit>> {
        if let Err(error) = self.ring.poll(timeout)
            && error.kind() != libbpf_rs::ErrorKind::Interrupted
        {
            return Err(object::explain("wait for", &error));
        }
        // The poll takes only what somebody was woken for.
        let consumed = self.ring.consume();
        consumed.map_err(|error| object::explain("read", &error))?;
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *received)
            .iter()
            .map(|bytes| self.decode(bytes))
            .collect()
    }

    /// The kernel sends an interrupt's number; its name is known here.
    fn decode(&self, bytes: &[u8]) -> Result<Hit> {
        let mut hit = abi::decode_hit(bytes, self.threshold)?;
        for step in hit
            .steps
            .iter_mut()
            .filter(|step| step.kind == StepKind::Hardirq)
        {
            step.comm = kernel::irq_name(step.id);
        }
        Ok(hit)
    }
}
