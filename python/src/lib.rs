//! The native part of the Python package `rtscope`; `rtscope/__init__.pyi` is its manual.
//!
//! # Design constraints
//! - The same calls as `librtscope`, by the same names, over the same `face` crate.
//! - An event that was handed out stays what it was: its numbers and texts are copied at once,
//!   Python's objects for them are made when somebody asks.
//! - Tables cross through Arrow's PyCapsule interface: no Python object per event, and no library
//!   that must be installed.

mod error;
mod event_object;
mod items;
mod schema;
mod selection;
mod table;
mod trace_object;
mod value;
mod writer;

/// `rtscope._native`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::error::{Error, FilterWarning, LossWarning};
    #[pymodule_export]
    use super::event_object::Event;
    #[pymodule_export]
    use super::items::{Damage, Items, Lost};
    #[pymodule_export]
    use super::schema::{BoundField, Class, Field};
    #[pymodule_export]
    use super::selection::Selection;
    #[pymodule_export]
    use super::table::Batches;
    #[pymodule_export]
    use super::trace_object::{Trace, open};
    #[pymodule_export]
    use super::writer::{Writer, create};
}
