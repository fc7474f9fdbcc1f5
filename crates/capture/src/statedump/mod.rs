//! The tables at the start of a trace: tasks, open files, interrupts, network interfaces, block
//! devices and memory, as LTTng's state dump has them.

mod classes;
mod devices;
mod files;
mod programs;

use std::fs;
use std::path::Path;

use ctf::writer::{PayloadWriter, StreamWriter};
use event::{Instant, Result, Tid};
use host::groups::{GroupLimits, Kept};

use crate::clock;
pub(crate) use classes::classes;
use classes::{
    CGROUP, DEVICE, END, FILE, INTERFACE, INTERRUPT, LIMITS, MAP, PROCESS_STATE, PROGRAM, QUOTA,
    START, TASK, TRACKED,
};
pub use devices::{BlockDevice, NetworkInterface};
use files::numbered;
pub use files::{MemoryMap, OpenFile};
pub use programs::LoadedProgram;
pub(crate) use programs::Programs;

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
    /// The path of its control group of the second version; empty where it is in the root.
    pub cgroup: String,
    /// The name of the file that its process runs, of the first thread alone.
    pub program: String,
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
    /// What processes have open.
    pub files: Vec<OpenFile>,
    /// Their memory.
    pub maps: Vec<MemoryMap>,
    /// The programs and libraries in it.
    pub programs: Vec<LoadedProgram>,
    /// The network interfaces.
    pub interfaces: Vec<NetworkInterface>,
    /// The block devices.
    pub devices: Vec<BlockDevice>,
    /// What control groups give some threads.
    pub limits: Vec<(Tid, GroupLimits)>,
}

/// What a dump has of the memory of processes: the kernel locks it while it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfMemory {
    /// All parts of it.
    pub maps: bool,
    /// The programs and libraries in it.
    pub programs: bool,
}

impl StateDump {
    /// Reads the tables of tasks and interrupts. Tasks that end meanwhile are left out.
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
                    let text =
                        |name: &str| fs::read_to_string(thread.join(name)).unwrap_or_default();
                    let task = task(&String::from_utf8_lossy(&stat), &text("status"), pid)?;
                    let cgroup = match task.is_kernel_thread {
                        true => String::new(),
                        false => cgroup(&text("cgroup")),
                    };
                    let program = match tid == pid {
                        true => program(&thread),
                        false => String::new(),
                    };
                    Some(TaskState {
                        cgroup,
                        program,
                        ..task
                    })
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
            ..StateDump::default()
        }
    }

    /// Reads all tables; of memory what is asked for.
    pub fn collect_all(of_memory: OfMemory) -> Self {
        let mut dump = StateDump::collect();
        let first_threads = dump.tasks.iter().filter(|task| task.tid == task.tgid);
        let of_programs = first_threads.filter(|task| !task.is_kernel_thread);
        let pids: Vec<_> = of_programs.map(|task| task.tgid).collect();
        dump.files = files::open_files(&pids);
        if of_memory.maps {
            dump.maps = files::memory_maps(&pids);
        }
        if of_memory.programs {
            dump.programs = Programs::default().look(true);
        }
        dump.interfaces = devices::network_interfaces();
        dump.devices = devices::block_devices();
        dump.end = clock::monotonic();
        dump
    }

    /// Pairs of thread and thread group.
    pub fn thread_groups(&self) -> impl Iterator<Item = (i32, i32)> {
        self.tasks.iter().map(|task| (task.tid, task.tgid))
    }

    /// Writes the tables as events of `stream`, whose class `first_class` is the first of
    /// [`classes`]. The events share the time from begin to end.
    pub(crate) fn write(&self, stream: &mut StreamWriter, first_class: u32) -> Result<u64> {
        let mut events = 0;
        let mut write = |class: u32, at: Instant, payload: &PayloadWriter| {
            events += 1;
            stream.event(first_class + class, at, payload.bytes())
        };
        let mut payload = PayloadWriter::new();
        write(START, self.begin, &payload)?;
        for line in &self.interrupts {
            line.write(payload.clear());
            write(INTERRUPT, self.begin, &payload)?;
        }
        for task in &self.tasks {
            task.write_state(payload.clear());
            write(PROCESS_STATE, self.begin, &payload)?;
            task.write_own(payload.clear());
            write(TASK, self.begin, &payload)?;
            if !task.cgroup.is_empty() {
                payload.clear().i32(task.tid).string(&task.cgroup);
                write(CGROUP, self.begin, &payload)?;
            }
        }
        for file in &self.files {
            payload.clear().u64(table_of(file.pid)).i32(file.fd);
            payload.u32(file.flags).u32(file.mode());
            payload.string(&file.name).i32(file.pid);
            write(FILE, self.begin, &payload)?;
        }
        for map in &self.maps {
            payload.clear().i32(map.pid).u64(map.start).u64(map.end);
            payload.u64(map.flags).u64(map.inode).u64(map.page);
            write(MAP, self.begin, &payload)?;
        }
        for program in &self.programs {
            program.write(payload.clear());
            write(PROGRAM, self.begin, &payload)?;
        }
        for interface in &self.interfaces {
            payload.clear().string(&interface.name);
            payload.raw(&interface.address.octets());
            write(INTERFACE, self.begin, &payload)?;
        }
        for device in &self.devices {
            payload.clear().u32(device.number).string(&device.name);
            write(DEVICE, self.begin, &payload)?;
        }
        for (tid, group) in &self.limits {
            write_limits(payload.clear(), *tid, group);
            write(LIMITS, self.begin, &payload)?;
        }
        write(END, self.end, payload.clear())?;
        Ok(events)
    }
}

fn write_limits(payload: &mut PayloadWriter, tid: Tid, group: &GroupLimits) {
    payload.i32(tid.0).u32(group.level);
    payload.string(&group.folder.to_string_lossy());
    let weight = group.weight.as_ref();
    payload.string(weight.map_or("", |weight| weight.file));
    payload.u64(weight.map_or(0, |weight| weight.value));
    payload.u64(weight.map_or(0, |weight| weight.usual));
    payload.u32(u32::from(group.has_quota));
    payload.u64(group.throttled.as_ns_unsigned());
    let memory = group.memory.as_ref();
    payload.string(memory.map_or("", |memory| memory.file));
    payload.u64(memory.map_or(0, |memory| memory.limit_bytes));
    payload.u64(memory.map_or(0, |memory| memory.used_bytes));
}

/// Says whose events alone are recorded from `at` on.
pub(crate) fn write_tracked(
    stream: &mut StreamWriter,
    first_class: u32,
    (at, tasks): (Instant, &[Tid]),
) -> Result<()> {
    let class = first_class + TRACKED;
    let mut all = tasks.iter();
    all.try_for_each(|task| stream.event(class, at, &task.0.to_le_bytes()))
}

/// Says which programs and libraries came into the memory of processes.
pub(crate) fn write_programs(
    stream: &mut StreamWriter,
    first_class: u32,
    (at, programs): (Instant, &[LoadedProgram]),
) -> Result<()> {
    let mut payload = PayloadWriter::new();
    for program in programs {
        program.write(payload.clear());
        stream.event(first_class + PROGRAM, at, payload.bytes())?;
    }
    Ok(())
}

/// Says for how long quotas kept tasks between two looks.
pub(crate) fn write_quota(
    stream: &mut StreamWriter,
    first_class: u32,
    (begin, end): (Instant, Instant),
    kept: &Kept,
) -> Result<()> {
    let all = [(&Tid(0), &kept.total)].into_iter();
    let mut payload = PayloadWriter::new();
    for (tid, time) in all.chain(&kept.of_threads) {
        payload.clear().u64(begin.as_ns().unsigned_abs());
        payload.u64(time.as_ns_unsigned()).i32(tid.0);
        stream.event(first_class + QUOTA, end, payload.bytes())?;
    }
    Ok(())
}

impl InterruptLine {
    fn write(&self, payload: &mut PayloadWriter) {
        payload.u32(self.irq).string(&self.chip);
        payload.string(&self.action).i32(self.tid);
    }
}

impl TaskState {
    fn write_state(&self, payload: &mut PayloadWriter) {
        payload.i32(self.tid).i32(self.tgid).i32(self.ppid);
        payload.text16(&self.name);
        payload.i32(i32::from(self.is_kernel_thread));
        payload.i32(MODE_UNKNOWN).i32(SUBMODE_NONE);
        let table = match self.is_kernel_thread {
            true => 0,
            false => table_of(self.tgid),
        };
        payload.i32(status(self.state)).u32(self.cpu).u64(table);
        payload.i32(self.prio);
    }

    fn write_own(&self, payload: &mut PayloadWriter) {
        payload.i32(self.tid).i32(self.tgid).i32(self.ppid);
        payload.i32(self.prio).u32(self.policy);
        payload.string(&self.cpus_allowed).text16(&self.name);
        payload.string(&self.program);
    }
}

/// In place of the address of a table of descriptors, which `/proc` does not tell: the process.
fn table_of(pid: i32) -> u64 {
    u64::from(pid.unsigned_abs())
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
        cgroup: String::new(),
        program: String::new(),
    })
}

/// The name of the file that a process runs, also where that is deleted; a thread of the kernel's
/// runs none.
fn program(thread: &Path) -> String {
    let path = fs::read_link(thread.join("exe")).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned()
}

/// From `/proc/PID/task/TID/cgroup`: the group of the second version, and nothing for the root.
fn cgroup(text: &str) -> String {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    path.filter(|path| *path != "/")
        .unwrap_or_default()
        .to_owned()
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
            cgroup: String::new(),
            program: String::new(),
        };
        assert_eq!(found, Some(expect));
        assert_eq!(task("123 (x) S 1", "", 1), None);
    }

    #[test]
    fn the_group_of_the_second_version_is_read_beside_those_of_the_first() {
        let check = |text: &str, expect: &str| assert_eq!(cgroup(text), expect, "{text:?}");
        check("4:memory:/x\n0::/a.slice/b.service\n", "/a.slice/b.service");
        check("0::/\n", "");
        check("4:memory:/x\n", "");
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
