//! The classes of the state dump, as LTTng 2.13 declares them, and our own one for priorities.
//!
//! Behind LTTng's fields come those that older versions of it had, and that its readers still use.

use event::{Base, ClassId, EventClass, Field, FieldType, Integer};

/// Places of the classes in [`classes`].
pub(super) const START: u32 = 0;
pub(super) const END: u32 = 1;
pub(super) const PROCESS_STATE: u32 = 2;
pub(super) const INTERRUPT: u32 = 3;
pub(super) const TASK: u32 = 4;
pub(super) const FILE: u32 = 5;
pub(super) const MAP: u32 = 6;
pub(super) const INTERFACE: u32 = 7;
pub(super) const DEVICE: u32 = 8;
pub(super) const TRACKED: u32 = 9;
pub(super) const QUOTA: u32 = 10;
pub(super) const PROGRAM: u32 = 11;
pub(super) const CGROUP: u32 = 12;
pub(super) const LIMITS: u32 = 13;

/// The classes; their numbers are for the caller to set.
pub(crate) fn classes() -> Vec<EventClass> {
    vec![
        class("lttng_statedump_start", vec![]),
        class("lttng_statedump_end", vec![]),
        process_state(),
        interrupt(),
        task(),
        file_descriptor(),
        vm_map(),
        network_interface(),
        class(
            "lttng_statedump_block_device",
            vec![unsigned("dev"), text("diskname")],
        ),
        class("rtscope_tracked", vec![signed("tid")]),
        quota(),
        program(),
        class(
            "rtscope_statedump_cgroup",
            vec![signed("tid"), text("path")],
        ),
        limits(),
    ]
}

/// For how long quotas kept a thread at most between two looks; thread 0 stands for all groups.
fn quota() -> EventClass {
    let wide = |name| Field::payload(name, FieldType::Integer(Integer::le(64, false)));
    class(
        "rtscope_quota",
        vec![wide("begin_ns"), wide("kept_ns"), signed("tid")],
    )
}

/// What a control group of a thread gives it: `level` groups lie between it and the thread's own;
/// a file without a name means that nothing is set there.
fn limits() -> EventClass {
    let wide = |name| Field::payload(name, FieldType::Integer(Integer::le(64, false)));
    let fields = vec![
        signed("tid"),
        unsigned("level"),
        text("folder"),
        text("weight_file"),
        wide("weight"),
        wide("weight_usual"),
        unsigned("has_quota"),
        wide("throttled_ns"),
        text("memory_file"),
        wide("memory_limit_bytes"),
        wide("memory_used_bytes"),
    ];
    class("rtscope_group_limits", fields)
}

/// A program or library in the memory of a process.
fn program() -> EventClass {
    let length = "_build_id_length";
    let size = FieldType::Integer(Integer::le(64, false));
    let fields = vec![
        signed("pid"),
        address("baddr"),
        Field::payload("memsz", size),
        text("path"),
        Field::payload(length, FieldType::Integer(Integer::le(16, false))),
        Field::payload(
            "build_id",
            FieldType::Sequence {
                element: hexadecimal(8, false).into(),
                length: length.to_owned(),
            },
        ),
    ];
    class("rtscope_statedump_program", fields)
}

fn process_state() -> EventClass {
    let fields = vec![
        signed("tid"),
        signed("pid"),
        signed("ppid"),
        task_name(),
        signed("type"),
        signed("mode"),
        signed("submode"),
        signed("status"),
        unsigned("cpu"),
        address("file_table_address"),
        signed("prio"),
    ];
    class("lttng_statedump_process_state", fields)
}

fn interrupt() -> EventClass {
    let fields = vec![unsigned("irq"), text("name"), text("action"), signed("tid")];
    class("lttng_statedump_interrupt", fields)
}

fn task() -> EventClass {
    let fields = vec![
        signed("tid"),
        signed("tgid"),
        signed("ppid"),
        signed("prio"),
        unsigned("policy"),
        text("cpus_allowed"),
        task_name(),
        text("program"),
    ];
    class("rtscope_statedump_task", fields)
}

fn file_descriptor() -> EventClass {
    let fields = vec![
        address("file_table_address"),
        signed("fd"),
        Field::payload("flags", octal(32)),
        Field::payload("fmode", hexadecimal(32, false)),
        text("filename"),
        signed("pid"),
    ];
    class("lttng_statedump_file_descriptor", fields)
}

fn vm_map() -> EventClass {
    let wide = |name| Field::payload(name, FieldType::Integer(Integer::le(64, false)));
    let fields = vec![
        signed("pid"),
        address("start"),
        address("end"),
        address("flags"),
        wide("inode"),
        wide("pgoff"),
    ];
    class("lttng_statedump_vm_map", fields)
}

fn network_interface() -> EventClass {
    let address = Field::payload("address_ipv4", hexadecimal(32, true));
    class(
        "lttng_statedump_network_interface",
        vec![text("name"), address],
    )
}

fn class(name: &str, fields: Vec<Field>) -> EventClass {
    EventClass {
        id: ClassId(0),
        name: name.to_owned(),
        stream: 0,
        fields: fields.into(),
    }
}

fn signed(name: &str) -> Field {
    Field::payload(name, FieldType::Integer(Integer::le(32, true)))
}

fn unsigned(name: &str) -> Field {
    Field::payload(name, FieldType::Integer(Integer::le(32, false)))
}

fn text(name: &str) -> Field {
    Field::payload(name, FieldType::String)
}

fn task_name() -> Field {
    Field::payload("name", FieldType::Text { size_bytes: 16 })
}

fn address(name: &str) -> Field {
    Field::payload(name, hexadecimal(64, false))
}

fn octal(size_bits: u8) -> FieldType {
    FieldType::Integer(Integer {
        base: Base::Octal,
        ..Integer::le(size_bits, false)
    })
}

fn hexadecimal(size_bits: u8, big_endian: bool) -> FieldType {
    FieldType::Integer(Integer {
        base: Base::Hexadecimal,
        big_endian,
        ..Integer::le(size_bits, false)
    })
}
