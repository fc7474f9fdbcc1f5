//! From raw pages to CTF as LTTng would have written it.
//!
//! [`KernelClasses::compile`] turns formats into event classes and plans once; a [`CpuConverter`]
//! per CPU then runs them over pages. Names, types and values are those of [`ftrace::lttng`].

mod asked;
mod contexts;
mod convert;
mod counters;
mod current;
mod flags;
mod groups;
mod moments;
mod stacks;

use event::{EventClass, Field, Scope};
use ftrace::lttng::{self, Plan};
use ftrace::{EventFormat, FormatField, Formats, PageLayout};

pub use contexts::KernelContexts;
pub use convert::{Before, CpuConverter, CpuTotals};
pub(crate) use current::class as class_of_current;
pub use groups::ThreadGroups;
pub(crate) use moments::Moments;
use stacks::StackRecords;
pub(crate) use stacks::{KERNEL_STACK, USER_STACK};

use crate::syscalls::InKernel;

/// The event classes of a kernel trace, with the plan of each.
#[derive(Debug)]
pub struct KernelClasses {
    layout: PageLayout,
    classes: Vec<EventClass>,
    plans: Vec<Plan>,
    /// From the kernel's event number to the index of its class.
    by_id: Vec<Option<u32>>,
    new_task: Option<NewTask>,
    switch: Option<current::Switch>,
    /// The class of `sched_wakeup`, whose events carry more than others.
    wakeup: Option<u32>,
    contexts: KernelContexts,
    stacks: StackRecords,
    /// Of each class, whether the kernel writes stacks behind its events.
    with_stacks: Vec<bool>,
    /// What the channels are called beside the first.
    channels: Vec<String>,
}

/// Where `task_newtask` holds what thread groups follow from.
#[derive(Clone, Copy, Debug)]
struct NewTask {
    id: u16,
    pid_at: usize,
    flags_at: usize,
}

impl KernelClasses {
    /// Compiles the classes of all `formats`.
    pub fn compile(formats: &Formats) -> Self {
        let (stacks, formats) = StackRecords::split(formats);
        let mut compiled = KernelClasses {
            layout: formats.layout,
            classes: Vec::new(),
            plans: Vec::new(),
            by_id: Vec::new(),
            new_task: None,
            switch: None,
            wakeup: None,
            contexts: KernelContexts::default(),
            stacks,
            with_stacks: Vec::new(),
            channels: Vec::new(),
        };
        let calls = InKernel::new();
        let named = |format: &EventFormat, field: &FormatField| calls.named(format, field);
        for (format, (plan, class)) in formats.iter().zip(lttng::compile_with(&formats, &named)) {
            let index = class.id.0;
            compiled.classes.push(class);
            compiled.plans.push(plan);
            // Its own tracers write none.
            compiled.with_stacks.push(format.system != "ftrace");
            let id = usize::from(format.id);
            compiled
                .by_id
                .resize(compiled.by_id.len().max(id + 1), None);
            compiled.by_id[id] = Some(index);
            compiled.new_task = compiled.new_task.or_else(|| new_task(format));
            compiled.switch = compiled.switch.or_else(|| current::Switch::of(format));
            if (&*format.system, &*format.name) == ("sched", "sched_wakeup") {
                compiled.wakeup = Some(index);
            }
        }
        compiled.carrying(&KernelContexts::default())
    }

    /// The same, and each event carries `contexts`.
    pub fn carrying(mut self, contexts: &KernelContexts) -> Self {
        for (index, class) in (0..).zip(&mut self.classes) {
            let own = (self.wakeup == Some(index)).then_some(contexts);
            let own = own.and_then(KernelContexts::of_wakeup);
            let all = own.into_iter().chain(contexts.fields(Scope::EventContext));
            let payload = class.fields.iter().cloned();
            let payload = payload.filter(|field| field.scope != Scope::EventContext);
            class.fields = payload.chain(all).collect();
        }
        self.contexts = contexts.clone();
        self
    }

    /// The same, whose events come in channels of these names beside the first one.
    pub(crate) fn in_channels(self, channels: Vec<String>) -> Self {
        KernelClasses { channels, ..self }
    }

    /// What the channels are called beside the first.
    pub(crate) fn channels(&self) -> &[String] {
        &self.channels
    }

    /// What all events of a CPU's stream carry, also those that only say who has the CPU.
    pub(crate) fn shared(&self) -> Vec<Field> {
        self.contexts.fields(Scope::StreamContext).collect()
    }

    /// The place of the class of the kernel's event with this number.
    fn index(&self, id: u16) -> Option<u32> {
        self.by_id.get(usize::from(id)).copied().flatten()
    }

    /// The classes, each at the index of its number.
    pub fn classes(&self) -> &[EventClass] {
        &self.classes
    }
}

fn new_task(format: &EventFormat) -> Option<NewTask> {
    (format.name == "task_newtask").then_some(())?;
    let at = |name: &str| format.field(name).map(|field| field.offset_bytes as usize);
    Some(NewTask {
        id: format.id,
        pid_at: at("pid")?,
        flags_at: at("clone_flags")?,
    })
}
