//! The vocabulary that every crate of rtscope shares: instants and durations, CPUs, tasks and
//! priorities, event classes and values, and the one error type.
//!
//! # Design constraints
//! - No I/O, no clock, no dependency: this crate only gives names to things.
//! - An [`Instant`] has no meaning without its clock; two of the same clock make a [`Duration`].
//!   Mixing them, or their units, must not type-check.

mod civil;
mod code;
mod error;
pub mod evidence;
mod group;
mod ids;
pub mod json;
pub mod kernel_threads;
mod mix;
mod name;
mod name_pattern;
mod partition;
mod plain;
mod record;
mod schema;
mod steady;
mod task_pattern;
mod time;
mod value;
pub mod vectors;

pub use civil::civil_date;
pub use code::is_function_field;
pub use error::{Error, ErrorKind, Result};
pub use group::{GroupId, GroupName};
pub use ids::{Cpu, Prio, Tid};
pub use mix::{Mix, Mixing, NumberMap};
pub use name::Name;
pub use name_pattern::{COMM_BYTES_MAX, Element, NamePattern};
pub use partition::partition_value;
pub use plain::plain_text;
pub use record::Record;
pub use schema::{
    Base, ClassId, EventClass, Field, FieldId, FieldType, Integer, IntegerMapping, Length, Scope,
    WideEncoding,
};
pub use steady::are_steady;
pub use task_pattern::{FORMS as TASK_FORMS, NamedTask, TaskPattern};
pub use time::{Clock, Duration, Instant, TimeRange};
pub use value::Value;
