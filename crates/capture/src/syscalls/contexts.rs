//! Contexts of system calls with their contents: what differs at the entry or the exit of a call
//! from the last one on its CPU, read by programs of their own at the same two tracepoints.

use abi::syscalls::RawSyscall;
use bpf_host::{ContextConfig, ContextPlace, ContextRing, ContextWatch};
use event::{Cpu, EventClass, Result, Scope};

use crate::kernel_ctf::{KernelContexts, Moments};

/// Where calls begin and end, whichever they are.
const TRACEPOINTS: [&str; 2] = ["sys_enter", "sys_exit"];

/// Those of one recording.
#[derive(Debug)]
pub(super) struct CallContexts {
    contexts: KernelContexts,
    watch: Option<ContextWatch>,
    rings: Vec<(Cpu, ContextRing, Moments)>,
    /// Calls of which nothing could be read.
    pub unread: u64,
}

impl CallContexts {
    /// Starts the programs, where more is asked for than a call's own record has. To be called
    /// before those that record calls start: these read before those write.
    ///
    /// # Errors
    /// When this kernel or these privileges do not allow it.
    pub fn start(asked: &KernelContexts, cpus: &[Cpu], buffer_bytes: usize) -> Result<Self> {
        let contexts = asked.of_calls();
        let place = |name: &str| ContextPlace {
            name: name.to_owned(),
            in_interrupt: false,
        };
        let watch = contexts.asked_of_calls().map(|(wanted, counters)| {
            ContextWatch::start(&ContextConfig {
                wanted,
                counters: counters.to_vec(),
                tracepoints: TRACEPOINTS.map(place).to_vec(),
                buffer_bytes_per_cpu: buffer_bytes,
                cpus: cpus.to_vec(),
            })
        });
        let mut watch = watch.transpose()?;
        let ring = |cpu: &Cpu| Some((*cpu, watch.as_mut()?.ring(*cpu)?, Moments::default()));
        Ok(CallContexts {
            rings: cpus.iter().filter_map(ring).collect(),
            contexts,
            watch,
            unread: 0,
        })
    }

    /// Adds their fields to those of `classes`.
    pub fn add_to(&self, classes: &mut [EventClass]) {
        for class in classes {
            let own = class.fields.iter().cloned();
            class.fields = own
                .chain(self.contexts.fields(Scope::EventContext))
                .collect();
        }
    }

    /// Takes what was read. To be called behind the calls themselves: what belongs to those was
    /// read before them.
    pub fn take(&mut self) -> Result<()> {
        for (_, ring, moments) in &mut self.rings {
            let record_bytes = ring.record_bytes();
            ring.take(|records, is_full| moments.add(records, record_bytes, is_full))?;
        }
        Ok(())
    }

    /// Appends the values for a call on `cpu`.
    pub fn write(&mut self, cpu: Cpu, record: &RawSyscall, out: &mut Vec<u8>) -> Result<()> {
        let CallContexts {
            contexts,
            watch,
            rings,
            unread,
        } = self;
        let of_cpu = rings.iter_mut().find(|(own, ..)| *own == cpu);
        let moment = match of_cpu {
            Some((_, _, moments)) => moments.at(record.time_ns, record.tid)?,
            None => None,
        };
        *unread += u64::from(watch.is_some() && moment.is_none());
        contexts.write_of_call((record.tid, cpu), moment, out);
        Ok(())
    }
}
