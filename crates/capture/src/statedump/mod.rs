//! The tables at the start of a trace: tasks and interrupts, as LTTng's state dump has them.

use std::fs;
use std::path::Path;

use ctf::writer::{PayloadWriter, StreamWriter};
use event::{Base, ClassId, EventClass, Field, FieldType, Instant, Integer, Result};

use crate::clock;

/// LTTng's values (lttng-modules, `lttng-statedump-impl.c`).
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_NONE: i32 = 0;
/// `PF_KTHREAD` of the kernel.
const KERNEL_THREAD: u64 = 0x20_0000;

/// A task as `/proc` showed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskState {
    /// Its thread id.
    pub tid: i32,
    /// Its thread group.
    pub tgid: i32,
    /// The thread group of its parent.
    pub ppid: i32,
    /// Its name.
    pub name: String,
    /// Whether it is a kernel thread.
    pub is_kernel_thread: bool,
    /// The letter of its state.
    pub state: char,
    /// The CPU that it was last on.
    pub cpu: u32,
    /// Its priority as LTTng writes it: the kernel's minus 100.
    pub prio: i32,
    /// Its policy: 0 other, 1 FIFO, 2 RR, 3 batch, 5 idle, 6 deadline.
    pub policy: u32,
    /// The CPUs that it may use, as a list.
    pub cpus_allowed: String,
}

/// A line of `/proc/interrupts` with one of its handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    /// The interrupt.
    pub irq: u32,
    /// The name of its controller.
    pub chip: String,
    /// The name of the handler.
    pub action: String,
    /// The thread that does its work, or zero.
    pub tid: i32,
}

/// The tables, and when they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateDump {
    /// Before the first line was read.
    pub begin: Instant,
    /// After the last one.
    pub end: Instant,
    /// All tasks, by tid.
    pub tasks: Vec<TaskState>,
    /// All interrupts that have a handler.
    pub interrupts: Vec<InterruptLine>,
}

impl StateDump {
    /// Reads the tables. Tasks that end meanwhile are left out.
    pub fn collect() -> Self {
        let begin = clock::monotonic();
        let mut tasks: Vec<_> = numbered(Path::new("/proc"))
            .into_iter()
            .flat_map(|pid| {
                let process = Path::new("/proc").join(pid.to_string()).join("task");
                let threads = numbered(&process);
                threads.into_iter().filter_map(move |tid| {
                    let thread = process.join(tid.to_string());
                    let stat = fs::read(thread.join("stat")).ok()?;
                    let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
                    task(&String::from_utf8_lossy(&stat), &status, pid)
                })
            })
            .collect();
        tasks.sort_by_key(|task| task.tid);
        let text = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        let mut interrupts = interrupts(&text);
        for line in &mut interrupts {
            let prefix = format!("irq/{}-", line.irq);
            let thread = tasks.iter().find(|task| task.name.starts_with(&prefix));
            line.tid = thread.map_or(0, |task| task.tid);
        }
        StateDump {
            begin,
            end: clock::monotonic(),
            tasks,
            interrupts,
        }
    }

    /// Pairs of thread and thread group.
    pub fn thread_groups(&self) -> impl Iterator<Item = (i32, i32)> {
        self.tasks.iter().map(|task| (task.tid, task.tgid))
    }

    /// Writes the tables as events of `stream`, whose class `first_class` is the first of
    /// [`classes`]. The events share the time from begin to end.
    pub(crate) fn write(&self, stream: &mut StreamWriter, first_class: u32) -> Result<u64> {
        let mut payload = PayloadWriter::new();
        stream.event(first_class + START, self.begin, payload.bytes())?;
        for line in &self.interrupts {
            payload
                .clear()
                .u32(line.irq)
                .string(&line.chip)
                .string(&line.action)
                .i32(line.tid);
            stream.event(first_class + INTERRUPT, self.begin, payload.bytes())?;
        }
        for task in &self.tasks {
            payload
                .clear()
                .i32(task.tid)
                .i32(task.tgid)
                .i32(task.ppid)
                .text16(&task.name);
            payload
                .i32(i32::from(task.is_kernel_thread))
                .i32(MODE_UNKNOWN)
                .i32(SUBMODE_NONE);
            payload.i32(status(task.state)).u32(task.cpu).u64(0);
            stream.event(first_class + PROCESS_STATE, self.begin, payload.bytes())?;
            payload
                .clear()
                .i32(task.tid)
                .i32(task.tgid)
                .i32(task.ppid)
                .i32(task.prio);
            payload
                .u32(task.policy)
                .string(&task.cpus_allowed)
                .text16(&task.name);
            stream.event(first_class + TASK, self.begin, payload.bytes())?;
        }
        payload.clear();
        stream.event(first_class + END, self.end, payload.bytes())?;
        Ok(2 + self.interrupts.len() as u64 + 2 * self.tasks.len() as u64)
    }
}

/// Places of the classes in [`classes`].
const START: u32 = 0;
const END: u32 = 1;
const PROCESS_STATE: u32 = 2;
const INTERRUPT: u32 = 3;
const TASK: u32 = 4;

/// The classes of the dump, as LTTng 2.13 declares them, and our own one for priorities.
pub(crate) fn classes() -> Vec<EventClass> {
    let integer = |signed| FieldType::Integer(Integer::le(32, signed));
    let text16 = || FieldType::Text { size_bytes: 16 };
    let signed = |name: &str| Field::payload(name, integer(true));
    let unsigned = |name: &str| Field::payload(name, integer(false));
    let hex = Integer {
        base: Base::Hexadecimal,
        ..Integer::le(64, false)
    };
    let class = |name: &str, fields: Vec<Field>| EventClass {
        id: ClassId(0),
        name: name.to_owned(),
        stream: 0,
        fields: fields.into(),
    };
    vec![
        class("lttng_statedump_start", vec![]),
        class("lttng_statedump_end", vec![]),
        class(
            "lttng_statedump_process_state",
            vec![
                signed("tid"),
                signed("pid"),
                signed("ppid"),
                Field::payload("name", text16()),
                signed("type"),
                signed("mode"),
                signed("submode"),
                signed("status"),
                unsigned("cpu"),
                Field::payload("file_table_address", FieldType::Integer(hex)),
            ],
        ),
        class(
            "lttng_statedump_interrupt",
            vec![
                unsigned("irq"),
                Field::payload("name", FieldType::String),
                Field::payload("action", FieldType::String),
                signed("tid"),
            ],
        ),
        class(
            "rtscope_statedump_task",
            vec![
                signed("tid"),
                signed("tgid"),
                signed("ppid"),
                signed("prio"),
                unsigned("policy"),
                Field::payload("cpus_allowed", FieldType::String),
                Field::payload("name", text16()),
            ],
        ),
    ]
}

/// LTTng's number for a state's letter.
fn status(state: char) -> i32 {
    match state {
        'R' => 2,
        'Z' => 4,
        'S' | 'D' | 'I' => 5,
        'X' => 7,
        _ => 0,
    }
}

/// The names in a directory that are numbers.
fn numbered(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// From `/proc/PID/task/TID/stat` and `status` (`man 5 proc`).
fn task(stat: &str, status: &str, tgid: i32) -> Option<TaskState> {
    let (tid, rest) = stat.split_once(" (")?;
    // A name may hold anything, also a bracket: its end is the last one.
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<_> = rest.split_ascii_whitespace().collect();
    // The first field here is number 3 of the manual.
    let field = |number: usize| fields.get(number - 3).copied();
    let cpus_allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Some(TaskState {
        tid: tid.trim().parse().ok()?,
        tgid,
        ppid: field(4)?.parse().ok()?,
        name: name.to_owned(),
        is_kernel_thread: field(9)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
        state: field(3)?.chars().next()?,
        cpu: field(39)?.parse().ok()?,
        prio: field(18)?.parse().ok()?,
        policy: field(41)?.parse().ok()?,
        cpus_allowed: cpus_allowed.unwrap_or_default().trim().to_owned(),
    })
}

/// From `/proc/interrupts`: numbered lines; one entry for each handler.
fn interrupts(text: &str) -> Vec<InterruptLine> {
    let mut lines = text.lines();
    let cpu_count = lines
        .next()
        .map_or(0, |head| head.split_ascii_whitespace().count());
    let parse = |line: &str| {
        let (irq, rest) = line.split_once(':')?;
        let irq: u32 = irq.trim().parse().ok()?;
        let mut words = rest.split_ascii_whitespace().skip(cpu_count);
        let chip = words.next()?.to_owned();
        let actions = words.skip(1).collect::<Vec<_>>().join(" ");
        let line = |action: &str| InterruptLine {
            irq,
            chip: chip.clone(),
            action: action.trim().to_owned(),
            tid: 0,
        };
        let named = actions
            .split(',')
            .filter(|action| !action.trim().is_empty());
        Some(named.map(line).collect::<Vec<_>>())
    };
    lines.filter_map(parse).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_whatever_its_name_holds() {
        let stat = "123 (a) (b) S 45 123 123 0 -1 2129984 0 0 0 0 0 0 0 0 -61 0 1 0 99 0 0 \
                    1 0 0 0 0 0 0 0 0 0 0 0 0 17 3 60 2 0 0 0";
        let found = task(stat, "Name:\tx\nCpus_allowed_list:\t0-1\n", 120);
        let expect = TaskState {
            tid: 123,
            tgid: 120,
            ppid: 45,
            name: "a) (b".to_owned(),
            is_kernel_thread: true,
            state: 'S',
            cpu: 3,
            prio: -61,
            policy: 2,
            cpus_allowed: "0-1".to_owned(),
        };
        assert_eq!(found, Some(expect));
        assert_eq!(task("123 (x) S 1", "", 1), None);
    }

    #[test]
    fn each_handler_of_a_shared_interrupt_has_its_line() {
        let text = "           CPU0       CPU1       \n\
                    24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
                    16:          1          0  PCI-MSI   5-edge      ehci_hcd:usb1, snd intel\n\
                    LOC:        99         98   Local timer interrupts\n";
        let found: Vec<_> = interrupts(text)
            .into_iter()
            .map(|line| format!("{} {} {}", line.irq, line.chip, line.action))
            .collect();
        let expect = [
            "24 IO-APIC ACPI:Ged",
            "16 PCI-MSI ehci_hcd:usb1",
            "16 PCI-MSI snd intel",
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn the_dump_of_this_machine_holds_this_task() {
        let dump = StateDump::collect();
        let own = std::process::id() as i32;
        assert!(
            dump.thread_groups()
                .any(|(tid, tgid)| (tid, tgid) == (own, own))
        );
        assert!(dump.begin <= dump.end);
    }
}
