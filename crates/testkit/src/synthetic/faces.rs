//! The same events as other tracers write them.

use std::sync::Arc;

use event::{EventClass, Field, FieldType, Integer, Scope, Value};

use super::SyntheticTrace;

/// LTTng's name of a field, and the kernel's.
const FIELDS: [(&str, &str); 5] = [
    ("tid", "pid"),
    ("prev_tid", "prev_pid"),
    ("next_tid", "next_pid"),
    ("parent_tid", "parent_pid"),
    ("child_tid", "child_pid"),
];
/// Fields that hold a priority, which LTTng writes less 100.
const PRIOS: [&str; 5] = ["prio", "prev_prio", "next_prio", "oldprio", "newprio"];

impl SyntheticTrace {
    /// As `perf data convert --to-ctf` writes what was added so far: the kernel's own names and
    /// values, behind the subsystem's name.
    pub fn by_perf(mut self) -> Self {
        for event in &mut self.trace.events {
            let class = &self.trace.classes[event.class.0 as usize];
            for (field, value) in class.fields.iter().zip(&mut event.values) {
                if let (true, Value::Signed(prio)) = (PRIOS.contains(&field.name.as_str()), value) {
                    *prio += 100;
                }
            }
            event.values.extend([Value::Unsigned(1), Value::Signed(0)]);
        }
        self.trace.classes.iter_mut().for_each(rename);
        self
    }

    /// A class that the trace declares and has no event of: its fields are those of `like`.
    pub fn declares(mut self, name: &str, like: &str) -> Self {
        let mut classes = self.trace.classes.iter();
        let fields = classes.find(|class| class.name == like);
        let fields: Arc<[Field]> = fields.map(|class| class.fields.clone()).unwrap_or_default();
        let id = event::ClassId(self.trace.classes.len() as u32);
        self.trace.classes.push(EventClass {
            id,
            name: name.to_owned(),
            stream: 0,
            fields,
        });
        self
    }
}

fn rename(class: &mut EventClass) {
    // Our own recorder's, which perf has none of.
    if class.name.starts_with("rtscope_") {
        return;
    }
    class.name = kernel_name(&class.name);
    let named = |field: &Field| {
        let kernel = FIELDS.iter().find(|(lttng, _)| field.name == *lttng);
        let name = kernel.map_or(field.name.as_str(), |(_, kernel)| kernel);
        let name = match field.scope {
            Scope::StreamContext => "perf_tid",
            _ => name,
        };
        Field::payload(name, field.ty.clone())
    };
    let mut fields: Vec<Field> = class.fields.iter().map(named).collect();
    for (name, signed) in [("common_type", false), ("common_pid", true)] {
        fields.push(Field::payload(
            name,
            FieldType::Integer(Integer::le(32, signed)),
        ));
    }
    class.fields = fields.into();
}

/// `SUBSYSTEM:EVENT`, as perf names LTTng's event.
fn kernel_name(name: &str) -> String {
    let call = |prefix| name.strip_prefix(prefix);
    if let Some(call) = call("syscall_entry_") {
        return format!("syscalls:sys_enter_{call}");
    }
    if let Some(call) = call("syscall_exit_") {
        return format!("syscalls:sys_exit_{call}");
    }
    match name.split_once('_') {
        Some(("irq", softirq)) if softirq.starts_with("softirq") => format!("irq:{softirq}"),
        Some((system, _)) => format!("{system}:{name}"),
        None => format!("sched:{name}"),
    }
}
