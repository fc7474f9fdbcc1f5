//! Wrong calls and damaged traces: an answer or an error, never a crash.

use std::ffi::{CStr, CString, c_int};
use std::fs;
use std::path::Path;
use std::ptr::{null, null_mut};

use rtscope::error::{
    ABI_VERSION, CError, rtscope_error_free, rtscope_error_kind, rtscope_error_text,
};
use rtscope::rtscope_abi_version;
use rtscope::trace::{
    CTrace, OpenOptions, rtscope_bind_at, rtscope_class_count, rtscope_class_name, rtscope_close,
    rtscope_field_count, rtscope_field_free, rtscope_field_name, rtscope_open,
};
use rtscope::walk::{
    rtscope_cpu, rtscope_items, rtscope_json, rtscope_next, rtscope_text, rtscope_time_ns,
    rtscope_walk_free,
};
use testkit::write_sample;

/// The kind and the text of an error, which is freed; none for null.
fn taken(error: *mut CError) -> Option<(c_int, String)> {
    if error.is_null() {
        return None;
    }
    // SAFETY: the error came from the library and is freed once.
    unsafe {
        let kind = rtscope_error_kind(error);
        let text = CStr::from_ptr(rtscope_error_text(error))
            .to_str()
            .unwrap()
            .to_owned();
        rtscope_error_free(error);
        Some((kind, text))
    }
}

fn open(path: &Path) -> Result<*mut CTrace, (c_int, String)> {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    let mut error = null_mut();
    // SAFETY: one path, ended by a zero.
    let trace = unsafe { rtscope_open(&path.as_ptr(), 1, null(), &mut error) };
    match taken(error) {
        Some(error) => Err(error),
        None => Ok(trace),
    }
}

#[test]
fn null_handles_and_numbers_out_of_range_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    write_sample(dir.path()).unwrap();
    let trace = open(dir.path()).unwrap();
    // SAFETY: null is allowed wherever a handle is, and the trace is open.
    unsafe {
        assert_eq!(rtscope_abi_version(), ABI_VERSION);
        assert_eq!(rtscope_class_count(null()), 0);
        assert!(rtscope_class_name(trace, u32::MAX).is_null());
        assert!(rtscope_field_name(trace, 0, u32::MAX).is_null());
        assert_eq!(rtscope_field_count(trace, u32::MAX), 0);
        assert_eq!((rtscope_time_ns(null()), rtscope_cpu(null())), (0, -1));
        assert!(rtscope_text(null(), null()).data.is_null());
        let mut error = null_mut();
        assert!(rtscope_bind_at(trace, 0, 70_000, &mut error).is_null());
        assert_eq!(taken(error).unwrap().0, 1, "RTSCOPE_NOT_FOUND");
        let mut error = null_mut();
        assert_eq!(rtscope_next(null_mut(), &mut error), -1);
        assert_eq!(
            rtscope_next(null_mut(), null_mut()),
            -1,
            "nobody wants the error"
        );
        assert_eq!(taken(error).unwrap().0, 2, "RTSCOPE_INVALID_INPUT");
        let mut error = null_mut();
        assert!(rtscope_open(null(), 1, null(), &mut error).is_null());
        assert!(taken(error).unwrap().1.contains("null pointer"));
        let small = OpenOptions {
            size: 8,
            clock_offset_ns: 0,
            intersection: 0,
        };
        let path = CString::new("x").unwrap();
        let mut error = null_mut();
        assert!(rtscope_open(&path.as_ptr(), 1, &small, &mut error).is_null());
        assert!(taken(error).unwrap().1.contains("size = 8"));
        rtscope_close(trace);
        rtscope_close(null_mut());
        rtscope_walk_free(null_mut());
        rtscope_error_free(null_mut());
    }
}

/// Walks over a whole trace and asks for every field; how many events it gave.
fn read_all(path: &Path) -> Result<u64, (c_int, String)> {
    let trace = open(path)?;
    let mut error = null_mut();
    // SAFETY: the handles are alive until they are freed at the end.
    unsafe {
        let mut fields = Vec::new();
        for class in 0..rtscope_class_count(trace) {
            for field in 0..rtscope_field_count(trace, class) {
                fields.push(rtscope_bind_at(trace, class, field, &mut error));
            }
        }
        let walk = rtscope_items(trace, null(), &mut error);
        rtscope_close(trace);
        let mut events = 0;
        loop {
            match rtscope_next(walk, &mut error) {
                1 => events += 1,
                2 | 3 => {}
                _ => break,
            }
            for field in &fields {
                let (text, json) = (rtscope_text(walk, *field), rtscope_json(walk, *field));
                assert!(text.data.is_null() || json.size >= 2);
            }
        }
        rtscope_walk_free(walk);
        fields
            .into_iter()
            .for_each(|field| rtscope_field_free(field));
        taken(error).map_or(Ok(events), Err)
    }
}

#[test]
fn a_damaged_trace_gives_what_can_be_read_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    write_sample(&whole).unwrap();
    assert_eq!(read_all(&whole), Ok(testkit::SAMPLE_EVENTS));
    let (mut read, mut refused) = (0, 0);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..200 {
        let damaged = dir.path().join(format!("damaged{round}"));
        fs::create_dir(&damaged).unwrap();
        for name in ["metadata", "app_0", "app_1"] {
            let mut bytes = fs::read(whole.join(name)).unwrap();
            for _ in 0..=round % 5 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let place = random as usize % bytes.len();
                bytes[place] = (random >> 32) as u8;
            }
            fs::write(damaged.join(name), bytes).unwrap();
        }
        match read_all(&damaged) {
            Ok(_) => read += 1,
            Err((kind, text)) => {
                assert_ne!(kind, 100, "round {round}: {text}");
                refused += 1;
            }
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}
