//! An open trace: what is known of it before any event is read, and fields bound by name.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::Arc;

use event::{ClassId, Duration, EventClass, FieldId, Instant, Result, Scope, TimeRange};
use face::{Accessor, Kind};
use trace::{Root, Trace};

use crate::border::{call, list, text};
use crate::error::CError;
use crate::handle::{ask, c_string, drop_handle, give_handle, handle, null_pointer};

/// How to open a trace; the header's `struct rtscope_open_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// `sizeof` of this structure in the caller.
    pub size: usize,
    /// To add to the wall clock.
    pub clock_offset_ns: i64,
    /// Not 0: only the time in which all streams of a trace have packets.
    pub intersection: c_int,
}

/// The kinds of fields, as the header calls and numbers them.
pub const FIELD_KINDS: &[(&str, c_int)] = &[
    ("RTSCOPE_UNSIGNED", 1),
    ("RTSCOPE_SIGNED", 2),
    ("RTSCOPE_FLOAT", 3),
    ("RTSCOPE_TEXT", 4),
    ("RTSCOPE_OTHER", 5),
];

/// Where fields live, as the header calls and numbers it.
pub const SCOPES: &[(&str, c_int)] = &[
    ("RTSCOPE_PAYLOAD", 1),
    ("RTSCOPE_EVENT_CONTEXT", 2),
    ("RTSCOPE_EVENT_HEADER", 3),
    ("RTSCOPE_STREAM_CONTEXT", 4),
    ("RTSCOPE_PACKET_CONTEXT", 5),
    ("RTSCOPE_PACKET_HEADER", 6),
];

pub(crate) fn kind_number(kind: Kind) -> c_int {
    match kind {
        Kind::Unsigned => 1,
        Kind::Signed => 2,
        Kind::Float => 3,
        Kind::Text => 4,
        Kind::Other => 5,
    }
}

fn scope_number(scope: Scope) -> c_int {
    match scope {
        Scope::Payload => 1,
        Scope::EventContext => 2,
        Scope::EventHeader => 3,
        Scope::StreamContext => 4,
        Scope::PacketContext => 5,
        Scope::PacketHeader => 6,
    }
}

/// A trace behind the border, with its names as C reads them.
pub struct CTrace {
    pub(crate) trace: Arc<Trace>,
    classes: Vec<ClassNames>,
    environment: BTreeMap<String, CString>,
}

struct ClassNames {
    name: CString,
    fields: Vec<CString>,
}

/// A field that was bound by name.
pub struct CField(pub(crate) Accessor);

impl CTrace {
    fn new(trace: Trace) -> CTrace {
        let names = |class: &EventClass| ClassNames {
            name: c_string(&class.name),
            fields: class
                .fields
                .iter()
                .map(|field| c_string(&field.name))
                .collect(),
        };
        let environment = trace.info().environment.iter();
        CTrace {
            classes: trace.classes().iter().map(names).collect(),
            environment: environment
                .map(|(key, value)| (key.clone(), c_string(value)))
                .collect(),
            trace: Arc::new(trace),
        }
    }
}

/// Opens one trace, or several as one.
///
/// # Safety
/// `paths` leads to `count` texts that end with a zero; `options` is null or points to a structure
/// of the size that it says; `error` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_open(
    paths: *const *const c_char,
    count: usize,
    options: *const OpenOptions,
    error: *mut *mut CError,
) -> *mut CTrace {
    call(error, || {
        // SAFETY: as the caller promises.
        let roots: Result<Vec<Root>> = unsafe { list(paths, count) }?
            .iter()
            // SAFETY: as the caller promises.
            .map(|path| Ok(Root::from(unsafe { text(*path) }?)))
            .collect();
        let mut chosen = trace::OpenOptions::default();
        // SAFETY: as the caller promises.
        if let Some(options) = unsafe { options.as_ref() } {
            if options.size < size_of::<OpenOptions>() {
                return Err(crate::error::wrong_size(
                    "rtscope_open_options",
                    options.size,
                ));
            }
            chosen.intersection = options.intersection != 0;
            chosen.clock_offset = Duration::from_ns(options.clock_offset_ns);
        }
        Ok(give_handle(CTrace::new(Trace::open_all(&roots?, &chosen)?)))
    })
}

/// Closes a trace; walks and tables over it go on.
///
/// # Safety
/// `trace` is null or a trace that was not closed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_close(trace: *mut CTrace) {
    // SAFETY: as the caller promises.
    unsafe { drop_handle(trace) };
}

/// From the first packet's begin to the last one's end; 0 when nobody says, and then nothing is
/// written.
///
/// # Safety
/// `trace` is null or open; the places are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_range(
    trace: *const CTrace,
    begin_ns: *mut i64,
    end_ns: *mut i64,
) -> c_int {
    ask(0, || {
        // SAFETY: as the caller promises.
        let TimeRange { begin, end } = unsafe { handle(trace) }.ok()?.trace.range()?;
        for (place, instant) in [(begin_ns, begin), (end_ns, end)] {
            // SAFETY: as the caller promises.
            if let Some(place) = unsafe { place.as_mut() } {
                *place = instant.as_ns();
            }
        }
        Some(1)
    })
}

/// An instant of the trace as nanoseconds since 1970 (UTC).
///
/// # Safety
/// `trace` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_wall_ns(trace: *const CTrace, time_ns: i64) -> i64 {
    let wall = || {
        Some(
            // SAFETY: as the caller promises.
            unsafe { handle(trace) }
                .ok()?
                .trace
                .wall_ns(Instant::from_ns(time_ns)),
        )
    };
    ask(0, wall)
}

/// What the trace says of its origin under `key`; null when it says nothing.
///
/// # Safety
/// `trace` is null or open; `key` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_environment(
    trace: *const CTrace,
    key: *const c_char,
) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let (trace, key) = unsafe { (handle(trace).ok()?, text(key).ok()?) };
        Some(trace.environment.get(key)?.as_ptr())
    })
}

/// How many CPUs have a stream; the first `count` of them are written to `cpus`.
///
/// # Safety
/// `trace` is null or open; `cpus` is null or has room for `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_cpus(trace: *const CTrace, cpus: *mut u32, count: usize) -> usize {
    ask(0, || {
        // SAFETY: as the caller promises.
        let found = &unsafe { handle(trace) }.ok()?.trace.info().cpus;
        if !cpus.is_null() {
            for (place, cpu) in found.iter().take(count).enumerate() {
                // SAFETY: as the caller promises.
                unsafe { cpus.add(place).write(cpu.0) };
            }
        }
        Some(found.len())
    })
}

/// How many event classes there are; they are numbered from 0.
///
/// # Safety
/// `trace` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_class_count(trace: *const CTrace) -> u32 {
    ask(0, || {
        // SAFETY: as the caller promises.
        Some(unsafe { handle(trace) }.ok()?.classes.len() as u32)
    })
}

/// The name of a class's events; null when there is no such class.
///
/// # Safety
/// `trace` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_class_name(trace: *const CTrace, class: u32) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let trace = unsafe { handle(trace) }.ok()?;
        Some(trace.classes.get(class as usize)?.name.as_ptr())
    })
}

/// How many fields the events of a class have, in all scopes; they are numbered from 0.
///
/// # Safety
/// `trace` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_field_count(trace: *const CTrace, class: u32) -> u32 {
    ask(0, || {
        // SAFETY: as the caller promises.
        let trace = unsafe { handle(trace) }.ok()?;
        Some(trace.classes.get(class as usize)?.fields.len() as u32)
    })
}

/// The name of a field; null when there is no such field.
///
/// # Safety
/// `trace` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_field_name(
    trace: *const CTrace,
    class: u32,
    field: u32,
) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let trace = unsafe { handle(trace) }.ok()?;
        let fields = &trace.classes.get(class as usize)?.fields;
        Some(fields.get(field as usize)?.as_ptr())
    })
}

/// One of [`FIELD_KINDS`]; 0 when there is no such field.
///
/// # Safety
/// `trace` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_field_kind(trace: *const CTrace, class: u32, field: u32) -> c_int {
    ask(0, || {
        Some(kind_number(Kind::of(
            // SAFETY: as the caller promises.
            &unsafe { found(trace, class, field) }?.ty,
        )))
    })
}

/// One of [`SCOPES`]; 0 when there is no such field.
///
/// # Safety
/// `trace` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_field_scope(
    trace: *const CTrace,
    class: u32,
    field: u32,
) -> c_int {
    ask(0, || {
        // SAFETY: as the caller promises.
        Some(scope_number(unsafe { found(trace, class, field) }?.scope))
    })
}

/// # Safety
/// `trace` is null or open for `'a`.
unsafe fn found<'a>(trace: *const CTrace, class: u32, field: u32) -> Option<&'a event::Field> {
    // SAFETY: as the caller promises.
    let trace = unsafe { handle(trace) }.ok()?;
    let class = trace.trace.classes().get(class as usize)?;
    class.fields.get(field as usize)
}

/// Binds a field by its name in all classes that have it.
///
/// # Safety
/// `trace` is null or open; `name` is null or ends with a zero; `error` is null or can be written
/// to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_bind(
    trace: *const CTrace,
    name: *const c_char,
    error: *mut *mut CError,
) -> *mut CField {
    call(error, || {
        // SAFETY: as the caller promises.
        let (trace, name) = unsafe { (handle(trace)?, text(name)?) };
        Ok(give_handle(CField(Accessor::bind(&trace.trace, name)?)))
    })
}

/// Binds one field of one class by its numbers.
///
/// # Safety
/// As [`rtscope_bind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_bind_at(
    trace: *const CTrace,
    class: u32,
    field: u32,
    error: *mut *mut CError,
) -> *mut CField {
    call(error, || {
        // SAFETY: as the caller promises.
        let trace = unsafe { handle(trace) }?;
        // A number that no field can have is one that this class does not have.
        let field = FieldId(u16::try_from(field).unwrap_or(u16::MAX));
        Ok(give_handle(CField(Accessor::at(
            &trace.trace,
            ClassId(class),
            field,
        )?)))
    })
}

/// Frees a bound field.
///
/// # Safety
/// `field` is null or a bound field that was not freed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_field_free(field: *mut CField) {
    // SAFETY: as the caller promises.
    unsafe { drop_handle(field) };
}

/// The trace behind a handle.
///
/// # Safety
/// `trace` is null or open.
pub(crate) unsafe fn shared(trace: *const CTrace) -> Result<Arc<Trace>> {
    if trace.is_null() {
        return Err(null_pointer());
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { handle(trace) }?.trace.clone())
}
