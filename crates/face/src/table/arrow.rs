//! Arrow's C data interface: how tables pass a border between languages without a copy.
//!
//! The layout of the three structures is that of Arrow's specification "The Arrow C data
//! interface", whose names they keep.

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use event::Result;

use super::column::{Column, Data};
use super::kind::ColumnKind;

/// The type of an array.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// An array of values.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// Arrays of one type, one after the other.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// `ARROW_FLAG_NULLABLE` of the specification.
const NULLABLE: i64 = 2;
/// `EIO`: what a failed stream returns.
const EIO: c_int = 5;

// SAFETY: each owns what its pointers lead to, and nothing of it belongs to a thread.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
// SAFETY: as above; what the stream reads from is `Send` by its constructor's bounds.
unsafe impl Send for ArrowArrayStream {}

macro_rules! released_when_dropped {
    ($($type:ident),*) => {$(
        impl Drop for $type {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: `release` is there as long as nobody called it or moved the rest.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}
released_when_dropped!(ArrowSchema, ArrowArray, ArrowArrayStream);

/// What a schema's pointers lead to.
struct SchemaParts {
    /// Kept for the pointers to them.
    _format: CString,
    _name: CString,
    children: Box<[*mut ArrowSchema]>,
    dictionary: *mut ArrowSchema,
}

/// What an array's pointers lead to.
struct ArrayParts {
    /// Kept for the pointers into it.
    _column: Option<Column>,
    /// The same, of an array without values.
    _zeros: Option<Arc<[u64]>>,
    buffers: Box<[*const c_void]>,
    children: Box<[*mut ArrowArray]>,
    dictionary: *mut ArrowArray,
}

/// The type of a table: a structure with a member for each column.
pub(super) fn table_schema<'a>(
    columns: impl Iterator<Item = (&'a str, &'a ColumnKind)>,
) -> ArrowSchema {
    let children = columns.map(|(name, kind)| schema(name, kind)).collect();
    plain_schema("+s", "", 0, children, None)
}

fn schema(name: &str, kind: &ColumnKind) -> ArrowSchema {
    let children = match kind {
        ColumnKind::List(element) => vec![schema("item", element)],
        ColumnKind::Struct(members) => {
            let members = members.iter();
            members.map(|(name, kind)| schema(name, kind)).collect()
        }
        _ => Vec::new(),
    };
    let names = || plain_schema("u", "", 0, Vec::new(), None);
    let dictionary = (*kind == ColumnKind::Name).then(names);
    plain_schema(format(kind), name, NULLABLE, children, dictionary)
}

/// The specification's letters for a type.
fn format(kind: &ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Integer { bits, signed } => match (bits, signed) {
            (8, true) => "c",
            (8, false) => "C",
            (16, true) => "s",
            (16, false) => "S",
            (32, true) => "i",
            (32, false) => "I",
            (_, true) => "l",
            (_, false) => "L",
        },
        ColumnKind::Float => "g",
        ColumnKind::Bool => "b",
        ColumnKind::Text => "u",
        ColumnKind::Bytes => "z",
        ColumnKind::List(_) => "+l",
        ColumnKind::Struct(_) => "+s",
        ColumnKind::WallTime => "tsn:UTC",
        ColumnKind::Name => "i",
    }
}

fn plain_schema(
    format: &str,
    name: &str,
    flags: i64,
    children: Vec<ArrowSchema>,
    dictionary: Option<ArrowSchema>,
) -> ArrowSchema {
    let mut parts = Box::new(SchemaParts {
        _format: c_string(format),
        _name: c_string(name),
        children: children.into_iter().map(on_heap).collect(),
        dictionary: dictionary.map_or(ptr::null_mut(), on_heap),
    });
    ArrowSchema {
        format: parts._format.as_ptr(),
        name: parts._name.as_ptr(),
        metadata: ptr::null(),
        flags,
        n_children: parts.children.len() as i64,
        children: parts.children.as_mut_ptr(),
        dictionary: parts.dictionary,
        release: Some(release_schema),
        private_data: Box::into_raw(parts).cast(),
    }
}

/// A zero byte would end a name of a trace too early: it is left out.
fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

fn on_heap<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// # Safety
/// `schema` is one that [`plain_schema`] made and that nobody released.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: as the caller promises.
    let schema = unsafe { &mut *schema };
    schema.release = None;
    // SAFETY: `private_data` came from `Box::into_raw`, as did the children and the dictionary;
    // dropping one releases it, unless the reader moved it away and cleared its `release`.
    unsafe {
        let parts = Box::from_raw(schema.private_data.cast::<SchemaParts>());
        parts
            .children
            .iter()
            .for_each(|child| drop(Box::from_raw(*child)));
        if !parts.dictionary.is_null() {
            drop(Box::from_raw(parts.dictionary));
        }
    }
}

/// A table's batch: a structure of `rows` whose members are the columns.
pub(super) fn table<'a>(
    columns: impl Iterator<Item = (Column, &'a ColumnKind)>,
    rows: usize,
    names: &[String],
) -> ArrowArray {
    let mut zeros = None;
    let children = columns.map(|(column, kind)| match kind {
        ColumnKind::Name => array(column, Some(texts(names))),
        kind if column.len == 0 => {
            // Two words more: an offset behind the last value, and never nothing at all.
            let zeros = zeros.get_or_insert_with(|| vec![0; rows + 2].into());
            absent(kind, rows, zeros)
        }
        _ => array(column, None),
    });
    let children = children.collect();
    let empty = Column {
        len: rows,
        nulls: 0,
        valid: Vec::new(),
        data: Data::Struct(Vec::new()),
    };
    plain_array(empty, children, None)
}

/// An array of which no value is there: all such arrays of a batch share their bytes.
fn absent(kind: &ColumnKind, rows: usize, zeros: &Arc<[u64]>) -> ArrowArray {
    let (buffer_count, children) = match kind {
        ColumnKind::Struct(members) => {
            let members = members.iter();
            let member = |(_, kind): &(String, _)| absent(kind, rows, zeros);
            (1, members.map(member).collect())
        }
        ColumnKind::List(element) => (2, vec![array(Column::new(element), None)]),
        ColumnKind::Text | ColumnKind::Bytes => (3, Vec::new()),
        _ => (2, Vec::new()),
    };
    let parts = ArrayParts {
        _column: None,
        _zeros: Some(zeros.clone()),
        buffers: vec![zeros.as_ptr().cast(); buffer_count].into(),
        children: children.into_iter().map(on_heap).collect(),
        dictionary: ptr::null_mut(),
    };
    exported(parts, rows as i64, rows as i64)
}

fn texts(texts: &[String]) -> ArrowArray {
    let mut column = Column::new(&ColumnKind::Text);
    texts
        .iter()
        .for_each(|text| column.push_blob(text.as_bytes()));
    array(column, None)
}

fn array(mut column: Column, dictionary: Option<ArrowArray>) -> ArrowArray {
    let children = match &mut column.data {
        Data::List { element, .. } => {
            let none = Column::new(&ColumnKind::Bool);
            vec![array(std::mem::replace(element, none), None)]
        }
        Data::Struct(members) => {
            let members = std::mem::take(members).into_iter();
            members.map(|(_, member)| array(member, None)).collect()
        }
        _ => Vec::new(),
    };
    plain_array(column, children, dictionary)
}

fn plain_array(
    column: Column,
    children: Vec<ArrowArray>,
    dictionary: Option<ArrowArray>,
) -> ArrowArray {
    let mut buffers = vec![match column.valid.is_empty() {
        true => ptr::null(),
        false => column.valid.as_ptr().cast(),
    }];
    match &column.data {
        Data::Bytes1(values) | Data::Bits(values) => buffers.push(values.as_ptr().cast()),
        Data::Bytes2(values) => buffers.push(values.as_ptr().cast()),
        Data::Bytes4(values) => buffers.push(values.as_ptr().cast()),
        Data::Bytes8(values) => buffers.push(values.as_ptr().cast()),
        Data::Floats(values) => buffers.push(values.as_ptr().cast()),
        Data::Blob { offsets, bytes, .. } => {
            buffers.push(offsets.as_ptr().cast());
            buffers.push(bytes.as_ptr().cast());
        }
        Data::List { offsets, .. } => buffers.push(offsets.as_ptr().cast()),
        Data::Struct(_) => {}
    }
    let (length, null_count) = (column.len as i64, column.nulls as i64);
    let parts = ArrayParts {
        // The buffers stay where they are when the column moves: they are on the heap.
        _column: Some(column),
        _zeros: None,
        buffers: buffers.into(),
        children: children.into_iter().map(on_heap).collect(),
        dictionary: dictionary.map_or(ptr::null_mut(), on_heap),
    };
    exported(parts, length, null_count)
}

fn exported(parts: ArrayParts, length: i64, null_count: i64) -> ArrowArray {
    let mut parts = Box::new(parts);
    ArrowArray {
        length,
        null_count,
        offset: 0,
        n_buffers: parts.buffers.len() as i64,
        n_children: parts.children.len() as i64,
        buffers: parts.buffers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary: parts.dictionary,
        release: Some(release_array),
        private_data: Box::into_raw(parts).cast(),
    }
}

/// # Safety
/// `array` is one that [`exported`] made and that nobody released.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as the caller promises.
    let array = unsafe { &mut *array };
    array.release = None;
    // SAFETY: as in `release_schema`.
    unsafe {
        let parts = Box::from_raw(array.private_data.cast::<ArrayParts>());
        parts
            .children
            .iter()
            .for_each(|child| drop(Box::from_raw(*child)));
        if !parts.dictionary.is_null() {
            drop(Box::from_raw(parts.dictionary));
        }
    }
}

/// What a stream reads from.
struct StreamParts {
    schema: Box<dyn Fn() -> ArrowSchema + Send>,
    next: Box<dyn FnMut() -> Result<Option<ArrowArray>> + Send>,
    last_error: Option<CString>,
}

/// A stream of what `next` returns, until it returns nothing.
pub(super) fn stream(
    schema: impl Fn() -> ArrowSchema + Send + 'static,
    next: impl FnMut() -> Result<Option<ArrowArray>> + Send + 'static,
) -> ArrowArrayStream {
    let parts = StreamParts {
        schema: Box::new(schema),
        next: Box::new(next),
        last_error: None,
    };
    ArrowArrayStream {
        get_schema: Some(stream_schema),
        get_next: Some(stream_next),
        get_last_error: Some(stream_error),
        release: Some(release_stream),
        private_data: on_heap(parts).cast(),
    }
}

/// # Safety
/// `stream` is one that [`stream`] made and that nobody released.
unsafe fn parts<'a>(stream: *mut ArrowArrayStream) -> &'a mut StreamParts {
    // SAFETY: as the caller promises; calls on one stream come one at a time.
    unsafe { &mut *(*stream).private_data.cast::<StreamParts>() }
}

/// # Safety
/// As [`parts`]; `out` can be written to.
unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(stream) };
    match catch_unwind(AssertUnwindSafe(|| (parts.schema)())) {
        Ok(schema) => {
            // SAFETY: as the caller promises; what stood there is not ours to release.
            unsafe { out.write(schema) };
            0
        }
        Err(_) => parts.failed("an internal error: please report it".to_owned()),
    }
}

/// # Safety
/// As [`stream_schema`].
unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(stream) };
    match catch_unwind(AssertUnwindSafe(|| (parts.next)())) {
        Ok(Ok(batch)) => {
            // SAFETY: as above. An array without `release` says that the stream has ended.
            unsafe { out.write(batch.unwrap_or_else(ArrowArray::released)) };
            0
        }
        Ok(Err(error)) => parts.failed(format!("{error:#}")),
        Err(_) => parts.failed("an internal error: please report it".to_owned()),
    }
}

/// # Safety
/// As [`parts`].
unsafe extern "C" fn stream_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(stream) };
    parts
        .last_error
        .as_ref()
        .map_or(ptr::null(), |text| text.as_ptr())
}

/// # Safety
/// As [`parts`].
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as the caller promises; `private_data` came from `Box::into_raw`.
    unsafe {
        (*stream).release = None;
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
    }
}

impl StreamParts {
    fn failed(&mut self, text: String) -> c_int {
        self.last_error = Some(c_string(&text));
        EIO
    }
}

impl ArrowArray {
    /// An array that holds nothing: the end of a stream.
    pub fn released() -> ArrowArray {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}
