//! What the kernel's command line needs to record a boot.

use std::collections::{BTreeMap, BTreeSet};

use event::{Error, ErrorKind, Result};
use ftrace::{BOOT_INSTANCE, EventName};

use crate::traced_functions::FunctionPatterns;

/// The kernel's command line has 2048 bytes on x86, and others want some of them.
const WORDS_BYTES_MAX: usize = 1800;
/// What the memory that is reserved is called.
const RESERVED: &str = "rtscope";

/// Where the ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootMemory {
    /// In the kernel's memory: it is gone with the boot.
    Plain,
    /// In memory that is reserved, and found again by the next boot.
    Reserved,
}

/// A boot that is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct BootWords<'a> {
    /// The events.
    pub events: &'a [EventName],
    /// All events of this kernel.
    pub available: &'a [EventName],
    /// Functions of the kernel.
    pub functions: &'a FunctionPatterns,
    /// The size of each CPU's ring.
    pub buffer_bytes_per_cpu: u64,
    /// How many CPUs the machine may have.
    pub cpus: usize,
    /// Where the ring lies.
    pub memory: BootMemory,
}

impl BootWords<'_> {
    /// The words, with blanks between.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when they are too long for the kernel.
    pub fn text(&self) -> Result<String> {
        let kib = self.buffer_bytes_per_cpu.div_ceil(1024);
        let events = short(self.events, self.available).join(",");
        let instance = match self.memory {
            BootMemory::Plain => format!("trace_buf_size={kib}K trace_instance={BOOT_INSTANCE}"),
            BootMemory::Reserved => {
                // All CPUs share it.
                let all_kib = kib.saturating_mul(self.cpus.max(1) as u64);
                format!(
                    "reserve_mem={all_kib}K:4096:{RESERVED} \
                     trace_instance={BOOT_INSTANCE}@{RESERVED}"
                )
            }
        };
        let mut text = format!("{instance},{events}");
        if !self.functions.is_empty() {
            let functions = self.functions.words().join(",");
            let size = match self.memory {
                BootMemory::Plain => String::new(),
                BootMemory::Reserved => format!(" trace_buf_size={kib}K"),
            };
            // No instance has a tracer from the command line: the kernel's own buffer takes them.
            text += &format!(
                "{size} ftrace=function_graph ftrace_filter={functions} \
                 trace_event=sched:sched_switch trace_clock=mono"
            );
        }
        if text.len() > WORDS_BYTES_MAX {
            let what = "too many events for the kernel's command line";
            return Err(Error::new(ErrorKind::InvalidInput, what)
                .found(format!("{} bytes, at most {WORDS_BYTES_MAX}", text.len()))
                .fix("name whole sets or fewer events, as in --events sched,irq"));
        }
        Ok(text)
    }
}

/// The events in the kernel's words, as few as there can be: a system of which all are wanted, a
/// name without its system where only one event has it.
fn short(events: &[EventName], available: &[EventName]) -> Vec<String> {
    let mut systems: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in available {
        systems
            .entry(&event.system)
            .or_default()
            .insert(&event.name);
    }
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        wanted.entry(&event.system).or_default().insert(&event.name);
    }
    let is_one_alone = |name: &str| {
        let with_it = systems.values().filter(|names| names.contains(name));
        with_it.count() == 1 && !systems.contains_key(name)
    };
    let mut words = Vec::new();
    for (system, names) in wanted {
        if names.len() > 1 && systems.get(system) == Some(&names) {
            words.push(format!("{system}:*"));
            continue;
        }
        words.extend(names.into_iter().map(|name| match is_one_alone(name) {
            true => name.to_owned(),
            false => format!("{system}:{name}"),
        }));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &str) -> Vec<EventName> {
        let words = words.split_ascii_whitespace();
        words.filter_map(EventName::parse).collect()
    }

    const AVAILABLE: &str = "irq:irq_handler_entry irq:irq_handler_exit sched:sched_switch \
                             sched:sched_waking a:twice b:twice c:sched d:lone";

    fn words(events: &str, functions: &[&str], memory: BootMemory) -> Result<String> {
        let (events, available) = (names(events), names(AVAILABLE));
        let functions = FunctionPatterns::new(functions)?;
        let words = BootWords {
            events: &events,
            available: &available,
            functions: &functions,
            buffer_bytes_per_cpu: 4 << 20,
            cpus: 8,
            memory,
        };
        words.text()
    }

    #[test]
    fn events_are_said_as_shortly_as_the_kernel_understands_them() {
        let check = |events: &str, expect: &str| {
            let found = words(events, &[], BootMemory::Plain).expect("short");
            let expect = format!("trace_buf_size=4096K trace_instance=rtscope_boot,{expect}");
            assert_eq!(found, expect);
        };
        check("sched:sched_switch", "sched_switch");
        check("sched:sched_switch sched:sched_waking", "sched:*");
        check("a:twice d:lone", "a:twice,lone");
        // A system of that name would be meant too.
        check("c:sched", "c:sched");
    }

    #[test]
    fn reserved_memory_is_for_all_cpus_and_functions_go_to_the_kernels_own_buffer() {
        let found = words("d:lone", &[], BootMemory::Reserved).expect("short");
        let expect = "reserve_mem=32768K:4096:rtscope trace_instance=rtscope_boot@rtscope,lone";
        assert_eq!(found, expect);
        let found = words("d:lone", &["vfs_*", "do_exit"], BootMemory::Plain).expect("short");
        assert!(found.ends_with(
            ",lone ftrace=function_graph ftrace_filter=vfs_*,do_exit \
             trace_event=sched:sched_switch trace_clock=mono"
        ));
    }

    #[test]
    fn what_the_kernel_would_cut_off_is_refused() {
        let many: Vec<String> = (0..200).map(|n| format!("a:event_{n}")).collect();
        let error = words(&many.join(" "), &[], BootMemory::Plain).expect_err("too long");
        assert!(error.value_found().is_some() && error.fixed_by().is_some());
    }
}
