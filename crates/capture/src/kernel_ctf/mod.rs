//! From raw pages to CTF as LTTng would have written it.
//!
//! [`KernelClasses::compile`] turns formats into event classes and plans once; a [`CpuConverter`]
//! per CPU then runs them over pages. Names, types and values are those of [`ftrace::lttng`].

mod contexts;
mod convert;
mod current;
mod groups;

use event::EventClass;
use ftrace::lttng::{self, Plan};
use ftrace::{EventFormat, Formats, PageLayout};

pub use contexts::KernelContexts;
pub use convert::{Before, CpuConverter, CpuTotals};
pub(crate) use current::class as class_of_current;
pub use groups::ThreadGroups;

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
    contexts: KernelContexts,
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
        let mut compiled = KernelClasses {
            layout: formats.layout,
            classes: Vec::new(),
            plans: Vec::new(),
            by_id: Vec::new(),
            new_task: None,
            switch: None,
            contexts: KernelContexts::default(),
        };
        for (format, (plan, class)) in formats.iter().zip(lttng::compile(formats)) {
            let index = class.id.0;
            compiled.classes.push(class);
            compiled.plans.push(plan);
            let id = usize::from(format.id);
            compiled
                .by_id
                .resize(compiled.by_id.len().max(id + 1), None);
            compiled.by_id[id] = Some(index);
            compiled.new_task = compiled.new_task.or_else(|| new_task(format));
            compiled.switch = compiled.switch.or_else(|| current::Switch::of(format));
        }
        compiled
    }

    /// The same, and each event carries `contexts`.
    pub fn carrying(mut self, contexts: &KernelContexts) -> Self {
        for class in &mut self.classes {
            let own = class.fields.iter().cloned();
            class.fields = own.chain(contexts.fields()).collect();
        }
        self.contexts = contexts.clone();
        self
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
