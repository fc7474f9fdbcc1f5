//! From a trace to the name of the culprit: kernel state model, ledger, verdict.
//!
//! Ask a [`Query`] of a trace; the answer holds the late activations, a [`Ledger`] of each, groups
//! by cause and one [`Verdict`] per cause. The rules of the ledger are in `docs/ledger.md`.
//!
//! # Design constraints
//! - Pure: events in, findings out. No file, no clock, no printing.
//! - One pass over the events; per event no allocation and no text.
//! - Never a false culprit: what the events do not prove is [`TermKind::Unexplained`].

mod advice;
mod at_work;
mod clause;
mod compare;
mod crosscheck;
mod culprits;
mod diagnose;
mod due;
mod evidence;
mod excluded;
mod finding;
mod gaps;
mod host;
mod inside;
mod json;
mod kept;
mod kernel_sleep;
mod kin;
mod ledger;
mod lengths;
mod locks;
mod model;
mod naming;
mod origins;
mod own_cost;
mod phases;
mod policy;
mod public;
mod query;
mod quota;
mod signature;
mod stacks;
mod term;
mod thread_names;
mod verdict;
mod waits;
mod warnings;

pub use advice::{check_threshold, quoted};
pub use compare::{
    CauseChange, CauseSide, ComparedCause, ComparedShare, Comparison, Load, LoadsApart, compare,
    compare_under, ranks_by_chance,
};
pub use diagnose::diagnose;
pub use event::evidence::{
    EndKind, Frame, Hit, PreemptionModel, Stack, Step, StepKind, StopKind, TaskRef,
};
pub use finding::{
    Advice, Basis, Culprit, Diagnosis, Grade, Group, LateActivation, Ledger, Parts, Renamed,
    SleepsInside, StepCheck, Verdict, WaitedMutex, Warning,
};
pub use gaps::{ExplainedGap, Gap, Taker, explain_gaps};
pub use json::{diagnosis_json, hit_json};
pub use kernel_state::{TaskFilter, softirq_name};
pub use lengths::Lengths;
pub use origins::{Origin, origins};
pub use query::{Query, Until};
pub use term::{Reason, Short, Sum, Term, TermKind};
