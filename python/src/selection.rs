//! The part of a trace that is asked for, piece by piece.

use std::sync::Arc;

use event::{Cpu, Instant, TimeRange};
use expr::Expr;
use pyo3::prelude::*;

use crate::error::raised;
use crate::items::Items;
use crate::schema::Shared;
use crate::table::Batches;

/// One CPU or several.
#[derive(FromPyObject)]
pub(crate) enum Cpus {
    One(u32),
    Many(Vec<u32>),
}

/// What a call asks for beside the filter.
#[derive(Default)]
pub(crate) struct Window {
    pub begin_ns: Option<i64>,
    pub end_ns: Option<i64>,
    pub cpu: Option<Cpus>,
}

impl Window {
    /// Together with the filters, which all must match.
    pub fn with(self, py: Python<'_>, filters: &[String]) -> PyResult<face::Selection> {
        // Each is read by itself, so that an error points into what was typed.
        for filter in filters {
            Expr::parse(filter).map_err(|error| raised(py, &error))?;
        }
        let all: Vec<String> = filters.iter().map(|filter| format!("({filter})")).collect();
        let text = match filters {
            [] => None,
            [one] => Some(one.clone()),
            _ => Some(all.join(" && ")),
        };
        let filter = text.as_deref().map(Expr::parse).transpose();
        let cpus = match self.cpu {
            None => Vec::new(),
            Some(Cpus::One(cpu)) => vec![Cpu(cpu)],
            Some(Cpus::Many(cpus)) => cpus.into_iter().map(Cpu).collect(),
        };
        Ok(face::Selection {
            range: TimeRange {
                begin: self.begin_ns.map_or(Instant::MIN, Instant::from_ns),
                end: self.end_ns.map_or(Instant::MAX, Instant::from_ns),
            },
            cpus,
            filter: filter.map_err(|error| raised(py, &error))?,
        })
    }
}

/// Events that match.
#[pyclass(frozen, module = "rtscope")]
pub(crate) struct Selection {
    pub shared: Arc<Shared>,
    pub filters: Vec<String>,
}

impl Selection {
    fn within(
        &self,
        py: Python<'_>,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        cpu: Option<Cpus>,
    ) -> PyResult<face::Selection> {
        let window = Window {
            begin_ns,
            end_ns,
            cpu,
        };
        window.with(py, &self.filters)
    }
}

#[pymethods]
impl Selection {
    pub fn filter(&self, py: Python<'_>, filter: String) -> PyResult<Selection> {
        let mut filters = self.filters.clone();
        filters.push(filter);
        Window::default().with(py, &filters)?;
        Ok(Selection {
            shared: self.shared.clone(),
            filters,
        })
    }

    #[pyo3(signature = (*, begin_ns=None, end_ns=None, cpu=None))]
    pub fn items(
        &self,
        py: Python<'_>,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        cpu: Option<Cpus>,
    ) -> PyResult<Items> {
        let selection = self.within(py, begin_ns, end_ns, cpu)?;
        Items::new(py, &self.shared, selection, false)
    }

    #[pyo3(signature = (*, begin_ns=None, end_ns=None, cpu=None))]
    pub fn events(
        &self,
        py: Python<'_>,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        cpu: Option<Cpus>,
    ) -> PyResult<Items> {
        let selection = self.within(py, begin_ns, end_ns, cpu)?;
        Items::new(py, &self.shared, selection, true)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Items> {
        self.events(py, None, None, None)
    }

    #[pyo3(signature = (columns=None, *, rows=0, begin_ns=None, end_ns=None, cpu=None))]
    pub fn batches(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        rows: usize,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        cpu: Option<Cpus>,
    ) -> PyResult<Batches> {
        let selection = self.within(py, begin_ns, end_ns, cpu)?;
        Batches::new(py, &self.shared, selection, columns.as_deref(), rows)
    }
}
