//! Batches of columns, for every library that takes Arrow's PyCapsules.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use face::Selection;
use face::table::export_stream;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::raised;
use crate::items::warn_of_notes;
use crate::schema::Shared;

/// Batches of columns.
#[pyclass(frozen, module = "rtscope")]
pub(crate) struct Batches(Arc<Mutex<face::table::Batches>>);

impl Batches {
    pub fn new(
        py: Python<'_>,
        shared: &Arc<Shared>,
        selection: Selection,
        columns: Option<&[String]>,
        rows: usize,
    ) -> PyResult<Batches> {
        let batches = face::table::Batches::new(&shared.trace, selection, columns, rows);
        let batches = batches.map_err(|error| raised(py, &error))?;
        warn_of_notes(py, batches.walk())?;
        Ok(Batches(Arc::new(Mutex::new(batches))))
    }

    fn lock(&self) -> MutexGuard<'_, face::table::Batches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Batches {
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.lock().columns().map(str::to_owned).collect()
    }

    #[getter]
    fn rows(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().tally().rows)
    }

    #[getter]
    fn lost_events(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().tally().lost_events)
    }

    #[getter]
    fn lost_count(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().tally().lost_places)
    }

    #[getter]
    fn damage_count(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().tally().damage_count)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer give its own types whatever was requested.
        drop(requested_schema);
        PyCapsule::new_with_value(py, export_stream(self.0.clone()), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, self.lock().schema(), c"arrow_schema")
    }

    /// The rest of the table by pyarrow.
    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = this.py().import("pyarrow")?;
        let table = pyarrow.call_method1("table", (this,))?;
        let (lost, holes, damaged) = {
            let batches = this.get().lock();
            let tally = batches.tally();
            (tally.lost_events, tally.lost_places, tally.damage_count)
        };
        crate::items::warn_of_losses(this.py(), lost, holes, damaged)?;
        Ok(table)
    }

    /// The rest of the table by pyarrow and pandas.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Batches::to_arrow(this)?.call_method0("to_pandas")
    }
}
