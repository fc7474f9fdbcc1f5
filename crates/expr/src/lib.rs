//! The filter language and the period language: parsed once, compiled against event classes.
//!
//! # How to use it
//! [`Expr::parse`] reads a filter, [`Filter::new`] binds it to the classes of a trace, and
//! [`Filter::matches`] is asked for each event. Who keeps track of the running tasks himself, or
//! needs none, takes a [`Program`]. Any event that has [`event::Record`] will do.
//!
//! [`period`] reads the definitions of periods that lttng-analyses brought up.
//!
//! [`kernel`] makes code for the kernel of a filter and of the [`Key`] of an event; [`words`] says
//! a filter in the language of the kernel's own filters.
//!
//! Both languages are on one page, `docs/filter.md`, whose examples are tests.
//!
//! # Design constraints
//! - Classes that cannot match are known before the first event ([`Program::wants`]).
//! - Asking allocates nothing for numbers and texts; only a filter that reaches into structures,
//!   variants or arrays decodes them whole.
//! - Integers never wrap: signed and unsigned compare by value, and an operation without a result
//!   makes its comparison false.
//! - What people type is hostile: length, depth, number of patterns and size of a program are
//!   bounded, and nothing panics.

mod ast;
mod bind;
mod compile;
mod filter;
mod functions;
pub mod kernel;
mod keys;
mod lexer;
mod notes;
mod number;
mod parser;
mod parts;
mod pattern;
pub mod period;
mod print;
mod program;
mod span;
pub mod steps;
mod tasks;
mod tokens;
mod units;
pub mod words;

pub use ast::{
    BinaryOp, CompareOp, Cond, Expr, FieldRef, FieldScope, Literal, MatchOp, Operand, Pattern,
    Pseudo, Root, Step, Text, UnaryOp,
};
pub use filter::Filter;
pub use functions::IsMeant;
pub use keys::Key;
pub use notes::{edit_distance, nearest};
pub use pattern::{Glob, GlobPart};
pub use program::{Program, Wants};
pub use span::Span;
pub use tasks::{RunningTask, Tasks};
