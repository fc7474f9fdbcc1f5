//! The iterator over items: events, losses and damage in the order of time.

use std::sync::Arc;

use event::Instant;
use face::{Selection, Step, Walk};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use trace::LossCause;

use crate::error::{FilterWarning, LossWarning, raised};
use crate::event_object::Event;
use crate::schema::Shared;

/// So many are remembered; all are counted.
const REMEMBERED_MAX: usize = 100;

/// Missing events.
#[pyclass(frozen, get_all, module = "rtscope")]
#[derive(Clone)]
pub(crate) struct Lost {
    cpu: Option<u32>,
    begin_ns: i64,
    end_ns: i64,
    count: Option<u64>,
    cause: &'static str,
}

impl From<&trace::Lost> for Lost {
    fn from(lost: &trace::Lost) -> Self {
        Lost {
            cpu: lost.cpu.map(|cpu| cpu.0),
            begin_ns: lost.range.begin.as_ns(),
            end_ns: lost.range.end.as_ns(),
            count: lost.count,
            cause: match lost.cause {
                LossCause::Discarded => "discarded",
                LossCause::Overrun => "overrun",
                _ => "unknown",
            },
        }
    }
}

#[pymethods]
impl Lost {
    fn __repr__(&self) -> String {
        let count = self.count.map_or("?".to_owned(), |count| count.to_string());
        let (begin, end) = (self.begin_ns, self.end_ns);
        format!(
            "<rtscope.Lost {count} events from {begin} to {end} ns ({})>",
            self.cause
        )
    }
}

/// Bytes that could not be understood.
#[pyclass(frozen, get_all, module = "rtscope")]
#[derive(Clone)]
pub(crate) struct Damage {
    file: String,
    offset_bytes: u64,
    reason: String,
}

#[pymethods]
impl Damage {
    fn __repr__(&self) -> String {
        let Damage {
            file,
            offset_bytes,
            reason,
        } = self;
        format!("<rtscope.Damage {file} at byte {offset_bytes}: {reason}>")
    }
}

/// Items of a selection.
#[pyclass(module = "rtscope")]
pub(crate) struct Items {
    walk: Walk,
    shared: Arc<Shared>,
    /// Losses and damage are not handed out, only counted and warned of.
    only_events: bool,
    #[pyo3(get)]
    lost_events: u64,
    #[pyo3(get)]
    lost_count: u64,
    losses: Vec<Lost>,
    #[pyo3(get)]
    damage_count: u64,
    damages: Vec<Damage>,
    was_warned: bool,
}

impl Items {
    pub fn new(
        py: Python<'_>,
        shared: &Arc<Shared>,
        selection: Selection,
        only_events: bool,
    ) -> PyResult<Items> {
        let walk = Walk::new(&shared.trace, selection).map_err(|error| raised(py, &error))?;
        warn_of_notes(py, &walk)?;
        Ok(Items {
            walk,
            shared: shared.clone(),
            only_events,
            lost_events: 0,
            lost_count: 0,
            losses: Vec::new(),
            damage_count: 0,
            damages: Vec::new(),
            was_warned: false,
        })
    }

    fn count_loss(&mut self, lost: &trace::Lost) {
        self.lost_count += 1;
        self.lost_events += lost.count.unwrap_or(0);
        if self.losses.len() < REMEMBERED_MAX {
            self.losses.push(Lost::from(lost));
        }
    }

    fn count_damage(&mut self, damage: &trace::Damage) -> Damage {
        let damage = Damage {
            file: damage.file.clone(),
            offset_bytes: damage.offset_bytes,
            reason: damage.reason.clone(),
        };
        self.damage_count += 1;
        if self.damages.len() < REMEMBERED_MAX {
            self.damages.push(damage.clone());
        }
        damage
    }
}

/// Filters that name what is not there are said at once.
pub(crate) fn warn_of_notes(py: Python<'_>, walk: &Walk) -> PyResult<()> {
    for note in walk.notes() {
        warn::<FilterWarning>(py, &format!("{note:#}"))?;
    }
    Ok(())
}

/// What was passed that is no event, said once.
pub(crate) fn warn_of_losses(py: Python<'_>, lost: u64, holes: u64, damaged: u64) -> PyResult<()> {
    let places = |count: u64| format!("{count} place{}", if count == 1 { "" } else { "s" });
    if holes > 0 {
        let text = format!(
            "{lost} events were lost in {}: results may be incomplete",
            places(holes)
        );
        warn::<LossWarning>(py, &text)?;
    }
    if damaged > 0 {
        let text = format!("the trace could not be read in {}", places(damaged));
        warn::<LossWarning>(py, &text)?;
    }
    Ok(())
}

fn warn<W: pyo3::PyTypeInfo>(py: Python<'_>, text: &str) -> PyResult<()> {
    let warnings = py.import("warnings")?;
    warnings.call_method1("warn", (text, py.get_type::<W>()))?;
    Ok(())
}

#[pymethods]
impl Items {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            match self.walk.advance().map_err(|error| raised(py, &error))? {
                Step::Event => {
                    let Some(event) = self.walk.event() else {
                        continue;
                    };
                    return Event::copy(py, &self.shared, &event)?
                        .into_py_any(py)
                        .map(Some);
                }
                Step::Lost(lost) => {
                    self.count_loss(&lost);
                    if !self.only_events {
                        return Lost::from(&lost).into_py_any(py).map(Some);
                    }
                }
                Step::Damage(damage) => {
                    let damage = self.count_damage(&damage);
                    if !self.only_events {
                        return damage.into_py_any(py).map(Some);
                    }
                }
                Step::End => {
                    if self.only_events && !self.was_warned {
                        self.was_warned = true;
                        let counts = (self.lost_events, self.lost_count, self.damage_count);
                        warn_of_losses(py, counts.0, counts.1, counts.2)?;
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// The first selected item at or after a time comes next.
    fn seek(mut this: PyRefMut<'_, Self>, time_ns: i64) -> PyResult<PyRefMut<'_, Self>> {
        let outcome = this.walk.seek(Instant::from_ns(time_ns));
        outcome.map_err(|error| raised(this.py(), &error))?;
        Ok(this)
    }

    #[getter]
    fn losses(&self) -> Vec<Lost> {
        self.losses.clone()
    }

    #[getter]
    fn damages(&self) -> Vec<Damage> {
        self.damages.clone()
    }
}
