//! Writing a trace call by call.

use std::ffi::{c_char, c_int};
use std::path::Path;

use event::{Cpu, Error, ErrorKind, Instant, Result};
use face::{Given, Writer};

use crate::border::{call, list, text};
use crate::error::CError;
use crate::handle::{drop_handle, give_handle, handle_mut};

/// A writer behind the border; empty once it was finished.
pub struct CWriter(Option<Writer>);

/// # Safety
/// `writer` is null, or alive for `'a` and used by nobody else.
unsafe fn writing<'a>(writer: *mut CWriter) -> Result<&'a mut Writer> {
    // SAFETY: as the caller promises.
    let writer = unsafe { handle_mut(writer) }?;
    writer.0.as_mut().ok_or_else(finished)
}

fn finished() -> Error {
    Error::new(ErrorKind::InvalidInput, "the trace was finished already")
        .fix("create another to write more")
}

/// Begins a trace that appears at `path` when it is finished.
///
/// # Safety
/// `path` is null or ends with a zero; `error` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_create(
    path: *const c_char,
    error: *mut *mut CError,
) -> *mut CWriter {
    call(error, || {
        // SAFETY: as the caller promises.
        let writer = Writer::create(Path::new(unsafe { text(path) }?))?;
        Ok(give_handle(CWriter(Some(writer))))
    })
}

/// Finishes the trace and gives it its name. The writer has still to be freed.
///
/// # Safety
/// `writer` is null, or alive and used by nobody else; `error` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_finish(writer: *mut CWriter, error: *mut *mut CError) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let writer = unsafe { handle_mut(writer) }?;
        writer.0.take().ok_or_else(finished)?.close()?;
        Ok(0)
    })
}

/// Frees a writer. A trace that was not finished is removed.
///
/// # Safety
/// `writer` is null or one that was not freed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_writer_free(writer: *mut CWriter) {
    // SAFETY: as the caller promises.
    unsafe { drop_handle(writer) };
}

/// Adds to what the trace says of its origin.
///
/// # Safety
/// As [`rtscope_finish`]; the texts are null or end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_add_environment(
    writer: *mut CWriter,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let (writer, key, value) = unsafe { (writing(writer)?, text(key)?, text(value)?) };
        writer.environment(key, value)?;
        Ok(0)
    })
}

/// Sets the wall clock (nanoseconds since 1970, UTC) at the trace's time zero.
///
/// # Safety
/// As [`rtscope_finish`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_set_wall_offset_ns(
    writer: *mut CWriter,
    offset_ns: i64,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        unsafe { writing(writer) }?.wall_offset_ns(offset_ns)?;
        Ok(0)
    })
}

/// Chooses what is written: `ctf1`, or `ctf2`.
///
/// # Safety
/// As [`rtscope_finish`]; `format` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_set_format(
    writer: *mut CWriter,
    format: *const c_char,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let (writer, format) = unsafe { (writing(writer)?, text(format)?) };
        writer.format(format)?;
        Ok(0)
    })
}

/// Declares a stream and returns its number.
///
/// # Safety
/// As [`rtscope_finish`]; `name` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_add_stream(
    writer: *mut CWriter,
    name: *const c_char,
    error: *mut *mut CError,
) -> i64 {
    call(error, || {
        // SAFETY: as the caller promises.
        let (writer, name) = unsafe { (writing(writer)?, text(name)?) };
        Ok(i64::from(writer.stream(name)?))
    })
}

/// Declares an event of a stream and returns its number.
///
/// # Safety
/// As [`rtscope_finish`]; `name` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_add_class(
    writer: *mut CWriter,
    stream: u32,
    name: *const c_char,
    error: *mut *mut CError,
) -> i64 {
    call(error, || {
        // SAFETY: as the caller promises.
        let (writer, name) = unsafe { (writing(writer)?, text(name)?) };
        Ok(i64::from(writer.class(stream, name)?))
    })
}

/// Declares the next field of an event and returns its number there.
///
/// # Safety
/// As [`rtscope_finish`]; the texts are null or end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_add_field(
    writer: *mut CWriter,
    class: u32,
    name: *const c_char,
    type_name: *const c_char,
    error: *mut *mut CError,
) -> i64 {
    call(error, || {
        // SAFETY: as the caller promises.
        let (writer, name, ty) = unsafe { (writing(writer)?, text(name)?, text(type_name)?) };
        Ok(i64::from(writer.field(class, name, ty)?))
    })
}

/// # Safety
/// As [`rtscope_finish`].
unsafe fn set(
    writer: *mut CWriter,
    (class, field): (u32, u32),
    value: Given<'_>,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        unsafe { writing(writer) }?.set(class, field, value)?;
        Ok(0)
    })
}

macro_rules! setters {
    ($($name:ident $type:ty => $given:ident),*) => {$(
        #[doc = concat!("Sets a field of the next event of a class: `", stringify!($type), "`.")]
        ///
        /// # Safety
        /// As [`rtscope_finish`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            writer: *mut CWriter,
            class: u32,
            field: u32,
            value: $type,
            error: *mut *mut CError,
        ) -> c_int {
            // SAFETY: as the caller promises.
            unsafe { set(writer, (class, field), Given::$given(value), error) }
        }
    )*};
}

setters!(
    rtscope_set_i64 i64 => Signed,
    rtscope_set_u64 u64 => Unsigned,
    rtscope_set_f64 f64 => Float
);

macro_rules! list_setters {
    ($($name:ident $type:ty => $given:ident),*) => {$(
        #[doc = concat!("Sets a field of the next event of a class: `", stringify!($type), "`s.")]
        ///
        /// # Safety
        /// As [`rtscope_finish`]; `values` is null or leads to `count` of them.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            writer: *mut CWriter,
            class: u32,
            field: u32,
            values: *const $type,
            count: usize,
            error: *mut *mut CError,
        ) -> c_int {
            call(error, || {
                // SAFETY: as the caller promises.
                let (writer, values) = unsafe { (writing(writer)?, list(values, count)?) };
                writer.set(class, field, Given::$given(values))?;
                Ok(0)
            })
        }
    )*};
}

list_setters!(
    rtscope_set_text u8 => Text,
    rtscope_set_i64s i64 => SignedList,
    rtscope_set_u64s u64 => UnsignedList,
    rtscope_set_f64s f64 => FloatList
);

/// Writes an event with the fields that were set.
///
/// # Safety
/// As [`rtscope_finish`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_write(
    writer: *mut CWriter,
    class: u32,
    cpu: u32,
    time_ns: i64,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let writer = unsafe { writing(writer) }?;
        writer.event(class, Cpu(cpu), Instant::from_ns(time_ns))?;
        Ok(0)
    })
}

/// Says how many events of a stream and CPU were lost so far.
///
/// # Safety
/// As [`rtscope_finish`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_discarded(
    writer: *mut CWriter,
    stream: u32,
    cpu: u32,
    total: u64,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        unsafe { writing(writer) }?.discarded(stream, Cpu(cpu), total)?;
        Ok(0)
    })
}
