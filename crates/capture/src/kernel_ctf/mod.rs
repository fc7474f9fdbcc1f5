//! From raw pages to CTF as LTTng would have written it.
//!
//! [`KernelClasses::compile`] turns formats into event classes and plans once; a [`CpuConverter`]
//! per CPU then runs them over pages. Names, types and values come from one table,
//! `lttng_names.tsv`; what it does not know keeps the kernel's names and types.

mod convert;
mod groups;
mod plan;
mod rwbs;

use std::collections::BTreeSet;

use event::{ClassId, EventClass};
use ftrace::{EventFormat, Formats, PageLayout};

pub use convert::{Before, CpuConverter, CpuTotals};
pub use groups::ThreadGroups;

use plan::Plan;

/// The event classes of a kernel trace, with the plan of each.
#[derive(Debug)]
pub struct KernelClasses {
    layout: PageLayout,
    classes: Vec<EventClass>,
    plans: Vec<Plan>,
    /// From the kernel's event number to the index of its class.
    by_id: Vec<Option<u32>>,
    new_task: Option<NewTask>,
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
        };
        let mut names = BTreeSet::new();
        for format in formats.iter() {
            let (plan, mut class) = Plan::compile(format);
            if !names.insert(class.name.clone()) {
                // Two systems share a name: the second is told apart by its system.
                class.name = format!("{}_{}", format.system, format.name);
                names.insert(class.name.clone());
            }
            let index = compiled.classes.len() as u32;
            class.id = ClassId(index);
            compiled.classes.push(class);
            compiled.plans.push(plan);
            let id = usize::from(format.id);
            compiled
                .by_id
                .resize(compiled.by_id.len().max(id + 1), None);
            compiled.by_id[id] = Some(index);
            compiled.new_task = compiled.new_task.or_else(|| new_task(format));
        }
        compiled
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
