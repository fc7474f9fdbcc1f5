//! An open trace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use event::{Duration, Instant, TimeRange};
use face::{Accessor, Question};
use pyo3::prelude::*;
use trace::{OpenOptions, Root};

use crate::error::raised;
use crate::items::Items;
use crate::schema::{BoundField, Class, Shared};
use crate::selection::{Cpus, Selection};
use crate::table::Batches;

/// One path or several.
#[derive(FromPyObject)]
pub(crate) enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

/// Opens a trace, or several as one.
#[pyfunction]
#[pyo3(signature = (path, *, clock_offset_ns=0, intersection=false))]
pub(crate) fn open(
    py: Python<'_>,
    path: Paths,
    clock_offset_ns: i64,
    intersection: bool,
) -> PyResult<Trace> {
    let roots: Vec<Root> = match path {
        Paths::One(path) => vec![Root::from(path)],
        Paths::Many(paths) => paths.into_iter().map(Root::from).collect(),
    };
    let options = OpenOptions {
        clock_offset: Duration::from_ns(clock_offset_ns),
        intersection,
        ..OpenOptions::default()
    };
    let opened = py.detach(|| trace::Trace::open_all(&roots, &options));
    let opened = opened.map_err(|error| raised(py, &error))?;
    Ok(Trace(Arc::new(Shared::new(opened))))
}

/// An open trace.
#[pyclass(frozen, module = "rtscope")]
pub(crate) struct Trace(Arc<Shared>);

impl Trace {
    fn select(&self, filter: Option<String>) -> Selection {
        Selection {
            shared: self.0.clone(),
            filters: filter.into_iter().collect(),
        }
    }
}

#[pymethods]
impl Trace {
    #[getter]
    fn begin_ns(&self) -> Option<i64> {
        Some(self.0.trace.range()?.begin.as_ns())
    }

    #[getter]
    fn end_ns(&self) -> Option<i64> {
        Some(self.0.trace.range()?.end.as_ns())
    }

    fn wall_ns(&self, time_ns: i64) -> i64 {
        self.0.trace.wall_ns(Instant::from_ns(time_ns))
    }

    #[getter]
    fn environment(&self) -> BTreeMap<String, String> {
        self.0.trace.info().environment.clone()
    }

    #[getter]
    fn cpus(&self) -> Vec<u32> {
        self.0.trace.info().cpus.iter().map(|cpu| cpu.0).collect()
    }

    #[getter]
    fn classes(&self) -> Vec<Class> {
        let class = |number| Class {
            shared: self.0.clone(),
            number,
        };
        (0..self.0.classes.len()).map(class).collect()
    }

    fn bind(&self, py: Python<'_>, name: &str) -> PyResult<BoundField> {
        Accessor::bind(&self.0.trace, name).map_err(|error| raised(py, &error))?;
        Ok(BoundField::new(&self.0, name))
    }

    fn filter(&self, py: Python<'_>, filter: String) -> PyResult<Selection> {
        self.select(None).filter(py, filter)
    }

    #[pyo3(signature = (filter=None, *, begin_ns=None, end_ns=None, cpu=None))]
    fn items(
        &self,
        py: Python<'_>,
        filter: Option<String>,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        cpu: Option<Cpus>,
    ) -> PyResult<Items> {
        self.select(filter).items(py, begin_ns, end_ns, cpu)
    }

    #[pyo3(signature = (filter=None, *, begin_ns=None, end_ns=None, cpu=None))]
    fn events(
        &self,
        py: Python<'_>,
        filter: Option<String>,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        cpu: Option<Cpus>,
    ) -> PyResult<Items> {
        self.select(filter).events(py, begin_ns, end_ns, cpu)
    }

    /// The answer of `rtscope diagnose --json`, as a dict.
    #[allow(clippy::too_many_arguments)] // named ones, in Python
    #[pyo3(signature = (
        tasks=None, *, over_ns=None, until="block", worst=10, begin_ns=None, end_ns=None
    ))]
    fn diagnose<'py>(
        &self,
        py: Python<'py>,
        tasks: Option<Vec<String>>,
        over_ns: Option<i64>,
        until: &str,
        worst: usize,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = Question {
            tasks: tasks.unwrap_or_default(),
            over_ns,
            until: until.to_owned(),
            worst,
            range: TimeRange {
                begin: begin_ns.map_or(Instant::MIN, Instant::from_ns),
                end: end_ns.map_or(Instant::MAX, Instant::from_ns),
            },
        };
        let trace = &self.0.trace;
        let json = py.detach(|| face::diagnosis_json(trace, &question));
        let json = json.map_err(|error| raised(py, &error))?;
        py.import("json")?.call_method1("loads", (json,))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Items> {
        self.events(py, None, None, None, None)
    }

    #[allow(clippy::too_many_arguments)] // named ones, in Python
    #[pyo3(signature = (
        columns=None, *, filter=None, rows=0, begin_ns=None, end_ns=None, cpu=None
    ))]
    fn batches(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        filter: Option<String>,
        rows: usize,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        cpu: Option<Cpus>,
    ) -> PyResult<Batches> {
        self.select(filter)
            .batches(py, columns, rows, begin_ns, end_ns, cpu)
    }

    fn __repr__(&self) -> String {
        let info = self.0.trace.info();
        let host = info.environment.get("hostname").map_or("", String::as_str);
        let (classes, cpus) = (self.0.classes.len(), info.cpus.len());
        format!("<rtscope.Trace of {host:?}: {classes} classes, {cpus} CPUs>")
    }
}
