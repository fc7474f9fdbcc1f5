//! A kernel's trace as LTTng writes it, by hand: any byte order, word size and generation of names.

#![allow(dead_code)] // each test file uses its part

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A field and its value.
#[derive(Clone, Debug)]
pub enum Field {
    U32(u32),
    I32(i32),
    U64(u64),
    /// A C `long` of the traced machine.
    Long(i64),
    /// A C string.
    Text(String),
    /// A thread's name in 16 bytes.
    Comm(String),
}

/// Who wrote the trace, and on what machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub big_endian: bool,
    pub word_bytes: usize,
    /// LTTng 2.0's names.
    pub old_names: bool,
}

impl Dialect {
    /// A 64-bit machine of today.
    pub const TODAY: Dialect = Dialect {
        big_endian: false,
        word_bytes: 8,
        old_names: false,
    };

    fn number(self, value: u64, size_bytes: usize, out: &mut Vec<u8>) {
        match self.big_endian {
            true => out.extend_from_slice(&value.to_be_bytes()[8 - size_bytes..]),
            false => out.extend_from_slice(&value.to_le_bytes()[..size_bytes]),
        }
    }

    fn field(self, field: &Field, out: &mut Vec<u8>) {
        match field {
            Field::U32(value) => self.number(u64::from(*value), 4, out),
            Field::I32(value) => self.number(i64::from(*value) as u64, 4, out),
            Field::U64(value) => self.number(*value, 8, out),
            Field::Long(value) => self.number(*value as u64, self.word_bytes, out),
            Field::Text(text) => {
                out.extend_from_slice(text.as_bytes());
                out.push(0);
            }
            Field::Comm(text) => {
                let mut bytes = [0; 16];
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                out.extend_from_slice(&bytes);
            }
        }
    }

    /// What this generation calls an event of LTTng 2.8's.
    fn event_name(self, name: &str) -> String {
        if !self.old_names {
            return name.to_owned();
        }
        let name = match name.strip_prefix("syscall_entry_") {
            Some(call) => return format!("sys_{call}"),
            None if name.starts_with("syscall_exit_") => return "exit_syscall".to_owned(),
            None => name,
        };
        match name {
            "irq_softirq_raise" => "softirq_raise",
            "irq_softirq_entry" => "softirq_entry",
            "irq_softirq_exit" => "softirq_exit",
            "net_if_receive_skb" => "netif_receive_skb",
            "kmem_mm_page_alloc" => "mm_page_alloc",
            "kmem_mm_page_free" => "mm_page_free",
            "timer_hrtimer_expire_entry" => "hrtimer_expire_entry",
            "timer_hrtimer_expire_exit" => "hrtimer_expire_exit",
            name => name,
        }
        .to_owned()
    }

    fn metadata(self, declared: &BTreeMap<String, (u16, String)>) -> String {
        let order = if self.big_endian { "be" } else { "le" };
        let (word, minor) = (self.word_bytes * 8, if self.old_names { 0 } else { 13 });
        let mut text = format!(
            "/* CTF 1.8 */\n\
             typealias integer {{ size = 8; align = 8; }} := uint8_t;\n\
             typealias integer {{ size = 16; align = 8; }} := uint16_t;\n\
             typealias integer {{ size = 32; align = 8; }} := uint32_t;\n\
             typealias integer {{ size = 32; align = 8; signed = true; }} := int32_t;\n\
             typealias integer {{ size = 64; align = 8; }} := uint64_t;\n\
             typealias integer {{ size = {word}; align = 8; }} := unsigned_long_t;\n\
             typealias integer {{ size = {word}; align = 8; signed = true; }} := long_t;\n\
             typealias integer {{ size = 8; align = 8; encoding = UTF8; }} := char_t;\n\
             trace {{ major = 1; minor = 8; byte_order = {order};\n\
             packet.header := struct {{ uint32_t magic; uint32_t stream_id; }}; }};\n\
             env {{ hostname = \"story\"; domain = \"kernel\"; tracer_name = \"lttng-modules\";\n\
             tracer_major = 2; tracer_minor = {minor}; tracer_patchlevel = 0; }};\n\
             clock {{ name = \"monotonic\"; freq = 1000000000; offset = 0; }};\n\
             typealias integer {{ size = 64; align = 8; map = clock.monotonic.value; }} \
             := stamp_t;\n\
             stream {{ id = 0;\n\
             packet.context := struct {{ stamp_t timestamp_begin; stamp_t timestamp_end;\n\
             uint64_t content_size; uint64_t packet_size; unsigned_long_t events_discarded;\n\
             uint32_t cpu_id; }};\n\
             event.header := struct {{ uint16_t id; stamp_t timestamp; }}; }};\n"
        );
        for (name, (id, fields)) in declared {
            let _ = writeln!(
                text,
                "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{\n\
                 {fields}}}; }};"
            );
        }
        text
    }
}

/// An event of the story, by LTTng 2.8's name.
#[derive(Clone, Debug)]
struct Event {
    at_ns: u64,
    cpu: u32,
    name: String,
    fields: Vec<(&'static str, Field)>,
}

/// What happened, event by event.
#[derive(Clone, Debug, Default)]
pub struct Story {
    events: Vec<Event>,
    at_ns: u64,
    cpu: u32,
    /// On a CPU, from an instant on: so many events are missing before the next one.
    lost: Vec<(u32, u64, u64)>,
}

/// A thread: its id, its name, its priority on the kernel's scale.
pub type Thread = (i32, &'static str, i32);

/// The idle task.
pub const IDLE: Thread = (0, "swapper", 120);

impl Story {
    /// Sets clock and CPU.
    pub fn at(mut self, us: u64, cpu: u32) -> Story {
        (self.at_ns, self.cpu) = (us * 1_000, cpu);
        self
    }

    /// Adds an event.
    pub fn event(mut self, name: &str, fields: &[(&'static str, Field)]) -> Story {
        self.events.push(Event {
            at_ns: self.at_ns,
            cpu: self.cpu,
            name: name.to_owned(),
            fields: fields.to_vec(),
        });
        self
    }

    /// The CPU goes from one task to the other, which leaves it in this state.
    pub fn switch(self, prev: Thread, state: i64, next: Thread) -> Story {
        self.event(
            "sched_switch",
            &[
                ("prev_comm", Field::Comm(prev.1.into())),
                ("prev_tid", Field::I32(prev.0)),
                ("prev_prio", Field::I32(prev.2 - 100)),
                ("prev_state", Field::Long(state)),
                ("next_comm", Field::Comm(next.1.into())),
                ("next_tid", Field::I32(next.0)),
                ("next_prio", Field::I32(next.2 - 100)),
            ],
        )
    }

    /// A task is woken for a CPU. Old generations write the kernel's own priority here.
    pub fn wakeup(self, task: Thread, cpu: i32) -> Story {
        self.event(
            "sched_wakeup",
            &[
                ("comm", Field::Comm(task.1.into())),
                ("tid", Field::I32(task.0)),
                ("prio", Field::I32(task.2 - 100)),
                ("target_cpu", Field::I32(cpu)),
            ],
        )
    }

    /// A system call begins.
    pub fn enters(self, call: &str, fields: &[(&'static str, Field)]) -> Story {
        self.event(&format!("syscall_entry_{call}"), fields)
    }

    /// It returns.
    pub fn returns(self, call: &str, ret: i64) -> Story {
        self.event(
            &format!("syscall_exit_{call}"),
            &[("ret", Field::Long(ret))],
        )
    }

    /// A softirq is raised, begins or ends.
    pub fn softirq(self, what: &str, vec: u32) -> Story {
        self.event(&format!("irq_softirq_{what}"), &[("vec", Field::U32(vec))])
    }

    /// An interrupt's handler begins.
    pub fn irq(self, irq: i32, name: &str) -> Story {
        let name = Field::Text(name.into());
        self.event(
            "irq_handler_entry",
            &[("irq", Field::I32(irq)), ("name", name)],
        )
    }

    /// It ends.
    pub fn irq_end(self, irq: i32) -> Story {
        let fields = [("irq", Field::I32(irq)), ("ret", Field::I32(1))];
        self.event("irq_handler_exit", &fields)
    }

    /// So many events are lost on this CPU from now on, before its next one.
    pub fn loses(mut self, count: u64) -> Story {
        self.lost.push((self.cpu, self.at_ns, count));
        self
    }

    /// The story without a CPU's stream.
    pub fn without_cpu(mut self, cpu: u32) -> Story {
        self.events.retain(|event| event.cpu != cpu);
        self
    }

    /// The story on a clock that stands still.
    pub fn at_once(mut self) -> Story {
        self.events.iter_mut().for_each(|event| event.at_ns = 1_000);
        self
    }

    /// Writes it as a trace.
    pub fn write(&self, dir: &Path, dialect: Dialect) {
        fs::create_dir_all(dir).expect("a folder");
        let mut declared = BTreeMap::new();
        let mut cpus: Vec<u32> = self.events.iter().map(|event| event.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            let bytes = self.stream(cpu, dialect, &mut declared);
            fs::write(dir.join(format!("channel0_{cpu}")), bytes).expect("written");
        }
        fs::write(dir.join("metadata"), dialect.metadata(&declared)).expect("written");
    }

    fn stream(
        &self,
        cpu: u32,
        dialect: Dialect,
        declared: &mut BTreeMap<String, (u16, String)>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let (mut discarded, mut packet) = (0, Vec::new());
        let (mut begin_ns, mut end_ns) = (0, 0);
        let mut lost = self.lost.iter().filter(|lost| lost.0 == cpu).peekable();
        for event in self.events.iter().filter(|event| event.cpu == cpu) {
            if let Some((_, at_ns, count)) = lost.next_if(|lost| lost.1 <= event.at_ns) {
                close(
                    dialect,
                    cpu,
                    (begin_ns, end_ns, discarded),
                    &packet,
                    &mut out,
                );
                packet.clear();
                discarded += count;
                begin_ns = *at_ns;
            }
            let name = dialect.event_name(&event.name);
            let next = u16::try_from(declared.len()).expect("few classes");
            let (id, _) = declared
                .entry(name)
                .or_insert_with(|| (next, fields_of(&event.fields)));
            dialect.number(u64::from(*id), 2, &mut packet);
            dialect.number(event.at_ns, 8, &mut packet);
            let is_wakeup = event.name == "sched_wakeup";
            for (field, value) in &event.fields {
                match value {
                    Field::I32(prio) if is_wakeup && *field == "prio" && dialect.old_names => {
                        dialect.field(&Field::I32(prio + 100), &mut packet);
                    }
                    value => dialect.field(value, &mut packet),
                }
            }
            end_ns = event.at_ns;
        }
        close(
            dialect,
            cpu,
            (begin_ns, end_ns, discarded),
            &packet,
            &mut out,
        );
        out
    }
}

fn fields_of(fields: &[(&'static str, Field)]) -> String {
    let declare = |(name, field): &(&str, Field)| match field {
        Field::U32(_) => format!("uint32_t _{name};\n"),
        Field::I32(_) => format!("int32_t _{name};\n"),
        Field::U64(_) => format!("uint64_t _{name};\n"),
        Field::Long(_) => format!("long_t _{name};\n"),
        Field::Text(_) => format!("string _{name};\n"),
        Field::Comm(_) => format!("char_t _{name}[16];\n"),
    };
    fields.iter().map(declare).collect()
}

/// Puts a packet around events.
fn close(
    dialect: Dialect,
    cpu: u32,
    (begin_ns, end_ns, discarded): (u64, u64, u64),
    events: &[u8],
    out: &mut Vec<u8>,
) {
    let head_bytes = 8 + 4 * 8 + dialect.word_bytes + 4;
    let bits = (head_bytes + events.len()) as u64 * 8;
    dialect.number(0xC1FC_1FC1, 4, out);
    dialect.number(0, 4, out);
    for value in [begin_ns, end_ns, bits, bits] {
        dialect.number(value, 8, out);
    }
    dialect.number(discarded, dialect.word_bytes, out);
    dialect.number(u64::from(cpu), 4, out);
    out.extend_from_slice(events);
}
