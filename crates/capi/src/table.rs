//! Events as tables: batches of columns in the layout of Arrow's C data interface.

use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::Result;
use face::table::{ArrowArray, ArrowArrayStream, ArrowSchema, Batches, export_stream};

use crate::border::{call, list, text};
use crate::error::CError;
use crate::handle::{ask, drop_handle, give_handle, handle, null_pointer};
use crate::trace::{CTrace, shared};
use crate::walk::{Select, selection};

/// A table behind the border; streams that were made of it share its rows.
pub struct CTable(Arc<Mutex<Batches>>);

impl CTable {
    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins a table of the named columns; of all when `columns` is null.
///
/// # Safety
/// `trace` is null or open; `select` as `rtscope_items` asks; `columns` is null or leads to `count`
/// texts that end with a zero; `error` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_batches(
    trace: *const CTrace,
    select: *const Select,
    columns: *const *const c_char,
    count: usize,
    rows_max: usize,
    error: *mut *mut CError,
) -> *mut CTable {
    call(error, || {
        // SAFETY: as the caller promises.
        let (trace, selection) = unsafe { (shared(trace)?, selection(select)?) };
        let names: Option<Vec<String>> = match columns.is_null() {
            true => None,
            // SAFETY: as the caller promises.
            false => Some(unsafe { names(columns, count) }?),
        };
        let batches = Batches::new(&trace, selection, names.as_deref(), rows_max)?;
        Ok(give_handle(CTable(Arc::new(Mutex::new(batches)))))
    })
}

/// # Safety
/// `columns` leads to `count` texts that end with a zero.
unsafe fn names(columns: *const *const c_char, count: usize) -> Result<Vec<String>> {
    // SAFETY: as the caller promises.
    let columns = unsafe { list(columns, count) }?.iter();
    columns
        // SAFETY: as the caller promises.
        .map(|name| Ok(unsafe { text(*name) }?.to_owned()))
        .collect()
}

/// Frees a table; streams that were made of it go on.
///
/// # Safety
/// `table` is null or a table that was not freed, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_table_free(table: *mut CTable) {
    // SAFETY: as the caller promises.
    unsafe { drop_handle(table) };
}

/// Writes the type of the table, a structure with a member for each column. The caller releases it.
///
/// # Safety
/// `table` is null or alive; `schema` and `error` are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_batch_schema(
    table: *const CTable,
    schema: *mut ArrowSchema,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let found = unsafe { handle(table) }?.lock().schema();
        // SAFETY: as the caller promises; what stood there is not ours to release.
        unsafe { write(schema, found) }?;
        Ok(0)
    })
}

/// Writes the next batch and returns 1; at the end returns 0 and writes nothing. The caller
/// releases the batch.
///
/// # Safety
/// As [`rtscope_batch_schema`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_batch_next(
    table: *const CTable,
    batch: *mut ArrowArray,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        match unsafe { handle(table) }?.lock().next_batch()? {
            Some(found) => {
                // SAFETY: as the caller promises.
                unsafe { write(batch, found) }?;
                Ok(1)
            }
            None => Ok(0),
        }
    })
}

/// Writes a stream of the table's batches, for libraries that take one. The caller releases it.
///
/// # Safety
/// As [`rtscope_batch_schema`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_batch_stream(
    table: *const CTable,
    stream: *mut ArrowArrayStream,
    error: *mut *mut CError,
) -> c_int {
    call(error, || {
        // SAFETY: as the caller promises.
        let found = export_stream(unsafe { handle(table) }?.0.clone());
        // SAFETY: as the caller promises.
        unsafe { write(stream, found) }?;
        Ok(0)
    })
}

/// # Safety
/// `place` is null or can be written to.
unsafe fn write<T>(place: *mut T, value: T) -> Result<()> {
    if place.is_null() {
        return Err(null_pointer());
    }
    // SAFETY: as the caller promises.
    unsafe { place.write(value) };
    Ok(())
}

/// How many events the tracer lost inside of what was read so far.
///
/// # Safety
/// `table` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_batch_lost(table: *const CTable) -> u64 {
    ask(0, || {
        // SAFETY: as the caller promises.
        Some(unsafe { handle(table) }.ok()?.lock().tally().lost_events)
    })
}

/// How often bytes could not be understood in what was read so far.
///
/// # Safety
/// `table` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtscope_batch_damaged(table: *const CTable) -> u64 {
    ask(0, || {
        // SAFETY: as the caller promises.
        Some(unsafe { handle(table) }.ok()?.lock().tally().damage_count)
    })
}
