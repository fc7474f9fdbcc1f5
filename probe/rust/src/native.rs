//! The C library: events that are described at run time (`struct rtscope_late`).

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Level, Payload};

/// `struct rtscope_switch`.
#[repr(C)]
struct Switch {
    enabled: u8,
    padding: u8,
    id: u16,
    filter: u32,
}

/// `struct rtscope_late`.
#[repr(C)]
struct Late {
    state: *mut Switch,
    text: *const u8,
    text_bytes: u32,
    kind: u32,
    next: *mut Late,
}

/// Bit of `enabled`: a filter decides (`RTSCOPE_FILTERED`).
const FILTERED: u8 = 2;
const FIELD_END: u8 = 0;

unsafe extern "C" {
    fn rtscope_add(entry: *mut Late);
    fn rtscope_write_late(event: *const Late, payload: *mut u64, payload_bytes: usize);
    fn rtscope_pass_(
        state: *const Switch,
        payload: *const u64,
        payload_bytes: usize,
        hidden: *const u8,
        hidden_bytes: usize,
    ) -> i32;
}

/// An event of the program; [`event!`](crate::event!) makes one.
pub struct Event {
    late: UnsafeCell<Late>,
    registered: AtomicBool,
    level: Level,
    provider: &'static str,
    name: &'static str,
    fields: &'static [(u8, &'static str)],
}

// SAFETY: `late` is changed by the library alone: in `register`, which only the first caller gets
// through to, and in a fork's child, which has one thread.
unsafe impl Sync for Event {}

impl Event {
    /// One that nobody knows yet. Fields are codes of types and names.
    pub const fn new(
        level: Level,
        provider: &'static str,
        name: &'static str,
        fields: &'static [(u8, &'static str)],
    ) -> Event {
        Event {
            late: UnsafeCell::new(Late {
                state: ptr::null_mut(),
                text: ptr::null(),
                text_bytes: 0,
                kind: 0,
                next: ptr::null_mut(),
            }),
            registered: AtomicBool::new(false),
            level,
            provider,
            name,
            fields,
        }
    }

    /// Makes it known to recorders; the second time does nothing.
    pub fn register(&'static self) {
        if self.registered.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut text = vec![self.level as u8];
        let mut word = |word: &str| text.extend(word.bytes().chain([0]));
        word(self.provider);
        word(self.name);
        for (code, name) in self.fields {
            text.push(*code);
            text.extend(name.bytes().chain([0]));
        }
        text.push(FIELD_END);
        // The library wants it as long as the process lives.
        let text: &'static [u8] = text.leak();
        let late = self.late.get();
        // SAFETY: nobody else gets here, and nobody reads it before it has a state.
        unsafe {
            (*late).text = text.as_ptr();
            (*late).text_bytes = text.len() as u32;
            rtscope_add(late);
        }
    }

    /// Whether somebody wants it.
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        self.enabled() != 0
    }

    #[inline(always)]
    fn enabled(&self) -> u8 {
        // SAFETY: the pointer is null or to a switch that stays; a recorder changes it at any time.
        unsafe {
            let state = (&raw const (*self.late.get()).state).read_volatile();
            match state.is_null() {
                true => 0,
                false => (&raw const (*state).enabled).read_volatile(),
            }
        }
    }

    /// Records it; to be called while it is enabled.
    #[inline]
    pub fn write(&self, payload: &mut Payload) {
        let (begin, bytes) = payload.parts();
        let late = self.late.get().cast_const();
        // SAFETY: enabled events were added, and the payload has the room that the library wants.
        unsafe {
            if self.enabled() & FILTERED != 0
                && rtscope_pass_((*late).state, begin, bytes, begin.cast(), 0) == 0
            {
                return;
            }
            rtscope_write_late(late, begin, bytes);
        }
    }
}
