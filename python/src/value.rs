//! Values as Python's objects.

use event::Value;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// The value as an object: integers (enumerations and flags too), floats, texts, bytes, lists,
/// dicts, `None` for what is absent.
pub(crate) fn object(py: Python<'_>, value: &Value<'_>) -> PyResult<Py<PyAny>> {
    match value {
        Value::Unsigned(number) | Value::Flags { bits: number, .. } => number.into_py_any(py),
        Value::Signed(number) | Value::Enum { value: number, .. } => number.into_py_any(py),
        Value::Float(number) => number.into_py_any(py),
        Value::Text(text) => text.into_py_any(py),
        Value::Bool(truth) => truth.into_py_any(py),
        Value::Blob(bytes) => PyBytes::new(py, bytes).into_py_any(py),
        Value::Absent => Ok(py.None()),
        Value::Array(elements) => {
            let list = PyList::empty(py);
            for element in elements {
                list.append(object(py, element)?)?;
            }
            list.into_py_any(py)
        }
        Value::Struct(members) => {
            let dict = PyDict::new(py);
            for (name, member) in members {
                dict.set_item(name, object(py, member)?)?;
            }
            dict.into_py_any(py)
        }
    }
}
