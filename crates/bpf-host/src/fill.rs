//! Lists that must fit into the records that the kernel reads.

use event::{Error, ErrorKind, Result};

/// Refuses a question.
pub(crate) fn invalid(what: &str, found: &str, fix: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
        .found(found)
        .fix(fix)
}

/// Copies a list into its place; the number of its elements.
pub(crate) fn fill<T: Copy>(name: &str, list: &[T], place: &mut [T]) -> Result<u32> {
    if list.len() > place.len() {
        let what = format!("a watch takes at most {} {name}", place.len());
        return Err(invalid(
            &what,
            &list.len().to_string(),
            "give fewer, or use a pattern",
        ));
    }
    place[..list.len()].copy_from_slice(list);
    Ok(list.len() as u32)
}
