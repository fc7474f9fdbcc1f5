//! Which programs and libraries lay where in which process, and since when; pure over events.

use std::collections::HashMap;
use std::sync::Arc;

use event::{ClassId, FieldId, Instant, Result, TimeRange, Value};
use trace::{EventView, Item, Trace};

/// A program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Binary {
    /// Its file, as the process called it.
    pub path: String,
    /// What tells this build from others; empty when nobody said.
    pub build_id: Vec<u8>,
}

/// A binary in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Since when, as far as is known.
    pub since: Instant,
    /// Where it begins.
    pub begin: u64,
    /// How many bytes it spans.
    pub size_bytes: u64,
    /// What it is.
    pub binary: Arc<Binary>,
}

impl Mapped {
    fn holds(&self, address: u64) -> bool {
        address
            .checked_sub(self.begin)
            .is_some_and(|offset| offset < self.size_bytes)
    }
}

/// The maps of all processes of a trace.
#[derive(Clone, Debug, Default)]
pub struct ProcessMaps {
    processes: HashMap<i32, Process>,
    /// The process of each thread, as processes number themselves.
    process_of: HashMap<i32, i32>,
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// In the order in which they were told.
    objects: Vec<Mapped>,
    /// When a process of this id began to tell what it has.
    starts: Vec<Instant>,
}

/// What an event tells of a map.
#[derive(Clone, Copy)]
enum Told {
    Start,
    Object {
        begin: FieldId,
        size: FieldId,
        path: FieldId,
        /// Where the same event says which build it is.
        id: Option<FieldId>,
    },
    BuildId {
        begin: FieldId,
        id: FieldId,
    },
    /// The process is that of a thread.
    Thread {
        tid: FieldId,
    },
}

/// An event class that tells of maps, and who it is about.
struct Teller {
    told: Told,
    pid: Pid,
}

#[derive(Clone, Copy)]
enum Pid {
    Field(FieldId),
    /// All events are of one process.
    Known(i32),
}

impl ProcessMaps {
    /// Takes the maps out of `trace`; empty when it tells of none.
    ///
    /// # Errors
    /// What reading the trace says.
    pub fn read(trace: &Trace) -> Result<ProcessMaps> {
        let tellers: Vec<_> = trace
            .classes()
            .iter()
            .map(|class| teller(trace, class))
            .collect();
        let mut maps = ProcessMaps::default();
        let of_objects = |teller: &Teller| !matches!(teller.told, Told::Thread { .. });
        if !tellers.iter().flatten().any(of_objects) {
            return Ok(maps);
        }
        let tells = |class: ClassId| tellers.get(class.0 as usize).is_some_and(Option::is_some);
        let mut cursor = trace.cursor_of(TimeRange::ALL, tells);
        while let Some(item) = cursor.next()? {
            if let Item::Event(event) = item
                && let Some(Some(teller)) = tellers.get(event.class().0 as usize)
            {
                maps.tell(teller, &event);
            }
        }
        Ok(maps)
    }

    fn tell(&mut self, teller: &Teller, event: &EventView<'_>) {
        let pid = match teller.pid {
            Pid::Field(field) => event.i64(field) as i32,
            Pid::Known(pid) => pid,
        };
        match teller.told {
            Told::Start => self.start(pid, event.time()),
            Told::Object {
                begin,
                size,
                path,
                id,
            } => {
                let path = String::from_utf8_lossy(event.text(path)).into_owned();
                let binary = Binary {
                    path,
                    build_id: id.map(|id| bytes(&event.value(id))).unwrap_or_default(),
                };
                let mapped = Mapped {
                    since: event.time(),
                    begin: event.u64(begin),
                    size_bytes: event.u64(size),
                    binary: Arc::new(binary),
                };
                self.add(pid, mapped);
            }
            Told::Thread { tid } => {
                self.process_of.insert(event.i64(tid) as i32, pid);
            }
            Told::BuildId { begin, id } => {
                let id = bytes(&event.value(id));
                self.built(pid, event.u64(begin), &id);
            }
        }
    }

    /// The process of a thread; the thread's own number where nothing says it.
    pub fn process_of(&self, tid: i32) -> i32 {
        self.process_of.get(&tid).copied().unwrap_or(tid)
    }

    /// A process `pid` begins to say what it has.
    pub fn start(&mut self, pid: i32, at: Instant) {
        self.processes.entry(pid).or_default().starts.push(at);
    }

    /// The process `pid` has another object; those that it replaces stay, for the time before.
    pub fn add(&mut self, pid: i32, mapped: Mapped) {
        self.processes.entry(pid).or_default().objects.push(mapped);
    }

    /// The build id of the last object at `begin`.
    fn built(&mut self, pid: i32, begin: u64, build_id: &[u8]) {
        let objects = self.processes.get_mut(&pid).map(|p| &mut p.objects);
        let mut last = objects.into_iter().flatten().rev();
        if let Some(mapped) = last.find(|mapped| mapped.begin == begin) {
            Arc::make_mut(&mut mapped.binary).build_id = build_id.to_vec();
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.processes
            .values()
            .all(|process| process.objects.is_empty())
    }

    /// What lay at `address` of the process `pid` at `at`: the last that was told by then, else the
    /// first that was told later, for telling takes a while. What was told before the process's own
    /// start belongs to another process of its id.
    pub fn find(&self, pid: i32, at: Instant, address: u64) -> Option<&Mapped> {
        let process = self.processes.get(&pid)?;
        let begin = process.starts.iter().filter(|start| **start <= at).max();
        let end = process.starts.iter().filter(|start| **start > at).min();
        let own = |mapped: &&Mapped| {
            begin.is_none_or(|begin| mapped.since >= *begin)
                && end.is_none_or(|end| mapped.since < *end)
        };
        let objects = || process.objects.iter().filter(own);
        let holds = |mapped: &&Mapped| mapped.holds(address);
        let before = objects().filter(|mapped| mapped.since <= at);
        // The last of equals: it was told last.
        let before = before.filter(holds).max_by_key(|mapped| mapped.since);
        let after = || objects().filter(holds).min_by_key(|mapped| mapped.since);
        before.or_else(after)
    }
}

fn teller(trace: &Trace, class: &event::EventClass) -> Option<Teller> {
    if class.name == "lttng_statedump_process_state" {
        let pid = class.field("vpid").or_else(|| class.field("pid"))?;
        return Some(Teller {
            told: Told::Thread {
                tid: class.field("tid")?,
            },
            pid: Pid::Field(pid),
        });
    }
    if class.name == "rtscope_statedump_program" {
        return Some(Teller {
            told: Told::Object {
                begin: class.field("baddr")?,
                size: class.field("memsz")?,
                path: class.field("path")?,
                id: class.field("build_id"),
            },
            pid: Pid::Field(class.field("pid")?),
        });
    }
    let (provider, name) = class.name.split_once(':')?;
    if !matches!(
        provider,
        "lttng_ust_statedump" | "lttng_ust_lib" | "lttng_ust_dl"
    ) {
        return None;
    }
    let field = |name: &str| class.field(name);
    let told = match name {
        "start" => Told::Start,
        "bin_info" | "load" | "dlopen" | "dlmopen" => Told::Object {
            begin: field("baddr")?,
            size: field("memsz")?,
            path: field("path")?,
            id: None,
        },
        "build_id" => Told::BuildId {
            begin: field("baddr")?,
            id: field("build_id")?,
        },
        _ => return None,
    };
    let known = || {
        let vpid = trace.environment_of(class.id).get("vpid")?;
        vpid.parse().ok().map(Pid::Known)
    };
    let pid = field("vpid").map(Pid::Field).or_else(known)?;
    Some(Teller { told, pid })
}

fn bytes(value: &Value<'_>) -> Vec<u8> {
    match value {
        Value::Array(values) => values
            .iter()
            .filter_map(|value| u8::try_from(value.as_u64()?).ok())
            .collect(),
        Value::Blob(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(starts: &[i64], objects: &[(i64, u64, u64, &str)]) -> ProcessMaps {
        let mut maps = ProcessMaps::default();
        for start in starts {
            maps.start(7, Instant::from_ns(*start));
        }
        for (since, begin, size_bytes, path) in objects {
            let binary = Binary {
                path: (*path).to_owned(),
                build_id: Vec::new(),
            };
            maps.add(
                7,
                Mapped {
                    since: Instant::from_ns(*since),
                    begin: *begin,
                    size_bytes: *size_bytes,
                    binary: Arc::new(binary),
                },
            );
        }
        maps
    }

    fn check(maps: &ProcessMaps, at: i64, address: u64, expect: Option<&str>) {
        let found = maps.find(7, Instant::from_ns(at), address);
        let found = found.map(|mapped| mapped.binary.path.as_str());
        assert_eq!(found, expect, "{address:#x} at {at}");
    }

    #[test]
    fn of_objects_at_one_address_the_one_of_that_time_counts() {
        let maps = maps(
            &[0],
            &[(1, 100, 50, "a"), (10, 120, 50, "b"), (10, 300, 10, "c")],
        );
        check(&maps, 5, 130, Some("a"));
        check(&maps, 10, 130, Some("b"));
        check(&maps, 10, 110, Some("a"));
        check(&maps, 20, 99, None);
        check(&maps, 20, 170, None);
        // Told too late for the time before, but nothing else was there.
        check(&maps, 5, 305, Some("c"));
        assert!(maps.find(8, Instant::from_ns(5), 130).is_none());
    }

    #[test]
    fn a_thread_belongs_to_the_process_that_the_kernels_state_dump_says() {
        let fields = [("tid", Value::Signed(8)), ("pid", Value::Signed(7))];
        let object = [
            ("vpid", Value::Signed(7)),
            ("baddr", Value::Unsigned(100)),
            ("memsz", Value::Unsigned(50)),
            ("path", Value::Text("a".into())),
        ];
        let trace = testkit::SyntheticTrace::new()
            .event("lttng_statedump_process_state", &fields)
            .event("lttng_ust_statedump:bin_info", &object);
        let maps = ProcessMaps::read(&trace.build()).expect("read");
        assert_eq!((maps.process_of(8), maps.process_of(9)), (7, 9));
        check(&maps, 5, 110, Some("a"));
    }

    #[test]
    fn what_another_process_of_the_same_id_had_is_not_looked_at() {
        let maps = maps(&[0, 100], &[(0, 100, 50, "old"), (100, 500, 50, "new")]);
        check(&maps, 50, 110, Some("old"));
        check(&maps, 50, 510, None);
        check(&maps, 150, 110, None);
        check(&maps, 150, 510, Some("new"));
    }

    #[test]
    fn an_object_at_the_end_of_memory_holds_what_it_spans() {
        let maps = maps(&[], &[(0, u64::MAX - 1, u64::MAX, "end")]);
        check(&maps, 0, u64::MAX, Some("end"));
        check(&maps, 0, 0, None);
    }
}
