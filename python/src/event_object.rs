//! One event: a copy of its values, dict-like.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use trace::EventView;

use crate::schema::{BoundField, ClassInfo, FieldInfo, Load, Shared};
use crate::value;

/// A value that was copied.
enum Cell {
    Bits(u64),
    /// A part of the event's texts.
    Text(usize, usize),
    /// What has no compact form.
    Object(Py<PyAny>),
}

/// An event.
#[pyclass(frozen, mapping, module = "rtscope")]
pub(crate) struct Event {
    shared: Arc<Shared>,
    class: usize,
    #[pyo3(get)]
    time_ns: i64,
    #[pyo3(get)]
    cpu: Option<u32>,
    /// By field.
    cells: Box<[Cell]>,
    text: Vec<u8>,
}

impl Event {
    /// A copy of the event that a walk stands on.
    pub fn copy(py: Python<'_>, shared: &Arc<Shared>, event: &EventView<'_>) -> PyResult<Event> {
        let class = event.class().0 as usize;
        let mut text = Vec::new();
        let fields = shared.classes[class].fields.iter();
        let cell = |field: &FieldInfo| -> PyResult<Cell> {
            Ok(match field.load {
                Load::Unsigned | Load::Signed | Load::Bool => Cell::Bits(event.u64(field.id)),
                Load::Float => Cell::Bits(event.f64(field.id).to_bits()),
                Load::Text => {
                    let begin = text.len();
                    text.extend_from_slice(event.text(field.id));
                    Cell::Text(begin, text.len())
                }
                Load::Other => Cell::Object(value::object(py, &event.value(field.id))?),
            })
        };
        Ok(Event {
            cells: fields.map(cell).collect::<PyResult<_>>()?,
            shared: shared.clone(),
            class,
            time_ns: event.time().as_ns(),
            cpu: event.cpu().map(|cpu| cpu.0),
            text,
        })
    }

    fn info(&self) -> &ClassInfo {
        &self.shared.classes[self.class]
    }

    fn object(&self, py: Python<'_>, place: usize) -> PyResult<Py<PyAny>> {
        let text = |begin: usize, end: usize| String::from_utf8_lossy(&self.text[begin..end]);
        match (&self.cells[place], self.info().fields[place].load) {
            (Cell::Bits(bits), Load::Signed) => (*bits as i64).into_py_any(py),
            (Cell::Bits(bits), Load::Bool) => (*bits != 0).into_py_any(py),
            (Cell::Bits(bits), Load::Float) => f64::from_bits(*bits).into_py_any(py),
            (Cell::Bits(bits), _) => bits.into_py_any(py),
            (Cell::Text(begin, end), _) => text(*begin, *end).into_py_any(py),
            (Cell::Object(object), _) => Ok(object.clone_ref(py)),
        }
    }

    /// The place of a field by its name or as it was bound.
    fn place(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        if let Ok(name) = key.cast::<PyString>() {
            return Ok(self.info().places.get(&*name.to_cow()?).copied());
        }
        match key.cast::<BoundField>() {
            Ok(field) => Ok(field.get().places.get(self.class).copied().flatten()),
            Err(_) => Err(PyTypeError::new_err(
                "a field is named by a str or a BoundField",
            )),
        }
    }
}

#[pymethods]
impl Event {
    #[getter]
    fn name(&self) -> &str {
        &self.info().name
    }

    #[getter]
    fn class_number(&self) -> usize {
        self.class
    }

    #[getter]
    fn wall_ns(&self) -> i64 {
        let time = event::Instant::from_ns(self.time_ns);
        self.shared.trace.wall_ns(time)
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match self.place(key)? {
            Some(place) => self.object(key.py(), place),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    #[pyo3(signature = (key, default=None))]
    fn get(&self, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        match self.place(key)? {
            Some(place) => self.object(key.py(), place),
            None => Ok(default.unwrap_or_else(|| key.py().None())),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.place(key)?.is_some())
    }

    fn __len__(&self) -> usize {
        self.cells.len()
    }

    fn keys(&self) -> Vec<&str> {
        self.info()
            .fields
            .iter()
            .map(|field| &*field.name)
            .collect()
    }

    fn values(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        (0..self.cells.len())
            .map(|place| self.object(py, place))
            .collect()
    }

    fn items(&self, py: Python<'_>) -> PyResult<Vec<(&str, Py<PyAny>)>> {
        let fields = self.info().fields.iter().enumerate();
        fields
            .map(|(place, field)| Ok((&*field.name, self.object(py, place)?)))
            .collect()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyList::new(py, self.keys())?.call_method0("__iter__")
    }

    /// The first label of an enumeration's value.
    fn label(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<&str>> {
        let Some(place) = self.place(key)? else {
            return Err(PyKeyError::new_err(key.clone().unbind()));
        };
        Ok(match &self.cells[place] {
            Cell::Bits(bits) => self.info().fields[place].label(*bits),
            _ => None,
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!("<rtscope.Event {} at {} ns", self.name(), self.time_ns);
        if let Some(cpu) = self.cpu {
            text.push_str(&format!(" on CPU {cpu}"));
        }
        for (name, value) in self.items(py)? {
            text.push_str(&format!(", {name}={}", value.bind(py).repr()?));
        }
        Ok(text + ">")
    }
}
