//! The pass over the events: what shows of the task on a CPU that it runs code of its own, or what
//! it is.

use event::evidence::Role;
use kernel_state::Kernel;
use kernel_state::bind::{Call, FutexCommand};
use trace::EventView;

use super::build::Builder;
use super::page_faults::PageFault;
use super::tasks::TaskIndex;

impl Builder {
    /// The watch tells what a task was, whatever its name is and has it been renamed since; of the
    /// one that has this CPU, with which priority.
    pub(super) fn moment_of_task(&mut self, cpu: u32) {
        let Some(moment) = self.evidence.moments.last() else {
            return;
        };
        let (role, task) = (moment.role, moment.task.clone());
        self.tasks
            .is_of_kernel(task.tid.0, moment.is_kernel_thread());
        let current = self.cpu(cpu).current;
        let here = current.filter(|_| role == Role::Running);
        let here = here.filter(|here| self.tasks.find(task.tid.0, cpu) == Some(*here));
        if let Some(here) = here {
            let before = self.tasks.state(here).version;
            let comm = task.comm.as_bytes();
            self.tasks.name(here, task.tid.0, comm, task.prio);
            self.rename_run(cpu, here, before);
            self.cpu(cpu).told = current;
        }
    }

    pub(super) fn page_fault(&mut self, cpu: u32, time_ns: i64, address: Option<u64>) {
        if let Some(task) = self.cpu(cpu).current {
            self.runs_program(cpu, time_ns, task);
            let by = self.tasks.state(task).version;
            let fault = PageFault {
                time_ns,
                by,
                address,
            };
            self.page_faults.push(fault);
        }
    }

    /// Until here the task on the CPU ran code of its own.
    pub(super) fn system_call(
        &mut self,
        kernel: &mut Kernel,
        call: Call,
        cpu: u32,
        event: &EventView<'_>,
    ) {
        match kernel.note_call(event, cpu, call) {
            // A watch has seen how many they were.
            Some((FutexCommand::WakeAll, lock, _)) if !self.families.hit => {
                self.evidence.saw_readers(lock);
            }
            Some((_, _, true)) => {
                if let Some(process) = kernel.current(cpu) {
                    self.waited_for_work(kernel, process, true);
                }
            }
            _ => {}
        }
        let time_ns = event.time().as_ns();
        if let (Call::Entry { .. }, Some(task)) = (call, self.cpu(cpu).current) {
            self.runs_program(cpu, time_ns, task);
            let version = self.tasks.state(task).version;
            self.logged += 1;
            self.system_calls.push((time_ns, version));
        }
    }

    /// The task on the CPU runs code of its own: it is no thread of the kernel's, whatever it is
    /// called.
    fn runs_program(&mut self, cpu: u32, time_ns: i64, task: TaskIndex) {
        if self.tasks.is_program_after_all(task) {
            self.mark(cpu, time_ns, false);
        }
    }
}
