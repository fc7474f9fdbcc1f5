//! Who made tasks late, as JSON.

use std::ffi::{CStr, CString, c_char};

use event::{Instant, Result, TimeRange};
use face::{Question, diagnosis_json};

use crate::border::{call, text};
use crate::error::CError;
use crate::handle::{c_string, handle};
use crate::trace::CTrace;

/// What is asked; the header's `struct rtscope_question`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CQuestion {
    /// `sizeof` of this structure in the caller.
    pub size: usize,
    /// Names, ids and the like, with commas between; null: hits of the trace, else real-time tasks.
    pub tasks: *const c_char,
    /// Those that took longer; 0: the worst.
    pub over_ns: i64,
    /// `block` or `switch-in`; null: `block`.
    pub until: *const c_char,
    /// At most so many, the worst first; 0: all.
    pub worst: usize,
    /// Only activations that end in [begin, end).
    pub begin_ns: i64,
    /// See above.
    pub end_ns: i64,
}

/// The answer as JSON, to be freed by `rtscope_text_free`.
///
/// # Safety
/// `trace` is null or open; `question` is null or points to a structure of the size that it says,
/// whose texts are null or end with a zero; `error` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_diagnose(
    trace: *const CTrace,
    question: *const CQuestion,
    error: *mut *mut CError,
) -> *mut c_char {
    call(error, || {
        // SAFETY: as the caller promises.
        let trace = unsafe { handle(trace) }?;
        // SAFETY: as the caller promises.
        let asked = unsafe { asked(question) }?;
        let json = diagnosis_json(&trace.trace, &asked)?;
        Ok(c_string(&json).into_raw())
    })
}

/// Frees a text that a call gave away; null is nothing to free.
///
/// # Safety
/// `text` is null or came from a call that says so, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// # Safety
/// As of [`rtscope_diagnose`].
unsafe fn asked(question: *const CQuestion) -> Result<Question> {
    let mut asked = Question::default();
    // SAFETY: as the caller promises.
    let Some(question) = (unsafe { question.as_ref() }) else {
        return Ok(asked);
    };
    if question.size < size_of::<CQuestion>() {
        let size = question.size;
        return Err(crate::error::wrong_size("rtscope_question", size));
    }
    if !question.tasks.is_null() {
        // SAFETY: as the caller promises.
        let tasks: &str = unsafe { text(question.tasks) }?;
        let named = tasks.split(',').filter(|task| !task.is_empty());
        asked.tasks = named.map(str::to_owned).collect();
    }
    if !question.until.is_null() {
        // SAFETY: as the caller promises.
        asked.until = unsafe { CStr::from_ptr(question.until) }
            .to_string_lossy()
            .into_owned();
    }
    asked.over_ns = (question.over_ns != 0).then_some(question.over_ns);
    asked.worst = question.worst;
    asked.range = TimeRange {
        begin: Instant::from_ns(question.begin_ns),
        end: Instant::from_ns(question.end_ns),
    };
    Ok(asked)
}
