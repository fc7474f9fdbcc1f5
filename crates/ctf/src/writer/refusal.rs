//! Why something cannot be written.

use event::{Error, ErrorKind};

pub(super) fn refuse(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
}
