//! Errors and warnings as Python raises them.

use event::ErrorKind;
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;

pyo3::create_exception!(
    rtscope,
    Error,
    PyException,
    "What failed; its attributes are kind, what, found and fix."
);
pyo3::create_exception!(
    rtscope,
    LossWarning,
    PyUserWarning,
    "Events are missing, or bytes could not be read: results may be incomplete."
);
pyo3::create_exception!(
    rtscope,
    FilterWarning,
    PyUserWarning,
    "A filter names what the trace does not have."
);

fn word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "not_found",
        ErrorKind::InvalidInput => "invalid_input",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::PermissionDenied => "permission_denied",
        ErrorKind::AlreadyExists => "already_exists",
        ErrorKind::StorageFull => "storage_full",
        ErrorKind::Interrupted => "interrupted",
        _ => "io",
    }
}

/// The error as an exception.
pub(crate) fn raised(py: Python<'_>, error: &event::Error) -> PyErr {
    let raised = Error::new_err(format!("{error:#}"));
    let parts = raised.value(py);
    let set = || -> PyResult<()> {
        parts.setattr("kind", word(error.kind()))?;
        parts.setattr("what", error.what())?;
        parts.setattr("found", error.value_found())?;
        parts.setattr("fix", error.fixed_by())
    };
    match set() {
        Ok(()) => raised,
        Err(failure) => failure,
    }
}
