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
    /// By device and first sector: since when, and who asked for it where a thread serves that.
    pending: HashMap<(u64, u64), (i64, Option<i32>)>,
    /// From when to when, in the order of their ends.
    pub done: Vec<(i64, i64)>,
    /// Requests to devices that a thread serves: who asked, and from when to when.
    served: Vec<(i32, i64, i64)>,
}

fn is_served(dev: u64) -> bool {
    SERVED_BY_THREADS.contains(&(dev >> MINOR_BITS))
}

impl Builder {
    pub(super) fn request(&mut self, device: Device, now_ns: i64, event: &EventView<'_>) {
        let requests = &mut self.requests;
        match device {
            Device::BlockIssue {
                dev, sector, tid, ..
            } => {
                let at = (event.u64(dev), event.u64(sector));
                if requests.pending.len() < PENDING_MAX {
                    let by = is_served(at.0).then(|| event.i64(tid) as i32);
                    requests.pending.insert(at, (now_ns, by));
                }
            }
            Device::BlockComplete { dev, sector, .. } => {
                let at = (event.u64(dev), event.u64(sector));
                if let Some((since_ns, by)) = requests.pending.remove(&at) {
                    match by {
                        Some(tid) => requests.served.push((tid, since_ns, now_ns)),
                        None => requests.done.push((since_ns, now_ns)),
                    }
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
        for (_, (since_ns, by)) in self.pending.drain() {
            match by {
                Some(tid) => self.served.push((tid, since_ns, i64::MAX)),
                None => self.done.push((since_ns, i64::MAX)),
            }
        }
    }
}

impl Model {
    /// When in a span any device had a request; none where the trace has no events of that. Of a
    /// task that waits for a device that a thread serves nobody knows which of these are that
    /// thread's, nor when it waited for a CPU.
    pub fn devices_busy(&self, tid: i32, wait_ns: (i64, i64)) -> Option<Vec<(i64, i64)>> {
        let (begin_ns, end_ns) = wait_ns;
        if !self.families.block {
            return None;
        }
        let mut served = self.requests.served.iter();
        let is_its = |(by, since_ns, until_ns): &(i32, i64, i64)| {
            *by == tid && *since_ns < end_ns && *until_ns > begin_ns
        };
        if served.any(is_its) {
            return Some(Vec::new());
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
