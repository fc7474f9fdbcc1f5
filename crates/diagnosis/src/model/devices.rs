//! When devices had requests: a task that waits for one is not made late by a device that nobody
//! asks for anything, but by who is to ask it, or who holds the request back.

use std::collections::HashMap;

use kernel_state::bind::Device;
use trace::EventView;

use super::Model;
use super::build::Builder;

/// Requests that never complete are forgotten beyond so many.
const PENDING_MAX: usize = 1 << 16;
/// One request behind another: who waits for both waits for the device.
const GAP_NS_MAX: i64 = 300_000;
/// Block devices that are served by a thread, which may have to wait for a CPU: RAM disks, loops
/// and those of other hosts (Documentation/admin-guide/devices.txt).
const SERVED_BY_THREADS: [u64; 3] = [1, 7, 43];
/// The kernel's own form of a device's number has its minor in so many bits.
const MINOR_BITS: u32 = 20;

/// The requests of all devices.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// By device and first sector: since when.
    pending: HashMap<(u64, u64), i64>,
    /// From when to when, in the order of their ends.
    pub done: Vec<(i64, i64)>,
}

impl Builder {
    pub(super) fn request(&mut self, device: Device, now_ns: i64, event: &EventView<'_>) {
        let requests = &mut self.requests;
        match device {
            Device::BlockIssue { dev, sector, .. } => {
                let at = (event.u64(dev), event.u64(sector));
                let is_device = !SERVED_BY_THREADS.contains(&(at.0 >> MINOR_BITS));
                if is_device && requests.pending.len() < PENDING_MAX {
                    requests.pending.insert(at, now_ns);
                }
            }
            Device::BlockComplete { dev, sector, .. } => {
                let at = (event.u64(dev), event.u64(sector));
                if let Some(since_ns) = requests.pending.remove(&at) {
                    requests.done.push((since_ns, now_ns));
                    self.logged += 1;
                }
            }
            _ => {}
        }
    }
}

impl Requests {
    /// Those that are not done yet never end.
    pub fn finish(&mut self) {
        let open = self.pending.drain().map(|(_, since_ns)| since_ns);
        self.done.extend(open.map(|since_ns| (since_ns, i64::MAX)));
    }
}

impl Model {
    /// When in a span any device had a request; none where the trace has no events of that.
    pub fn devices_busy(&self, (begin_ns, end_ns): (i64, i64)) -> Option<Vec<(i64, i64)>> {
        if !self.families.block {
            return None;
        }
        let done = &self.requests.done;
        let first = done.partition_point(|(_, until_ns)| *until_ns <= begin_ns);
        let mut within = done[first..].to_vec();
        within.retain(|(since_ns, _)| *since_ns < end_ns);
        within.sort_unstable();
        let mut busy: Vec<(i64, i64)> = Vec::new();
        for (since_ns, until_ns) in within {
            let (since_ns, until_ns) = (since_ns.max(begin_ns), until_ns.min(end_ns));
            match busy.last_mut() {
                Some(last) if since_ns - last.1 <= GAP_NS_MAX => last.1 = last.1.max(until_ns),
                _ => busy.push((since_ns, until_ns)),
            }
        }
        // It begins and ends on other CPUs, a moment before and behind that.
        if let Some(first) = busy
            .first_mut()
            .filter(|span| span.0 - begin_ns <= GAP_NS_MAX)
        {
            first.0 = begin_ns;
        }
        if let Some(last) = busy.last_mut().filter(|span| end_ns - span.1 <= GAP_NS_MAX) {
            last.1 = end_ns;
        }
        Some(busy)
    }
}
