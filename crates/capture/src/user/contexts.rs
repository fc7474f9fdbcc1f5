//! What events of applications carry besides their fields, by LTTng's names.
//!
//! A record holds who wrote it and where in the code. The rest is asked of the kernel by the
//! recorder, thread by thread, so that no traced thread makes a system call for it: a value can be
//! [`REFRESH`] and a look into the rings old (docs/contexts.md).

use std::collections::HashMap;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use ctf::writer::PayloadWriter;
use event::{Error, ErrorKind, Field, FieldType, Integer, IntegerMapping, Result, Scope};
use ring::RingFile;

use super::proc::{HostProcess, IDS, ThreadFacts, UNKNOWN_ID};

/// How old the facts of a thread may be when they are written beside its events.
const REFRESH: StdDuration = StdDuration::from_millis(100);
/// Of more threads than this the facts are forgotten and asked anew.
const THREADS_MAX: usize = 1 << 16;
/// The priority and the policy of a thread that was gone before anybody asked.
const UNKNOWN_PRIO: i32 = i32::MIN;
const UNKNOWN_POLICY: i32 = -1;
/// The policies by their numbers.
const POLICIES: [(&str, i64); 7] = [
    ("unknown", UNKNOWN_POLICY as i64),
    ("SCHED_OTHER", 0),
    ("SCHED_FIFO", 1),
    ("SCHED_RR", 2),
    ("SCHED_BATCH", 3),
    ("SCHED_IDLE", 5),
    ("SCHED_DEADLINE", 6),
];
/// The namespaces of a process, by the names of their contexts and of their files.
const NAMESPACES: [(&str, &str); 8] = [
    ("cgroup_ns", "cgroup"),
    ("ipc_ns", "ipc"),
    ("mnt_ns", "mnt"),
    ("net_ns", "net"),
    ("pid_ns", "pid"),
    ("time_ns", "time"),
    ("user_ns", "user"),
    ("uts_ns", "uts"),
];

/// Users and groups of a thread, in the order of [`ThreadFacts::ids`].
const ID_NAMES: [&str; IDS] = ["vuid", "veuid", "vsuid", "vgid", "vegid", "vsgid"];

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Vpid,
    Vtid,
    Cpu,
    Ip,
    Procname,
    Prio,
    Policy,
    /// A place among [`ID_NAMES`].
    Id(usize),
    /// A place among [`NAMESPACES`].
    Namespace(usize),
}

/// Those that every event has, in front of all others.
const ALWAYS: [Context; 2] = [Context::Vpid, Context::Vtid];
/// Those with a name of their own.
const NAMED: [(&str, Context); 7] = [
    ("vpid", Context::Vpid),
    ("vtid", Context::Vtid),
    ("cpu_id", Context::Cpu),
    ("ip", Context::Ip),
    ("procname", Context::Procname),
    ("prio", Context::Prio),
    ("policy", Context::Policy),
];

impl Context {
    fn parse(word: &str) -> Result<Context> {
        if let Some((_, context)) = NAMED.iter().find(|(name, _)| *name == word) {
            return Ok(*context);
        }
        if let Some(place) = NAMESPACES.iter().position(|(name, _)| *name == word) {
            return Ok(Context::Namespace(place));
        }
        if let Some(place) = ID_NAMES.iter().position(|name| *name == word) {
            return Ok(Context::Id(place));
        }
        if word == "pthread_id" {
            return Err(no_pthread_id());
        }
        if word.starts_with("perf:") {
            return Err(no_counters(word));
        }
        let known = NAMED.iter().map(|(name, _)| *name);
        let known: Vec<_> = known
            .chain(ID_NAMES)
            .chain(NAMESPACES.iter().map(|(name, _)| *name))
            .collect();
        Err(
            Error::new(ErrorKind::InvalidInput, "not a context of applications")
                .found(format!("'{word}'"))
                .fix(format!("one of {}", known.join(", "))),
        )
    }

    fn name(self) -> &'static str {
        match self {
            Context::Namespace(place) => NAMESPACES[place].0,
            Context::Id(place) => ID_NAMES[place],
            named => NAMED
                .iter()
                .find(|(_, context)| *context == named)
                .map_or("", |(name, _)| name),
        }
    }

    /// Whether only the recorder knows it, and a filter that asks for it is the recorder's.
    pub fn is_recorders(self) -> bool {
        matches!(
            self,
            Context::Procname | Context::Prio | Context::Policy | Context::Id(_)
        )
    }

    /// As a field of the stream's event context.
    pub fn field(self) -> Field {
        let ty = match self {
            Context::Vpid | Context::Vtid | Context::Cpu | Context::Prio => {
                FieldType::Integer(Integer::le(32, true))
            }
            Context::Ip => FieldType::Integer(Integer::hex(64)),
            Context::Procname => FieldType::Text { size_bytes: 16 },
            Context::Policy => {
                let label = |(label, value): &(&str, i64)| IntegerMapping {
                    label: (*label).to_owned(),
                    first: *value,
                    last: *value,
                };
                FieldType::Enum(Integer::le(32, true), POLICIES.iter().map(label).collect())
            }
            Context::Id(_) => FieldType::Integer(Integer::le(32, false)),
            Context::Namespace(_) => FieldType::Integer(Integer::le(64, false)),
        };
        Field {
            name: self.name().into(),
            scope: Scope::StreamContext,
            ty,
        }
    }

    /// All of them, as filters know them.
    pub fn all() -> Vec<Context> {
        let namespaces = (0..NAMESPACES.len()).map(Context::Namespace);
        let named = NAMED.iter().map(|(_, context)| *context);
        let ids = (0..ID_NAMES.len()).map(Context::Id);
        named.chain(ids).chain(namespaces).collect()
    }
}

/// The kernel does not know it, and records have no room for it.
fn no_pthread_id() -> Error {
    let what = "only the thread itself knows its pthread_id";
    Error::new(ErrorKind::Unsupported, what)
        .found("'pthread_id'")
        .fix("take vtid, which every event has: it names the thread as gettid does")
}

/// Performance counters would be read by the traced thread itself.
fn no_counters(word: &str) -> Error {
    let machine = "this machine lets no program read performance counters";
    match counter() {
        Err(cause) => Error::io(format!("cannot record {word}: {machine}"), cause)
            .fix("record on a machine where 'perf stat -e cycles true' counts"),
        Ok(()) => Error::new(
            ErrorKind::Unsupported,
            "performance counters are no context of applications yet",
        )
        .found(format!("'{word}'"))
        .fix("leave it out, and count beside the recording with perf stat"),
    }
}

/// Tries to count the cycles of this thread.
fn counter() -> std::io::Result<()> {
    /// `struct perf_event_attr` in its first published size; the rest is zero.
    const ATTR_BYTES: usize = 64;
    let mut attr = [0_u8; ATTR_BYTES];
    // Type 0 is hardware, configuration 0 its cycles.
    attr[4..8].copy_from_slice(&(ATTR_BYTES as u32).to_le_bytes());
    let (this_thread, any_cpu, no_group, no_flags) = (0, -1, -1, 0);
    // SAFETY: the attribute lives through the call and says its own size.
    let counter = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attr.as_ptr(),
            this_thread,
            any_cpu,
            no_group,
            no_flags,
        )
    };
    if counter < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    unsafe { libc::close(counter as i32) };
    Ok(())
}

/// How the line of a session's file begins that names the contexts.
const ANNOUNCED: &str = "!context ";

/// The line of a session's file that names `contexts`; none without any.
pub(super) fn announced(contexts: &[Context]) -> Option<String> {
    let names: Vec<_> = contexts.iter().map(|context| context.name()).collect();
    (!names.is_empty()).then(|| format!("{ANNOUNCED}{}", names.join(",")))
}

/// The contexts that the lines of a session's file name. What is none is passed over: another
/// version may have written it.
pub(super) fn from_announced(lines: &[String]) -> Vec<Context> {
    let names = lines.iter().filter_map(|line| line.strip_prefix(ANNOUNCED));
    let names = names.flat_map(|names| names.split(','));
    let mut contexts = Vec::new();
    for context in names.filter_map(|name| Context::parse(name).ok()) {
        if !contexts.contains(&context) {
            contexts.push(context);
        }
    }
    contexts
}

/// The contexts of words such as `procname,prio`, without those that every event has.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a word that is none; what the kernel says of counters.
pub(super) fn parse(words: &[String]) -> Result<Vec<Context>> {
    let mut contexts = Vec::new();
    for word in words.iter().flat_map(|words| words.split(',')) {
        let context = Context::parse(word.trim())?;
        if !ALWAYS.contains(&context) && !contexts.contains(&context) {
            contexts.push(context);
        }
    }
    Ok(contexts)
}

/// The fields of `contexts`, behind those that every event has.
pub(super) fn fields(contexts: &[Context]) -> Vec<Field> {
    let all = ALWAYS.iter().chain(contexts);
    all.map(|context| context.field()).collect()
}

/// What a record says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub pid: i32,
    pub tid: i32,
    pub ring: u32,
    /// Where the event stands in the code; 0 where it stands nowhere.
    pub code_address: u64,
}

/// A thread, as of some moment.
struct Known {
    /// None when it was gone before it was asked about.
    facts: Option<ThreadFacts>,
    asked: StdInstant,
}

/// The contexts of one process's events.
#[derive(Default)]
pub(super) struct Contexts {
    host: Option<HostProcess>,
    threads: HashMap<i32, Known>,
    /// Of what the kernel calls them, by the places of [`NAMESPACES`]; 0 where nobody knows.
    namespaces: [u64; NAMESPACES.len()],
    listed: Option<StdInstant>,
    /// Whether threads are asked about at all.
    is_wanted: bool,
}

impl Contexts {
    /// Of the process with the rings `file`; asks nothing where nothing is wanted.
    pub fn new(file: &RingFile, contexts: &[Context]) -> Contexts {
        let mut known = Contexts::default();
        if !contexts.is_empty() {
            known.begin(file);
        }
        known.is_wanted = contexts.iter().any(|context| context.is_recorders());
        known.refresh();
        known
    }

    fn begin(&mut self, file: &RingFile) {
        self.host = HostProcess::find(file);
        if let Some(host) = &self.host {
            self.namespaces = NAMESPACES.map(|(_, kind)| host.namespace(kind).unwrap_or(0));
        }
    }

    /// From now on threads are asked about: a filter needs it.
    pub fn want_threads(&mut self, file: &RingFile) {
        if self.host.is_none() {
            self.begin(file);
        }
        self.is_wanted = true;
        self.refresh();
    }

    /// The number of a namespace for a filter, which it does not leave.
    pub fn namespace(&mut self, place: usize, file: &RingFile) -> u64 {
        if self.host.is_none() {
            self.begin(file);
        }
        self.namespaces[place]
    }

    /// Asks about threads that came, before they may be gone again.
    pub fn refresh(&mut self) {
        let now = StdInstant::now();
        let is_due = |at: StdInstant| now.duration_since(at) >= REFRESH;
        let Some(host) = self.host.as_mut().filter(|_| self.is_wanted) else {
            return;
        };
        if !self.listed.is_none_or(is_due) {
            return;
        }
        self.listed = Some(now);
        if self.threads.len() > THREADS_MAX {
            self.threads.clear();
        }
        for tid in host.threads() {
            self.threads.entry(tid).or_insert_with(|| Known {
                facts: host.thread(tid),
                asked: now,
            });
        }
    }

    /// What is known of a thread, asked again when it is old.
    fn thread(&mut self, tid: i32, now: StdInstant) -> Option<&ThreadFacts> {
        let host = self.host.as_mut()?;
        let known = self.threads.entry(tid).or_insert_with(|| Known {
            facts: host.thread(tid),
            asked: now,
        });
        if now.duration_since(known.asked) >= REFRESH {
            known.asked = now;
            // Who is gone keeps what was known last.
            known.facts = host.thread(tid).or(known.facts.take());
        }
        known.facts.as_ref()
    }

    /// Appends the values of `contexts`; `now` is when the records were read. False when it is of a
    /// thread about which nothing is known.
    pub fn encode(
        &mut self,
        contexts: &[Context],
        origin: Origin,
        now: StdInstant,
        payload: &mut PayloadWriter,
    ) -> bool {
        let asks = contexts.iter().any(|context| context.is_recorders());
        let facts = asks
            .then(|| self.thread(origin.tid, now).cloned())
            .flatten();
        for context in contexts {
            match context {
                Context::Vpid => payload.i32(origin.pid),
                Context::Vtid => payload.i32(origin.tid),
                Context::Cpu => payload.i32(origin.ring as i32),
                Context::Ip => payload.u64(origin.code_address),
                Context::Procname => payload.text16(facts.as_ref().map_or("", |f| &f.name)),
                Context::Prio => payload.i32(facts.as_ref().map_or(UNKNOWN_PRIO, |f| f.prio)),
                Context::Policy => payload.i32(facts.as_ref().map_or(UNKNOWN_POLICY, |f| f.policy)),
                Context::Id(place) => {
                    payload.u32(facts.as_ref().map_or(UNKNOWN_ID, |f| f.ids[*place]))
                }
                Context::Namespace(place) => payload.u64(self.namespaces[*place]),
            };
        }
        !asks || facts.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_go_by_lttngs_names_and_nothing_else_is_one() {
        let words = |text: &str| vec![text.to_owned()];
        let names = |text: &str| -> Vec<String> {
            let contexts = parse(&words(text)).expect("contexts");
            fields(&contexts)
                .into_iter()
                .map(|field| field.name.to_string())
                .collect()
        };
        assert_eq!(
            names("procname, prio,vtid,pid_ns,prio"),
            ["vpid", "vtid", "procname", "prio", "pid_ns"]
        );
        for context in Context::all() {
            assert_eq!(
                Context::parse(context.name()).expect("its own name"),
                context
            );
        }
        for word in ["", "pthread", "PRIO", "ns"] {
            let error = parse(&words(word)).expect_err("no context");
            let error = format!("{error:#}");
            assert!(error.contains("one of vpid, vtid"), "{error}");
        }
        // Whatever this machine has: no word for what cannot be recorded is accepted.
        let error = parse(&words("perf:thread:cycles")).expect_err("no counters");
        assert!(format!("{error:#}").contains("perf stat"), "{error:#}");
    }
}
