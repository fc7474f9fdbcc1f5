//! In which call stacks events happened, from the stacks that they carry as contexts.

use std::collections::BTreeMap;
use std::rc::Rc;

use event::{EventClass, FieldId, Value};
use trace::{EventView, Trace};

use super::options::ReportOptions;
use super::ordered::Ordered;
use kernel_state::{Change, FunctionId, Kernel};

/// More different stacks are counted for their threads and events alone.
const STACKS_MAX: usize = 1 << 18;
/// Functions of the kernel's tracing, which stand innermost in each of its stacks.
const TRACING: [&str; 4] = [
    "trace_event_",
    "__traceiter_",
    "ftrace_",
    "__ftrace_trace_stack",
];

/// Where the events of a class have their stacks.
#[derive(Clone, Copy, Debug)]
struct StackFields {
    kernel: Option<FieldId>,
    user: Option<FieldId>,
    pid: Option<FieldId>,
    tid: Option<FieldId>,
}

impl StackFields {
    fn of(class: &EventClass) -> Option<StackFields> {
        let fields = StackFields {
            kernel: class.field("callstack_kernel"),
            user: class.field("callstack_user"),
            pid: class.field("vpid").or_else(|| class.field("pid")),
            tid: class.field("vtid").or_else(|| class.field("tid")),
        };
        (fields.kernel.is_some() || fields.user.is_some()).then_some(fields)
    }
}

/// The classes of a trace whose events carry stacks.
pub(super) struct Carriers<'t> {
    trace: &'t Trace,
    by_class: Vec<Option<StackFields>>,
    kernel: Vec<u64>,
    user: Vec<u64>,
}

impl<'t> Carriers<'t> {
    /// None where no class has any.
    pub fn of(trace: &'t Trace) -> Option<Carriers<'t>> {
        let by_class: Vec<_> = trace.classes().iter().map(StackFields::of).collect();
        by_class.iter().any(Option::is_some).then(|| Carriers {
            trace,
            by_class,
            kernel: Vec::new(),
            user: Vec::new(),
        })
    }

    /// What an event's stacks say, before it takes effect: it happened in the task that had the
    /// CPU then.
    pub fn change(&mut self, kernel: &Kernel, event: &EventView<'_>) -> Option<Change<'_>> {
        let class = event.class().0 as usize;
        let fields = (*self.by_class.get(class)?)?;
        addresses(event, fields.kernel, &mut self.kernel);
        addresses(event, fields.user, &mut self.user);
        let running = || {
            let id = kernel.current(event.cpu()?.0)?;
            Some(kernel.process(id).tid)
        };
        let integer = |field: Option<FieldId>| Some(event.i64(field?) as i32);
        Some(Change::Stacks {
            event: &self.trace.classes()[class].name,
            tid: integer(fields.tid).or_else(running),
            pid: integer(fields.pid),
            kernel: &self.kernel,
            user: &self.user,
        })
    }
}

fn addresses(event: &EventView<'_>, field: Option<FieldId>, out: &mut Vec<u64>) {
    out.clear();
    let Some(Value::Array(values)) = field.map(|field| event.value(field)) else {
        return;
    };
    out.extend(values.iter().filter_map(|value| match value {
        Value::Unsigned(address) => Some(*address),
        _ => None,
    }));
}

pub(super) fn thread_name(kernel: &Kernel, tid: i32) -> String {
    match kernel.find(tid) {
        Some(id) if !kernel.process(id).comm.bytes().is_empty() => {
            format!("{} ({tid})", kernel.process(id).comm.text())
        }
        _ => format!("thread {tid}"),
    }
}

/// What makes two stacks one before they have names.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    event: Rc<str>,
    tid: Option<i32>,
    pid: Option<i32>,
    kernel: Box<[u64]>,
    user: Box<[u64]>,
}

/// How many events happened in which stack.
#[derive(Debug, Default)]
pub(super) struct EventStacks {
    /// And when the first of them did.
    counts: Ordered<Key, (u64, i64)>,
    names: BTreeMap<String, Rc<str>>,
}

impl EventStacks {
    pub fn count(&mut self, kernel: &Kernel, change: &Change<'_>) {
        let Change::Stacks {
            event,
            tid,
            pid,
            kernel: of_kernel,
            user,
        } = *change
        else {
            return;
        };
        let new = || (event.to_owned(), Rc::from(event));
        if !self.names.contains_key(event) {
            self.names.extend([new()]);
        }
        let is_full = self.counts.len() >= STACKS_MAX;
        let mut key = Key {
            event: Rc::clone(&self.names[event]),
            tid,
            pid,
            kernel: of_kernel.into(),
            user: user.into(),
        };
        if is_full && !self.counts.contains_key(&key) {
            (key.kernel, key.user) = (Box::default(), Box::default());
        }
        self.counts.entry(key).or_insert((0, kernel.now_ns())).0 += 1;
    }

    /// Each stack from the outermost function to the event, with semicolons between, and how many
    /// events happened in it.
    pub fn rows(&self, kernel: &Kernel, options: &ReportOptions) -> BTreeMap<String, u64> {
        let mut rows = BTreeMap::new();
        for (key, (count, first_ns)) in &self.counts {
            let mut names = vec![match key.tid {
                Some(tid) => thread_name(kernel, tid),
                None => "unknown thread".to_owned(),
            }];
            let of_user = key.user.iter().enumerate().map(|(place, address)| {
                // All but the innermost are where calls return to, which may be the next function.
                let called = address.saturating_sub(u64::from(place > 0));
                let name = key
                    .pid
                    .and_then(|pid| options.code.function(pid, *first_ns, called));
                name.unwrap_or_else(|| format!("{address:#x}"))
            });
            names.extend(of_user.rev());
            let of_kernel = key.kernel.iter().map(|address| {
                let address = address.saturating_sub(1);
                kernel.function_name(FunctionId { pid: None, address })
            });
            let is_tracing = |name: &String| TRACING.iter().any(|begin| name.starts_with(begin));
            let of_kernel: Vec<String> = of_kernel.skip_while(is_tracing).collect();
            names.extend(of_kernel.into_iter().rev());
            names.push(key.event.to_string());
            let names: Vec<String> = names.iter().map(|name| name.replace(';', ":")).collect();
            *rows.entry(names.join(";")).or_insert(0) += count;
        }
        rows
    }
}
