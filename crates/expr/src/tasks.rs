//! Which task runs on each CPU, as far as the events say.

use event::{ClassId, Cpu, EventClass, FieldId, Record};

use crate::bind::SWITCH;

/// A task that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTask {
    /// Its thread id.
    pub tid: i64,
    /// Its priority when it was switched in, on the scale of the trace.
    pub prio: Option<i64>,
    comm: [u8; COMM_BYTES],
    comm_len: u8,
}

/// The kernel's `TASK_COMM_LEN`.
const COMM_BYTES: usize = 16;
/// A task gives itself another name, or becomes another program (include/trace/events/task.h).
const RENAME: &str = "task_rename";
/// More CPUs than the kernel can be built for: bounds what a hostile trace makes us keep.
const CPUS_MAX: usize = 8192;

impl RunningTask {
    /// A task; a name of more than 16 bytes is cut.
    pub fn new(tid: i64, comm: &[u8], prio: Option<i64>) -> RunningTask {
        let mut bytes = [0; COMM_BYTES];
        let length = comm.len().min(COMM_BYTES);
        bytes[..length].copy_from_slice(&comm[..length]);
        RunningTask {
            tid,
            prio,
            comm: bytes,
            comm_len: length as u8,
        }
    }

    /// Its name when it was switched in, or as it was renamed since.
    pub fn comm(&self) -> &[u8] {
        &self.comm[..usize::from(self.comm_len)]
    }
}

/// Follows the switches of all CPUs, and the names that tasks give themselves.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// By class: what it says.
    classes: Vec<Option<Says>>,
    by_cpu: Vec<Option<RunningTask>>,
}

/// What events of a class say.
#[derive(Clone, Copy, Debug)]
enum Says {
    Switch(SwitchFields),
    Rename { tid: FieldId, comm: FieldId },
}

#[derive(Clone, Copy, Debug)]
struct SwitchFields {
    tid: FieldId,
    comm: FieldId,
    prio: Option<FieldId>,
}

impl Says {
    fn of(class: &EventClass) -> Option<Says> {
        match class.kernel_name() {
            SWITCH => Some(Says::Switch(SwitchFields {
                tid: class
                    .field("next_tid")
                    .or_else(|| class.field("next_pid"))?,
                comm: class.field("next_comm")?,
                prio: class.field("next_prio"),
            })),
            RENAME => Some(Says::Rename {
                tid: class.field("pid").or_else(|| class.field("tid"))?,
                comm: class.field("newcomm")?,
            }),
            _ => None,
        }
    }
}

impl Tasks {
    /// Nothing is known yet.
    pub fn new(classes: &[EventClass]) -> Tasks {
        Tasks {
            classes: classes.iter().map(Says::of).collect(),
            by_cpu: Vec::new(),
        }
    }

    /// Whether events of the class say something.
    pub fn wants(&self, class: ClassId) -> bool {
        matches!(self.classes.get(class.0 as usize), Some(Some(_)))
    }

    /// Takes in what an event says. The task of a switch itself is the one that it takes away: ask
    /// first, then let it be observed.
    pub fn observe(&mut self, record: &impl Record) {
        let fields = match self.classes.get(record.class().0 as usize) {
            Some(Some(Says::Switch(fields))) => fields,
            Some(Some(Says::Rename { tid, comm })) => {
                return self.rename(record.i64(*tid), record.text(*comm));
            }
            _ => return,
        };
        let Some(cpu) = record
            .cpu()
            .map(|cpu| cpu.0 as usize)
            .filter(|cpu| *cpu < CPUS_MAX)
        else {
            return;
        };
        let prio = fields.prio.map(|prio| record.i64(prio));
        let task = RunningTask::new(record.i64(fields.tid), record.text(fields.comm), prio);
        if self.by_cpu.len() <= cpu {
            self.by_cpu.resize(cpu + 1, None);
        }
        self.by_cpu[cpu] = Some(task);
    }

    /// Where this task runs, it is called so from now on.
    fn rename(&mut self, tid: i64, comm: &[u8]) {
        for task in self
            .by_cpu
            .iter_mut()
            .flatten()
            .filter(|task| task.tid == tid)
        {
            *task = RunningTask::new(tid, comm, task.prio);
        }
    }

    /// Events are missing there, or on any CPU: what was known holds no more.
    pub fn forget(&mut self, cpu: Option<Cpu>) {
        match cpu {
            Some(cpu) => {
                if let Some(task) = self.by_cpu.get_mut(cpu.0 as usize) {
                    *task = None;
                }
            }
            None => self.by_cpu.clear(),
        }
    }

    /// The task on a CPU.
    pub fn on(&self, cpu: Option<Cpu>) -> Option<&RunningTask> {
        self.by_cpu.get(cpu?.0 as usize)?.as_ref()
    }
}
