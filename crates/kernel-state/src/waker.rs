//! What happens on a CPU, and what in it wakes a task.

use trace::EventView;

use super::syscalls::Call;
use super::{Kernel, ProcId};
use crate::bind::{self, FutexCommand};

/// What woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waker {
    /// A thread.
    Thread(ProcId),
    /// This thread or an interrupt in it: the trace shows no timers.
    During(ProcId),
    /// The expiry of a timer.
    Timer,
    /// An interrupt's handler.
    Irq(i64),
    /// A vector with a negative number, see [`event::evidence::Step::id`].
    Vector(i32),
    /// A softirq.
    Softirq(i64),
    /// The events do not say.
    Unknown,
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuWhat {
    #[default]
    /// Nobody knows.
    Unknown,
    /// Nothing.
    Idle,
    /// A task, outside of system calls.
    Task,
    /// A task in a system call.
    Call,
    /// An interrupt's handler.
    Irq,
    /// A softirq.
    Softirq,
}

impl Kernel {
    /// What wakes a task on a CPU now.
    pub fn waker(&self, cpu: u32, comm: &[u8]) -> Waker {
        let Some(state) = self.cpus.get(cpu as usize) else {
            return Waker::Unknown;
        };
        let handler = state.handlers.waker(comm, self.now_ns);
        let task = || {
            let id = state.current?;
            Some(match self.shows_waker(cpu) {
                true => Waker::Thread(id),
                false => Waker::During(id),
            })
        };
        handler.or_else(task).unwrap_or(Waker::Unknown)
    }

    /// Whether a wake-up on a CPU where no handler was seen to begin is its thread's own: the trace
    /// shows what interrupts a thread, or this one is in a system call.
    pub fn shows_waker(&self, cpu: u32) -> bool {
        let calls = |id: ProcId| self.process(id).known_call().is_some();
        self.sees_timers() || self.current(cpu).is_some_and(calls)
    }

    /// Takes in of a system call only that its thread is in it, for who follows nothing else; what
    /// it does with a word of its program's, and whether its last wait there was for its next work.
    pub fn note_call(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        call: bind::Call,
    ) -> Option<(FutexCommand, u64, bool)> {
        let id = self.current(cpu)?;
        let begin_ns = event.time().as_ns();
        let begins = match call {
            bind::Call::Entry { call, .. } => Some(Call::begins(call, begin_ns)),
            bind::Call::Exit { .. } => None,
        };
        let ended = std::mem::replace(&mut self.processes.get_mut(id).call, begins);
        if ended.is_some_and(|call| call.in_futex) {
            self.locks.returns(id, begin_ns);
        }
        let bind::Call::Entry {
            futex: Some(fields),
            ..
        } = call
        else {
            return None;
        };
        let (command, address) = fields.read(event);
        let is_again = self.enters_futex(id, (command, address), begin_ns);
        Some((command, address, is_again))
    }

    /// What woke a task, as people read it.
    pub fn waker_text(&self, waker: Waker) -> String {
        match waker {
            Waker::Thread(id) => {
                let process = self.process(id);
                format!("{} ({})", process.comm.text(), process.tid)
            }
            Waker::During(id) => {
                let process = self.process(id);
                format!("while {} ({}) ran", process.comm.text(), process.tid)
            }
            Waker::Timer => "a timer".to_owned(),
            Waker::Irq(irq) => match self.irq_actions().name(irq) {
                name if name.is_empty() => format!("interrupt {irq}"),
                name => format!("interrupt {irq} {name}"),
            },
            Waker::Vector(vector) => match self.binding.unlisted.name(vector) {
                Some(name) => format!("interrupt: {name}"),
                None => format!("interrupt {vector}"),
            },
            Waker::Softirq(vec) => {
                let name = u32::try_from(vec).ok().and_then(crate::softirq_name);
                name.map_or_else(
                    || format!("softirq {vec}"),
                    |name| format!("softirq {name}"),
                )
            }
            Waker::Unknown => "unknown".to_owned(),
        }
    }
}
