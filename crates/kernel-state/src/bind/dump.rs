//! Events in which the tracer dumps the state that was there before its first event.

use event::{EventClass, FieldId};

/// A part of the state dump.
#[derive(Clone, Copy, Debug)]
pub enum Dump {
    Process {
        tid: FieldId,
        pid: FieldId,
        name: FieldId,
        prio: Option<FieldId>,
        /// 0 for a program's thread, 1 for one of the kernel's.
        kind: Option<FieldId>,
        table: Option<FieldId>,
    },
    File {
        pid: Option<FieldId>,
        table: Option<FieldId>,
        fd: FieldId,
        filename: FieldId,
        flags: FieldId,
    },
    Disk {
        dev: FieldId,
        name: FieldId,
    },
    /// What file a process runs; empty for its threads but the first.
    Program {
        pid: FieldId,
        file: FieldId,
    },
    /// A task whose events are recorded, in a trace of some tasks alone.
    Tracked {
        tid: FieldId,
    },
    /// For how long quotas kept a task at most since `begin`; of task 0, all groups.
    Quota {
        begin: FieldId,
        kept: FieldId,
        tid: FieldId,
    },
    /// What a control group of a task gives it.
    Limits(Limits),
}

/// The fields of what a control group of a task gives it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub tid: FieldId,
    /// How many groups lie between it and the task's own.
    pub level: FieldId,
    pub folder: FieldId,
    /// Empty where it has no weight, as the root has none.
    pub weight_file: FieldId,
    pub weight: FieldId,
    /// Of groups that nobody gave another one.
    pub weight_usual: FieldId,
    pub has_quota: FieldId,
    /// For how long it was out of its quota since the last hit.
    pub throttled: FieldId,
    /// Empty where it has no limit.
    pub memory_file: FieldId,
    pub memory_limit: FieldId,
    pub memory_used: FieldId,
}

pub(super) fn bind(class: &EventClass) -> Option<Dump> {
    let field = |field: &str| class.field(field);
    Some(match class.kernel_name() {
        "lttng_statedump_process_state" => Dump::Process {
            tid: field("tid")?,
            pid: field("pid")?,
            name: field("name")?,
            prio: field("prio"),
            kind: field("type"),
            table: field("file_table_address"),
        },
        "lttng_statedump_file_descriptor" => Dump::File {
            pid: field("pid"),
            table: field("file_table_address"),
            fd: field("fd")?,
            filename: field("filename")?,
            flags: field("flags")?,
        },
        "lttng_statedump_block_device" => Dump::Disk {
            dev: field("dev")?,
            name: field("diskname")?,
        },
        "rtscope_statedump_task" => Dump::Program {
            pid: field("tgid")?,
            file: field("program")?,
        },
        "rtscope_tracked" => Dump::Tracked { tid: field("tid")? },
        "rtscope_quota" => Dump::Quota {
            begin: field("begin_ns")?,
            kept: field("kept_ns")?,
            tid: field("tid")?,
        },
        "rtscope_group_limits" => Dump::Limits(Limits {
            tid: field("tid")?,
            level: field("level")?,
            folder: field("folder")?,
            weight_file: field("weight_file")?,
            weight: field("weight")?,
            weight_usual: field("weight_usual")?,
            has_quota: field("has_quota")?,
            throttled: field("throttled_ns")?,
            memory_file: field("memory_file")?,
            memory_limit: field("memory_limit_bytes")?,
            memory_used: field("memory_used_bytes")?,
        }),
        _ => return None,
    })
}
