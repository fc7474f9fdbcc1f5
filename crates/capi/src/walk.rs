//! A walk over the items of a trace, and what can be asked of the item that it stands on.

use std::ffi::{CString, c_char, c_int};

use event::{Cpu, Instant, Result, TimeRange, json};
use expr::Expr;
use face::{Selection, Step, Walk};
use trace::{EventView, LossCause, Lost};

use crate::border::{Bytes, call, list, text};
use crate::error::{CError, wrong_size};
use crate::handle::{ask, c_string, drop_handle, give_handle, handle, handle_mut};
use crate::trace::{CField, CTrace, shared};

/// The part of a trace that is asked for; the header's `struct rtscope_select`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Select {
    /// `sizeof` of this structure in the caller.
    pub size: usize,
    /// From here.
    pub begin_ns: i64,
    /// Up to here.
    pub end_ns: i64,
    /// Only events of these CPUs.
    pub cpus: *const u32,
    /// How many; 0 means all.
    pub cpu_count: usize,
    /// Only events that match; null means all.
    pub filter: *const c_char,
}

/// What [`rtscope_next`] returns, as the header calls and numbers it.
pub const ITEMS: &[(&str, c_int)] = &[
    ("RTSCOPE_FAILED", -1),
    ("RTSCOPE_END", 0),
    ("RTSCOPE_EVENT", 1),
    ("RTSCOPE_LOST", 2),
    ("RTSCOPE_DAMAGE", 3),
];

/// Why events are missing, as the header calls and numbers it.
pub const CAUSES: &[(&str, c_int)] = &[
    ("RTSCOPE_CAUSE_UNKNOWN", 0),
    ("RTSCOPE_CAUSE_DISCARDED", 1),
    ("RTSCOPE_CAUSE_OVERRUN", 2),
];

/// Missing events; the header's `struct rtscope_loss`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// They were lost between here
    pub begin_ns: i64,
    /// and here.
    pub end_ns: i64,
    /// How many, when `is_counted`.
    pub count: u64,
    /// Not 0: the tracer counted them.
    pub is_counted: c_int,
    /// -1 when no CPU is known.
    pub cpu: c_int,
    /// One of [`CAUSES`].
    pub cause: c_int,
}

/// Bytes that could not be understood; the header's `struct rtscope_bad_bytes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Damage {
    /// The file, relative to the trace.
    pub file: *const c_char,
    /// The first byte that was not understood.
    pub offset_bytes: u64,
    /// What was expected and found.
    pub reason: *const c_char,
}

/// A walk behind the border.
pub struct CWalk {
    walk: Walk,
    notes: Vec<CString>,
    lost: Option<Lost>,
    damage: Option<(CString, u64, CString)>,
    /// The value that was asked for last as JSON.
    json: Vec<u8>,
}

/// What a caller chose.
///
/// # Safety
/// `select` is null or points to a structure of the size that it says, whose pointers are null or
/// lead to what it says.
pub(crate) unsafe fn selection(select: *const Select) -> Result<Selection> {
    // SAFETY: as the caller promises.
    let Some(select) = (unsafe { select.as_ref() }) else {
        return Ok(Selection::default());
    };
    if select.size < size_of::<Select>() {
        return Err(wrong_size("rtscope_select", select.size));
    }
    // SAFETY: as the caller promises.
    let cpus = unsafe { list(select.cpus, select.cpu_count) }?;
    let filter = match select.filter.is_null() {
        true => None,
        // SAFETY: as the caller promises.
        false => Some(Expr::parse(unsafe { text(select.filter) }?)?),
    };
    Ok(Selection {
        range: TimeRange {
            begin: Instant::from_ns(select.begin_ns),
            end: Instant::from_ns(select.end_ns),
        },
        cpus: cpus.iter().copied().map(Cpu).collect(),
        filter,
    })
}

/// Begins a walk before the first selected item.
///
/// # Safety
/// `trace` is null or open; `select` as [`selection`] asks; `error` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_items(
    trace: *const CTrace,
    select: *const Select,
    error: *mut *mut CError,
) -> *mut CWalk {
    call(error, || {
        // SAFETY: as the caller promises.
        let (trace, selection) = unsafe { (shared(trace)?, selection(select)?) };
        let walk = Walk::new(&trace, selection)?;
        Ok(give_handle(CWalk {
            notes: walk
                .notes()
                .iter()
                .map(|note| c_string(&format!("{note:#}")))
                .collect(),
            walk,
            lost: None,
            damage: None,
            json: Vec::new(),
        }))
    })
}

/// Ends a walk.
///
/// # Safety
/// `walk` is null or a walk that was not freed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_walk_free(walk: *mut CWalk) {
    // SAFETY: as the caller promises.
    unsafe { drop_handle(walk) };
}

/// What looks like a mistake in the filter; null when there are not so many notes.
///
/// # Safety
/// `walk` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_note(walk: *const CWalk, number: usize) -> *const c_char {
    ask(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Some(unsafe { handle(walk) }.ok()?.notes.get(number)?.as_ptr())
    })
}

/// Goes to the next item and says what it is: one of [`ITEMS`].
///
/// # Safety
/// `walk` is null or alive, and used by no other thread; `error` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_next(walk: *mut CWalk, error: *mut *mut CError) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let walk = unsafe { handle_mut(walk) }?;
        Ok(match walk.walk.advance()? {
            Step::End => 0,
            Step::Event => 1,
            Step::Lost(lost) => {
                walk.lost = Some(lost);
                2
            }
            Step::Damage(damage) => {
                let (file, reason) = (c_string(&damage.file), c_string(&damage.reason));
                walk.damage = Some((file, damage.offset_bytes, reason));
                3
            }
        })
    })
}

/// Goes to the first selected item at or after `time_ns`; [`rtscope_next`] gives it.
///
/// # Safety
/// As [`rtscope_next`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_seek(
    walk: *mut CWalk,
    time_ns: i64,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let walk = unsafe { handle_mut(walk) }?;
        walk.walk.seek(Instant::from_ns(time_ns))?;
        Ok(0)
    })
}

/// The event that a walk stands on.
///
/// # Safety
/// `walk` is null or alive for `'a`.
unsafe fn event<'a>(walk: *const CWalk) -> Option<EventView<'a>> {
    // SAFETY: as the caller promises.
    unsafe { handle(walk) }.ok()?.walk.event()
}

/// When the event happened; 0 when the walk stands on none.
///
/// # Safety
/// `walk` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_time_ns(walk: *const CWalk) -> i64 {
    // SAFETY: as the caller promises.
    ask(0, || Some(unsafe { event(walk) }?.time().as_ns()))
}

/// The CPU of the event's stream; -1 when there is none.
///
/// # Safety
/// `walk` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_cpu(walk: *const CWalk) -> c_int {
    ask(-1, || {
        // SAFETY: as the caller promises.
        c_int::try_from(unsafe { event(walk) }?.cpu()?.0).ok()
    })
}

/// The class of the event; `UINT32_MAX` when the walk stands on none.
///
/// # Safety
/// `walk` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_class(walk: *const CWalk) -> u32 {
    // SAFETY: as the caller promises.
    ask(u32::MAX, || Some(unsafe { event(walk) }?.class().0))
}

/// One of `FIELD_KINDS` when the event has the field, else 0.
///
/// # Safety
/// `walk` and `field` are null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_has(walk: *const CWalk, field: *const CField) -> c_int {
    ask(0, || {
        // SAFETY: as the caller promises.
        let (event, field) = unsafe { (event(walk)?, handle(field).ok()?) };
        Some(crate::trace::kind_number(field.0.place(event.class())?.1))
    })
}

/// An integer field, sign-extended when it is signed; 0 when the event has none.
///
/// # Safety
/// As [`rtscope_has`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_i64(walk: *const CWalk, field: *const CField) -> i64 {
    // SAFETY: as the caller promises.
    ask(0, || unsafe { handle(field).ok()?.0.i64(&event(walk)?) })
}

/// An integer field as unsigned bits; 0 when the event has none.
///
/// # Safety
/// As [`rtscope_has`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_u64(walk: *const CWalk, field: *const CField) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { rtscope_i64(walk, field) as u64 }
}

/// A float field; 0 when the event has none.
///
/// # Safety
/// As [`rtscope_has`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_f64(walk: *const CWalk, field: *const CField) -> f64 {
    // SAFETY: as the caller promises.
    ask(0.0, || unsafe { handle(field).ok()?.0.f64(&event(walk)?) })
}

/// A text field; no bytes when the event has none. They live until the next call of
/// [`rtscope_next`] or [`rtscope_seek`].
///
/// # Safety
/// As [`rtscope_has`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_text(walk: *const CWalk, field: *const CField) -> Bytes {
    // SAFETY: as the caller promises.
    ask(Bytes::NONE, || unsafe {
        Some(Bytes::from(handle(field).ok()?.0.text(&event(walk)?)?))
    })
}

/// Any field as JSON; no bytes when the event has none. They live until the next call with this
/// walk.
///
/// # Safety
/// As [`rtscope_has`], and no other thread uses the walk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_json(walk: *mut CWalk, field: *const CField) -> Bytes {
    ask(Bytes::NONE, || {
        // SAFETY: as the caller promises.
        let (walk, field) = unsafe { (handle_mut(walk).ok()?, handle(field).ok()?) };
        let event = walk.walk.event()?;
        let (place, _) = field.0.place(event.class())?;
        walk.json.clear();
        json::value(&event.value(place), &mut walk.json);
        Some(Bytes::from(walk.json.as_slice()))
    })
}

/// The last item that was a loss. Returns 0, and writes nothing, when there was none.
///
/// # Safety
/// `walk` is null or alive; `loss` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_lost(walk: *const CWalk, loss: *mut Loss) -> c_int {
    ask(0, || {
        // SAFETY: as the caller promises.
        let lost = unsafe { handle(walk) }.ok()?.lost?;
        let cpu = lost.cpu.and_then(|cpu| c_int::try_from(cpu.0).ok());
        // SAFETY: as the caller promises.
        let place = unsafe { handle_mut(loss) }.ok()?;
        *place = Loss {
            begin_ns: lost.range.begin.as_ns(),
            end_ns: lost.range.end.as_ns(),
            count: lost.count.unwrap_or(0),
            is_counted: c_int::from(lost.count.is_some()),
            cpu: cpu.unwrap_or(-1),
            cause: match lost.cause {
                LossCause::Discarded => 1,
                LossCause::Overrun => 2,
                _ => 0,
            },
        };
        Some(1)
    })
}

/// The last item that was damage; its texts live until the next one. Returns 0, and writes
/// nothing, when there was none.
///
/// # Safety
/// `walk` is null or alive; `damage` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_damage(walk: *const CWalk, damage: *mut Damage) -> c_int {
    ask(0, || {
        // SAFETY: as the caller promises.
        let (file, offset_bytes, reason) = unsafe { handle(walk) }.ok()?.damage.as_ref()?;
        // SAFETY: as the caller promises.
        let place = unsafe { handle_mut(damage) }.ok()?;
        *place = Damage {
            file: file.as_ptr(),
            offset_bytes: *offset_bytes,
            reason: reason.as_ptr(),
        };
        Some(1)
    })
}
