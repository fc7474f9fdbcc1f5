//! Writing a trace.

use std::path::PathBuf;

use event::{Cpu, Error, ErrorKind, Instant};
use face::Given;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::error::raised;

/// Begins a trace that appears at `path` when it is finished.
#[pyfunction]
#[pyo3(signature = (path, *, environment=None, wall_offset_ns=0, format="ctf1"))]
pub(crate) fn create(
    py: Python<'_>,
    path: PathBuf,
    environment: Option<&Bound<'_, PyDict>>,
    wall_offset_ns: i64,
    format: &str,
) -> PyResult<Writer> {
    let begin = || {
        let mut writer = face::Writer::create(&path)?;
        writer.wall_offset_ns(wall_offset_ns)?;
        writer.format(format)?;
        Ok(writer)
    };
    let mut writer = begin().map_err(|error: Error| raised(py, &error))?;
    for (key, value) in environment.into_iter().flatten() {
        let (key, value): (String, String) = (key.extract()?, value.str()?.extract()?);
        let added = writer.environment(&key, &value);
        added.map_err(|error| raised(py, &error))?;
    }
    Ok(Writer(Some(writer)))
}

/// Writes a trace.
#[pyclass(module = "rtscope")]
pub(crate) struct Writer(Option<face::Writer>);

impl Writer {
    fn call<T>(
        &mut self,
        py: Python<'_>,
        body: impl FnOnce(&mut face::Writer) -> event::Result<T>,
    ) -> PyResult<T> {
        let done = match &mut self.0 {
            Some(writer) => body(writer),
            None => Err(finished()),
        };
        done.map_err(|error| raised(py, &error))
    }

    /// Sets one field of the next event.
    fn set(&mut self, class: u32, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let number = self.0.as_ref().and_then(|w| w.field_number(class, name));
        let Some(field) = number else {
            let what = format!("the event has no field '{name}'");
            return Err(raised(py, &Error::new(ErrorKind::NotFound, what)));
        };
        let mut give = |given: Given<'_>| self.call(py, |writer| writer.set(class, field, given));
        if let Ok(text) = value.cast::<PyString>() {
            return give(Given::Text(text.to_cow()?.as_bytes()));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return give(Given::Text(bytes.as_bytes()));
        }
        if value.is_instance_of::<PyFloat>() {
            return give(Given::Float(value.extract()?));
        }
        if value.is_instance_of::<PyInt>() {
            return match value.extract::<i64>() {
                Ok(number) => give(Given::Signed(number)),
                Err(_) => give(Given::Unsigned(value.extract()?)),
            };
        }
        if let Ok(list) = value.extract::<Vec<i64>>() {
            return give(Given::SignedList(&list));
        }
        if let Ok(list) = value.extract::<Vec<u64>>() {
            return give(Given::UnsignedList(&list));
        }
        if let Ok(list) = value.extract::<Vec<f64>>() {
            return give(Given::FloatList(&list));
        }
        let kind = value.get_type();
        let text =
            format!("a field is an int, a float, a str, bytes or a list of numbers, not {kind}");
        Err(PyTypeError::new_err(text))
    }
}

fn finished() -> Error {
    Error::new(ErrorKind::InvalidInput, "the trace was finished already")
        .fix("create another to write more")
}

#[pymethods]
impl Writer {
    fn add_stream(&mut self, py: Python<'_>, name: &str) -> PyResult<u32> {
        self.call(py, |writer| writer.stream(name))
    }

    #[pyo3(signature = (stream, name, fields=None))]
    fn add_class(
        &mut self,
        py: Python<'_>,
        stream: u32,
        name: &str,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u32> {
        let class = self.call(py, |writer| writer.class(stream, name))?;
        for (field, ty) in fields.into_iter().flatten() {
            let (field, ty): (String, String) = (field.extract()?, ty.extract()?);
            self.add_field(py, class, &field, &ty)?;
        }
        Ok(class)
    }

    fn add_field(&mut self, py: Python<'_>, class: u32, name: &str, ty: &str) -> PyResult<u32> {
        self.call(py, |writer| writer.field(class, name, ty))
    }

    #[pyo3(signature = (class_number, time_ns, fields=None, *, cpu=0))]
    fn write(
        &mut self,
        py: Python<'_>,
        class_number: u32,
        time_ns: i64,
        fields: Option<&Bound<'_, PyDict>>,
        cpu: u32,
    ) -> PyResult<()> {
        for (name, value) in fields.into_iter().flatten() {
            let name: String = name.extract()?;
            self.set(class_number, &name, &value)?;
        }
        let time = Instant::from_ns(time_ns);
        self.call(py, |writer| writer.event(class_number, Cpu(cpu), time))
    }

    #[pyo3(signature = (stream, total, *, cpu=0))]
    fn discarded(&mut self, py: Python<'_>, stream: u32, total: u64, cpu: u32) -> PyResult<()> {
        self.call(py, |writer| writer.discarded(stream, Cpu(cpu), total))
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<PathBuf> {
        let done = self
            .0
            .take()
            .ok_or_else(finished)
            .and_then(face::Writer::close);
        done.map_err(|error| raised(py, &error))
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Finishes the trace; after an exception it is removed instead.
    fn __exit__(
        &mut self,
        py: Python<'_>,
        exception: Option<Py<PyAny>>,
        _value: Option<Py<PyAny>>,
        _traceback: Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        match exception {
            Some(_) => self.0 = None,
            None if self.0.is_some() => drop(self.finish(py)?),
            None => {}
        }
        Ok(false)
    }
}
