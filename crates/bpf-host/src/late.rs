//! The ring of late activations that the limits held back: nobody is woken for them.

use std::sync::{Arc, Mutex, PoisonError};

use event::Result;
use event::evidence::LateOne;
use libbpf_rs::{Object, RingBuffer, RingBufferBuilder};

use crate::object;

/// Those of a running watch, each in short.
pub struct LateRing {
    ring: RingBuffer<'static>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl LateRing {
    pub(crate) fn open(object: &Object) -> Result<LateRing> {
        let map = object::map(object, "late_ones")?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        let keep = move |bytes: &[u8]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(bytes.to_vec());
            0
        };
        let refused = |error| object::explain("read", &error);
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, keep).map_err(refused)?;
        let ring = builder.build().map_err(refused)?;
        Ok(LateRing { ring, received })
    }

    /// Those that came since the last call.
    ///
    /// # Errors
    /// When a record makes no sense, or the system refuses.
    pub fn take(&mut self) -> Result<Vec<LateOne>> {
        let consumed = self.ring.consume();
        consumed.map_err(|error| object::explain("read", &error))?;
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let records = std::mem::take(&mut *received);
        records
            .iter()
            .map(|bytes| abi::decode_late(bytes))
            .collect()
    }
}
