//! What each event class is to the model, with the fields to read, in every generation of names.

use std::collections::HashMap;

use event::{EventClass, FieldId, FieldType, Scope};
use trace::Trace;

use super::syscalls::{ConnectFields, FileCall};

/// An event class that the model understands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Switch {
        prev_tid: FieldId,
        prev_comm: FieldId,
        prev_prio: FieldId,
        next_tid: FieldId,
        next_comm: FieldId,
        next_prio: FieldId,
    },
    Wake {
        tid: FieldId,
        prio: FieldId,
        target: FieldId,
        /// To add to the priority to be on LTTng's scale.
        offset: i32,
    },
    Migrate {
        tid: FieldId,
        prio: FieldId,
        comm: FieldId,
    },
    Fork {
        parent_pid: FieldId,
        parent_comm: FieldId,
        child_tid: FieldId,
        child_pid: FieldId,
        child_comm: FieldId,
    },
    Exec {
        tid: FieldId,
        procname: Option<FieldId>,
    },
    PiSetprio {
        tid: FieldId,
        prio: FieldId,
    },
    IrqEntry {
        irq: FieldId,
        name: Option<FieldId>,
    },
    IrqExit {
        irq: FieldId,
    },
    SoftirqRaise {
        vec: FieldId,
    },
    SoftirqEntry {
        vec: FieldId,
    },
    SoftirqExit {
        vec: FieldId,
    },
    CallEntry {
        call: u32,
        file_call: Option<FileCall>,
        connect: Option<ConnectFields>,
        /// The thread group, from the stream's context.
        pid: Option<FieldId>,
    },
    CallExit {
        /// With whether it is signed.
        ret: Option<(FieldId, bool)>,
    },
    BlockRemap {
        dev: FieldId,
        sector: FieldId,
        old_dev: FieldId,
        old_sector: FieldId,
    },
    BlockMerge {
        dev: FieldId,
        sector: FieldId,
    },
    BlockIssue {
        dev: FieldId,
        sector: FieldId,
        sectors: FieldId,
        tid: FieldId,
        rwbs: FieldId,
    },
    BlockComplete {
        dev: FieldId,
        sector: FieldId,
        sectors: FieldId,
    },
    Sent {
        name: FieldId,
        len: FieldId,
    },
    Received {
        name: FieldId,
        len: FieldId,
    },
    PageAlloc,
    PageFree,
    DumpProcess {
        tid: FieldId,
        pid: FieldId,
        name: FieldId,
        prio: Option<FieldId>,
        table: Option<FieldId>,
    },
    DumpFile {
        pid: Option<FieldId>,
        table: Option<FieldId>,
        fd: FieldId,
        filename: FieldId,
        flags: FieldId,
    },
    DumpDisk {
        dev: FieldId,
        name: FieldId,
    },
}

/// A class, and where its events say their CPU when it is not their stream's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub known: Known,
    pub cpu: Option<FieldId>,
}

/// All classes of a trace.
#[derive(Debug, Default)]
pub(super) struct Binding {
    by_class: Vec<Option<Bound>>,
    /// System calls by their index.
    pub calls: Vec<String>,
}

impl Binding {
    pub fn new(trace: &Trace) -> Binding {
        let mut calls = Calls::default();
        let by_class = trace.classes().iter().map(|class| {
            let generation = Generation::of(trace, class);
            let known = known(class, generation, &mut calls)?;
            // A stream says its CPU once for all its events.
            let in_event = |field: &FieldId| {
                let scope = class.fields[usize::from(field.0)].scope;
                scope != Scope::PacketContext
            };
            let cpu = class.field("cpu_id").filter(in_event);
            Some(Bound { known, cpu })
        });
        Binding {
            by_class: by_class.collect(),
            calls: calls.names,
        }
    }

    #[inline]
    pub fn get(&self, class: event::ClassId) -> Option<Bound> {
        self.by_class.get(class.0 as usize).copied().flatten()
    }
}

/// Names of system calls, each once.
#[derive(Debug, Default)]
struct Calls {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
}

impl Calls {
    fn index(&mut self, name: &str) -> u32 {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), index);
        index
    }
}

/// What changed between the tracers' versions and does not show in the names.
#[derive(Clone, Copy, Debug)]
struct Generation {
    /// lttng-modules before 2.7.1 wrote the kernel's own priorities in wake-ups.
    kernel_prio_in_wakeups: bool,
}

impl Generation {
    fn of(trace: &Trace, class: &EventClass) -> Generation {
        let environment = trace.environment_of(class.id);
        let number = |key: &str| environment.get(key)?.parse::<u32>().ok();
        let version = number("tracer_major").map(|major| {
            let minor = number("tracer_minor").unwrap_or(0);
            (major, minor, number("tracer_patchlevel").unwrap_or(0))
        });
        let by_lttng = environment
            .get("tracer_name")
            .is_none_or(|name| name.starts_with("lttng"));
        Generation {
            kernel_prio_in_wakeups: by_lttng && version.is_some_and(|v| v < (2, 7, 1)),
        }
    }
}

/// `MAX_RT_PRIO` of the kernel: LTTng's priorities are the kernel's less this.
const MAX_RT_PRIO: i32 = 100;

fn known(class: &EventClass, generation: Generation, calls: &mut Calls) -> Option<Known> {
    let name = class.name.as_str();
    if let Some(call) = name
        .strip_prefix("syscall_entry_")
        .or_else(|| name.strip_prefix("sys_"))
    {
        return Some(call_entry(call, class, calls));
    }
    if name.starts_with("exit_syscall") || name.starts_with("syscall_exit_") {
        let signed = |ret: FieldId| match &class.fields[usize::from(ret.0)].ty {
            FieldType::Integer(integer) => (ret, integer.signed),
            _ => (ret, true),
        };
        return Some(Known::CallExit {
            ret: class.field("ret").map(signed),
        });
    }
    scheduling(class, generation)
        .or_else(|| interrupts(class))
        .or_else(|| devices(class))
        .or_else(|| state_dump(class))
}

fn call_entry(call: &str, class: &EventClass, calls: &mut Calls) -> Known {
    let field = |field: &str| class.field(field);
    let connect = || {
        Some(ConnectFields {
            fd: field("fd")?,
            family: field("family")?,
            address: field("v4addr")?,
            port: field("dport")?,
        })
    };
    let in_payload = class.field_in(Scope::Payload, "pid").is_some();
    Known::CallEntry {
        call: calls.index(call),
        file_call: FileCall::bind(call, class),
        connect: (call == "connect").then(connect).flatten(),
        pid: class
            .field_in(Scope::StreamContext, "pid")
            .filter(|_| !in_payload),
    }
}

fn scheduling(class: &EventClass, generation: Generation) -> Option<Known> {
    let field = |field: &str| class.field(field);
    let tid =
        |prefix: &str| field(&format!("{prefix}tid")).or_else(|| field(&format!("{prefix}pid")));
    Some(match class.name.as_str() {
        "sched_switch" => Known::Switch {
            prev_tid: tid("prev_")?,
            prev_comm: field("prev_comm")?,
            prev_prio: field("prev_prio")?,
            next_tid: tid("next_")?,
            next_comm: field("next_comm")?,
            next_prio: field("next_prio")?,
        },
        "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => Known::Wake {
            tid: tid("")?,
            prio: field("prio")?,
            target: field("target_cpu")?,
            offset: match generation.kernel_prio_in_wakeups {
                true => -MAX_RT_PRIO,
                false => 0,
            },
        },
        "sched_migrate_task" => Known::Migrate {
            tid: tid("")?,
            prio: field("prio")?,
            comm: field("comm")?,
        },
        "sched_process_fork" => Known::Fork {
            parent_pid: field("parent_pid")?,
            parent_comm: field("parent_comm")?,
            child_tid: tid("child_")?,
            child_pid: field("child_pid")?,
            child_comm: field("child_comm")?,
        },
        "sched_process_exec" => Known::Exec {
            tid: tid("")?,
            procname: field("procname"),
        },
        "sched_pi_setprio" => Known::PiSetprio {
            tid: tid("")?,
            prio: field("newprio")?,
        },
        _ => return None,
    })
}

fn interrupts(class: &EventClass) -> Option<Known> {
    let field = |field: &str| class.field(field);
    Some(match class.name.as_str() {
        "irq_handler_entry" => Known::IrqEntry {
            irq: field("irq")?,
            name: field("name"),
        },
        "irq_handler_exit" => Known::IrqExit { irq: field("irq")? },
        "irq_softirq_raise" | "softirq_raise" => Known::SoftirqRaise { vec: field("vec")? },
        "irq_softirq_entry" | "softirq_entry" => Known::SoftirqEntry { vec: field("vec")? },
        "irq_softirq_exit" | "softirq_exit" => Known::SoftirqExit { vec: field("vec")? },
        _ => return None,
    })
}

fn devices(class: &EventClass) -> Option<Known> {
    let field = |field: &str| class.field(field);
    Some(match class.name.as_str() {
        "block_bio_remap" => Known::BlockRemap {
            dev: field("dev")?,
            sector: field("sector")?,
            old_dev: field("old_dev")?,
            old_sector: field("old_sector")?,
        },
        "block_bio_backmerge" => Known::BlockMerge {
            dev: field("dev")?,
            sector: field("sector")?,
        },
        "block_rq_issue" => Known::BlockIssue {
            dev: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            tid: field("tid")?,
            rwbs: field("rwbs")?,
        },
        "block_rq_complete" => Known::BlockComplete {
            dev: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
        },
        "net_dev_xmit" => Known::Sent {
            name: field("name")?,
            len: field("len")?,
        },
        "netif_receive_skb" | "net_if_receive_skb" => Known::Received {
            name: field("name")?,
            len: field("len")?,
        },
        "mm_page_alloc" | "kmem_mm_page_alloc" => Known::PageAlloc,
        "mm_page_free" | "kmem_mm_page_free" => Known::PageFree,
        _ => return None,
    })
}

fn state_dump(class: &EventClass) -> Option<Known> {
    let field = |field: &str| class.field(field);
    Some(match class.name.as_str() {
        "lttng_statedump_process_state" => Known::DumpProcess {
            tid: field("tid")?,
            pid: field("pid")?,
            name: field("name")?,
            prio: field("prio"),
            table: field("file_table_address"),
        },
        "lttng_statedump_file_descriptor" => Known::DumpFile {
            pid: field("pid"),
            table: field("file_table_address"),
            fd: field("fd")?,
            filename: field("filename")?,
            flags: field("flags")?,
        },
        "lttng_statedump_block_device" => Known::DumpDisk {
            dev: field("dev")?,
            name: field("diskname")?,
        },
        _ => return None,
    })
}
