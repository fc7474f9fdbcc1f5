//! Contexts that ftrace does not note, by LTTng's names: BPF reads them as each event happens.

use abi::contexts::{
    COUNTERS, HOST_BYTES, IDS, NAMESPACES, NO_ID, RawContext, WANTED_HOST, WANTED_ID,
    WANTED_NAMESPACE, WANTED_TASK, WANTED_VIRTUAL, WANTED_VIRTUAL_ID,
};
use abi::raw::COMM_LENGTH;
use event::{FieldType, Integer};

/// Users and groups, in the order of the records.
const ID_NAMES: [&str; IDS] = ["uid", "euid", "suid", "gid", "egid", "sgid"];
const VIRTUAL_ID_NAMES: [&str; IDS] = ["vuid", "veuid", "vsuid", "vgid", "vegid", "vsgid"];
/// Namespaces, in the order of the records.
const NAMESPACE_NAMES: [&str; NAMESPACES] = [
    "cgroup_ns",
    "ipc_ns",
    "mnt_ns",
    "net_ns",
    "pid_ns",
    "time_ns",
    "user_ns",
    "uts_ns",
];
/// Those with a name of their own.
const NAMED: [(&str, Asked); 8] = [
    ("procname", Asked::Procname),
    ("prio", Asked::Prio),
    ("nice", Asked::Nice),
    ("ppid", Asked::Ppid),
    ("vpid", Asked::Vpid),
    ("vtid", Asked::Vtid),
    ("vppid", Asked::Vppid),
    ("hostname", Asked::Hostname),
];

/// Numbers of tasks, and priorities, that nobody knows.
const NO_TASK: i32 = -1;
const NO_PRIO: i32 = i32::MIN;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Procname,
    Prio,
    Nice,
    Ppid,
    Vpid,
    Vtid,
    Vppid,
    Hostname,
    /// A place among [`ID_NAMES`].
    Id(usize),
    /// A place among [`VIRTUAL_ID_NAMES`].
    VirtualId(usize),
    /// A place among [`NAMESPACE_NAMES`].
    Namespace(usize),
    /// A place among the counters of the recording.
    Counter(usize),
}

impl Asked {
    /// All but counters, with their names.
    pub fn all() -> impl Iterator<Item = (&'static str, Asked)> {
        let places = |names: &'static [&'static str], of: fn(usize) -> Asked| {
            let named = names.iter().enumerate();
            named.map(move |(place, name)| (*name, of(place)))
        };
        NAMED
            .into_iter()
            .chain(places(&ID_NAMES, Asked::Id))
            .chain(places(&VIRTUAL_ID_NAMES, Asked::VirtualId))
            .chain(places(&NAMESPACE_NAMES, Asked::Namespace))
    }

    pub fn of(name: &str) -> Option<Asked> {
        let found = Asked::all().find(|(named, _)| *named == name);
        found.map(|(_, asked)| asked)
    }

    /// What BPF is asked for.
    pub fn wanted(self) -> u32 {
        match self {
            Asked::Procname | Asked::Prio | Asked::Nice | Asked::Ppid => WANTED_TASK,
            Asked::Vpid | Asked::Vtid | Asked::Vppid => WANTED_VIRTUAL,
            Asked::Hostname => WANTED_HOST,
            Asked::Id(_) => WANTED_ID,
            Asked::VirtualId(_) => WANTED_VIRTUAL_ID,
            Asked::Namespace(_) => WANTED_NAMESPACE,
            Asked::Counter(_) => 0,
        }
    }

    pub fn ty(self) -> FieldType {
        let integer = |bits, is_signed| FieldType::Integer(Integer::le(bits, is_signed));
        match self {
            Asked::Procname | Asked::Hostname => FieldType::String,
            Asked::Id(_) | Asked::VirtualId(_) | Asked::Namespace(_) => integer(32, false),
            Asked::Counter(_) => integer(64, false),
            _ => integer(32, true),
        }
    }

    pub fn write(self, moment: &RawContext, out: &mut Vec<u8>) {
        let text = |text: &[u8], out: &mut Vec<u8>| {
            out.extend(text.iter().take_while(|byte| **byte != 0));
            out.push(0);
        };
        let number = |value: i32, out: &mut Vec<u8>| out.extend(value.to_le_bytes());
        let count = |value: u32, out: &mut Vec<u8>| out.extend(value.to_le_bytes());
        match self {
            Asked::Procname => text(&moment.comm, out),
            Asked::Hostname => text(&moment.host, out),
            Asked::Prio => number(moment.prio, out),
            Asked::Nice => number(moment.nice, out),
            Asked::Ppid => number(moment.ppid, out),
            Asked::Vpid => number(moment.vpid, out),
            Asked::Vtid => number(moment.vtid, out),
            Asked::Vppid => number(moment.vppid, out),
            Asked::Id(place) => count(moment.ids[place], out),
            Asked::VirtualId(place) => count(moment.virtual_ids[place], out),
            Asked::Namespace(place) => count(moment.namespaces[place], out),
            Asked::Counter(place) => out.extend(moment.counters[place].to_le_bytes()),
        }
    }
}

/// What an event carries of which nobody knows more.
pub(super) static NOTHING_KNOWN: RawContext = RawContext {
    time_ns: 0,
    lost: 0,
    tid: NO_TASK,
    ppid: NO_TASK,
    vpid: NO_TASK,
    vtid: NO_TASK,
    vppid: NO_TASK,
    prio: NO_PRIO,
    nice: NO_PRIO,
    pid: NO_TASK,
    comm: [0; COMM_LENGTH],
    ids: [NO_ID; IDS],
    virtual_ids: [NO_ID; IDS],
    namespaces: [0; NAMESPACES],
    counters: [u64::MAX; COUNTERS],
    host: [0; HOST_BYTES],
};
