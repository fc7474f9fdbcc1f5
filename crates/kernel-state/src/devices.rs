//! Disks, network interfaces and pages.

use std::collections::HashMap;
use std::sync::Arc;

use trace::EventView;

use super::process::FileKind;
use super::{Block, Change, Kernel, Sink};
use crate::bind::{Device, Operation};

/// Requests that never complete are forgotten beyond so many.
const PENDING_MAX: usize = 1 << 16;

/// All disks.
#[derive(Debug, Default)]
pub(super) struct Disks {
    names: HashMap<u64, Arc<str>>,
    /// By device and first sector.
    pending: HashMap<(u64, u64), Block>,
    /// A mapped device's request, by where it went: where it came from.
    remaps: Vec<Remap>,
}

#[derive(Clone, Copy, Debug)]
struct Remap {
    to: (u64, u64),
    from: (u64, u64),
}

impl Disks {
    /// The device that was asked for, when a request was mapped to another one.
    fn origin(&self, at: (u64, u64)) -> Option<usize> {
        self.remaps.iter().position(|remap| remap.to == at)
    }

    fn remap(&mut self, to: (u64, u64), from: (u64, u64)) {
        // Mapped once more: it still came from where it came from.
        if let Some(remap) = self.remaps.iter_mut().find(|remap| remap.to == from) {
            remap.to = to;
        } else if self.remaps.len() < PENDING_MAX {
            self.remaps.push(Remap { to, from });
        }
    }

    /// Names a disk, unless it has a name.
    pub fn name(&mut self, dev: u64, name: &str) {
        self.names.entry(dev).or_insert_with(|| name.into());
    }
}

impl Kernel {
    pub(super) fn device<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        device: Device,
        sink: &mut S,
    ) {
        match device {
            Device::BlockRemap {
                dev,
                sector,
                old_dev,
                old_sector,
            } => {
                let to = (event.u64(dev), event.u64(sector));
                self.disks
                    .remap(to, (event.u64(old_dev), event.u64(old_sector)));
            }
            Device::BlockMerge { dev, sector } => {
                let at = (event.u64(dev), event.u64(sector));
                self.disks.remaps.retain(|remap| remap.to != at);
            }
            Device::BlockIssue {
                dev,
                sector,
                sectors,
                tid,
                rwbs,
            } => {
                let at = (event.u64(dev), event.u64(sector));
                let sectors = event.u64(sectors);
                if sectors == 0 || self.disks.pending.len() >= PENDING_MAX {
                    return;
                }
                let origin = self.disks.origin(at);
                let dev = origin.map_or(at.0, |place| self.disks.remaps[place].from.0);
                let block = Block {
                    begin_ns: self.now_ns,
                    end_ns: self.now_ns,
                    tid: event.i64(tid) as i32,
                    sectors,
                    write: event.u64(rwbs) % 2 == 1,
                };
                self.disks.pending.insert((dev, at.1), block);
            }
            Device::BlockComplete {
                dev,
                sector,
                sectors,
            } => {
                let at = (event.u64(dev), event.u64(sector));
                self.block_done(at, event.u64(sectors), sink);
            }
            Device::Sent { name, len } => {
                let (interface, bytes) = (event.text(name), event.u64(len));
                sink.change(self, &Change::Sent { interface, bytes });
                self.packet_left(cpu);
            }
            Device::Received { name, len } => {
                let (interface, bytes) = (event.text(name), event.u64(len));
                sink.change(self, &Change::Received { interface, bytes });
            }
            Device::PageAlloc => self.page_taken(cpu, sink),
            Device::PageFree => self.page_given_back(cpu, sink),
        }
    }

    fn block_done<S: Sink>(&mut self, at: (u64, u64), sectors: u64, sink: &mut S) {
        if sectors == 0 {
            return;
        }
        let mut dev = at.0;
        if let Some(place) = self.disks.origin(at) {
            dev = self.disks.remaps.remove(place).from.0;
        }
        let pending = self.disks.pending.get(&(dev, at.1)).copied();
        // A request that completes in parts, or was not seen to begin, has no duration.
        let Some(mut block) = pending.filter(|block| block.sectors == sectors) else {
            return;
        };
        self.disks.pending.remove(&(dev, at.1));
        if !self.is_known_since(block.begin_ns) {
            return;
        }
        block.end_ns = self.now_ns;
        let change = Change::BlockDone {
            dev,
            disk: self.disks.names.get(&dev),
            block: &block,
        };
        sink.change(self, &change);
    }

    /// A packet left while a task wrote to a descriptor of unknown kind: perhaps through it.
    fn packet_left(&mut self, cpu: u32) {
        let Some(id) = self.current(cpu) else { return };
        let request = self
            .processes
            .get(id)
            .known_call()
            .and_then(|call| call.request.as_ref())
            .filter(|request| request.operation.is(Operation::Write));
        let Some(fd) = request.and_then(|request| request.to.or(request.fd)) else {
            return;
        };
        let owner = self.processes.owner(id);
        if let Some(file) = self.processes.get_mut(owner).files.get_mut(&fd)
            && file.kind == FileKind::Unknown
        {
            file.kind = FileKind::MaybeNet;
        }
    }

    fn page_taken<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        self.pages += 1;
        if let Some(process) = self.current(cpu) {
            sink.change(self, &Change::PageAllocated { process, cpu });
        }
    }

    /// Pages that were taken before the trace began are not counted when they come back.
    fn page_given_back<S: Sink>(&mut self, cpu: u32, sink: &mut S) {
        if self.pages == 0 {
            return;
        }
        self.pages -= 1;
        if let Some(process) = self.current(cpu) {
            sink.change(self, &Change::PageFreed { process, cpu });
        }
    }
}
