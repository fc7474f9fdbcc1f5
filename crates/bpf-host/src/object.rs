//! From the embedded bytes to loaded and attached programs, with errors that say what is missing.

use std::cell::RefCell;

use abi::raw;
use event::{Error, ErrorKind, Result};
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::action::Action;
use crate::features::Features;
use crate::packed::{Packed, packed};

/// The watch's programs, as `build.rs` compiled them.
pub(crate) const WATCH: Packed = packed!("watch");
/// The programs that split a measuring thread's latency.
pub(crate) const PHASES: Packed = packed!("phases");
/// The programs that count what takes a CPU.
pub(crate) const INTERRUPTIONS: Packed = packed!("interruptions");
/// The programs that record system calls.
pub(crate) const SYSCALLS: Packed = packed!("syscalls");
/// The programs that count phases for the monitor.
pub(crate) const MONITOR: Packed = packed!("monitor");
/// The program that reads contexts at events.
pub(crate) const CONTEXTS: Packed = packed!("contexts");
/// The empty programs.
pub(crate) const EMPTY: Packed = packed!("empty");

/// Maps of the chain, which the shared headers bring along into every object.
const CHAIN_MAPS: [&str; 10] = [
    "tasks",
    "waker_stacks",
    "cpus",
    "softirqs",
    "counters",
    "resched",
    "stop_requests",
    "steals",
    "evidence",
    "hits",
];

/// Whether only the chain's own programs use this map: others leave it out.
pub(crate) fn is_of_chain(map: &str) -> bool {
    CHAIN_MAPS.contains(&map)
}

thread_local! {
    /// The end of what libbpf and the verifier said last to this thread; it becomes the cause of a
    /// load's error. They say it on the thread that called them.
    static TALK: RefCell<String> = const { RefCell::new(String::new()) };
}
const TALK_BYTES_MAX: usize = 4096;

fn listen(_level: PrintLevel, message: String) {
    TALK.with_borrow_mut(|talk| {
        talk.push_str(&message);
        let surplus = talk.len().saturating_sub(TALK_BYTES_MAX);
        let cut = (surplus..talk.len())
            .find(|at| talk.is_char_boundary(*at))
            .unwrap_or(0);
        talk.drain(..cut);
    });
}

/// What libbpf said to this thread since the last time.
pub(crate) fn heard() -> String {
    TALK.take()
}

/// From here on [`heard`] has what libbpf says.
pub(crate) fn listen_anew() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
    heard();
}

/// Opens an embedded object; nothing is in the kernel yet.
pub(crate) fn open(packed: Packed) -> Result<OpenObject> {
    open_bytes(&packed.unpacked()?)
}

fn open_bytes(bytes: &[u8]) -> Result<OpenObject> {
    listen_anew();
    ObjectBuilder::default()
        .open_memory(bytes)
        .map_err(|error| explain("open", &error))
}

/// Loads exactly the programs that `wanted` names.
pub(crate) fn load(mut object: OpenObject, wanted: impl Fn(&str) -> bool) -> Result<Object> {
    for mut program in object.progs_mut() {
        let load = program.name().to_str().is_some_and(&wanted);
        program.set_autoload(load);
    }
    object.load().map_err(|error| explain("load", &error))
}

/// Opens an object with the user's action in it, if there is one.
pub(crate) fn open_with(bytes: &[u8], action: Option<&Action>) -> Result<OpenObject> {
    match action {
        Some(action) => open_bytes(&action.link(bytes)?),
        None => open_bytes(bytes),
    }
}

/// As [`load`], of an object with this action in it.
pub(crate) fn load_with(
    object: OpenObject,
    action: Option<&Action>,
    wanted: impl Fn(&str) -> bool,
) -> Result<Object> {
    load(object, wanted).map_err(|error| match action {
        Some(action) => action.refused(error),
        None => error,
    })
}

/// Where programs are attached by the kernel's own types.
const PLACES: [&[u8]; 3] = [b"tp_btf/", b"fentry/", b"fexit/"];

/// Attaches every loaded program at a tracepoint or a function that `chosen` names.
pub(crate) fn attach(object: &Object, chosen: impl Fn(&str) -> bool) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let section = program.section().as_encoded_bytes();
        let has_place = PLACES.iter().any(|place| section.starts_with(place));
        if has_place && program.name().to_str().is_some_and(&chosen) {
            links.push(
                program
                    .attach()
                    .map_err(|error| explain("attach", &error))?,
            );
        }
    }
    Ok(links)
}

/// Writes the configuration into the object's read-only data.
pub(crate) fn configure<T: raw::Plain>(object: &mut OpenObject, config: &T) -> Result<()> {
    let bytes = raw::bytes(config);
    for mut map in object.maps_mut() {
        if !map
            .name()
            .to_str()
            .is_some_and(|name| name.ends_with(".rodata"))
        {
            continue;
        }
        if let Some(place) = map
            .initial_value_mut()
            .and_then(|data| data.get_mut(..bytes.len()))
        {
            place.copy_from_slice(bytes);
            return Ok(());
        }
    }
    Err(foreign(
        "its read-only data are too small for the configuration",
    ))
}

/// Gives every per-CPU-number array its length.
pub(crate) fn size_arrays(object: &mut OpenObject, names: &[&str], length: u32) -> Result<()> {
    for mut map in object.maps_mut() {
        if map
            .name()
            .to_str()
            .is_some_and(|name| names.contains(&name))
        {
            map.set_max_entries(length)
                .map_err(|error| explain("size", &error))?;
        }
    }
    Ok(())
}

/// The map `name` of a loaded object.
pub(crate) fn map<'o>(object: &'o Object, name: &str) -> Result<libbpf_rs::Map<'o>> {
    let mut maps = object.maps();
    maps.find(|map| map.name() == name)
        .ok_or_else(|| foreign(&format!("it has no map {name}")))
}

/// One value of a per-CPU array for each CPU.
pub(crate) fn per_cpu<T: raw::Plain>(object: &Object, name: &str, key: u32) -> Result<Vec<T>> {
    let values = map(object, name)?
        .lookup_percpu(&key.to_ne_bytes(), libbpf_rs::MapFlags::ANY)
        .map_err(|error| explain("read", &error))?;
    Ok(values
        .unwrap_or_default()
        .iter()
        .filter_map(|bytes| raw::read(bytes))
        .collect())
}

pub(crate) fn foreign(found: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "the embedded BPF object is not the one that was built with this",
    )
    .found(found)
    .fix("cargo clean -p bpf-host && cargo build")
}

/// An object needs so many open files for its maps, programs and links at most.
const FILES_OF_AN_OBJECT: u64 = 128;

/// That too few files may be open, where it may be so. What was opened until an error came is
/// closed by now.
fn has_few_files() -> Option<(ErrorKind, String, String)> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    let fix = limit.max(1024).saturating_mul(2);
    (limit.saturating_sub(open) < FILES_OF_AN_OBJECT).then(|| {
        (
            ErrorKind::StorageFull,
            format!("{open} files are open, and the limit is {limit}"),
            format!("ulimit -n {fix}"),
        )
    })
}

/// An error of libbpf with the fact that explains it.
pub(crate) fn explain(verb: &str, error: &libbpf_rs::Error) -> Error {
    let talk = heard();

    let reason = has_few_files().or_else(|| Features::probe_basics().explanation());
    let (kind, found, fix) = reason.unwrap_or_else(|| {
        // With all capabilities, a refusal comes from the verifier, whose last words say why.
        let kind = match error.kind() {
            libbpf_rs::ErrorKind::OutOfMemory => ErrorKind::StorageFull,
            _ => ErrorKind::Unsupported,
        };
        let words = talk
            .lines()
            .rfind(|line| line.starts_with("processed "))
            .and_then(|_| {
                let before = talk
                    .lines()
                    .take_while(|line| !line.starts_with("processed "));
                before.last()
            });
        let found = words.map_or_else(|| error.to_string(), |words| format!("{error}: {words}"));
        (kind, found, "rtscope doctor".to_owned())
    });
    let cause = std::io::Error::other(format!("{error:#}\n{talk}"));
    Error::new(kind, format!("cannot {verb} the BPF programs"))
        .found(found)
        .fix(fix)
        .cause(cause)
}
