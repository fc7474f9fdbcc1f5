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
mod budgets;
mod compare;
mod crosscheck;
mod diagnose;
mod evidence;
mod facts;
mod finding;
mod gaps;
mod hosts;
mod inside;
mod kernel;
mod ledger;
mod model;
mod naming;
pub mod periods;
mod phases;
mod public;
mod query;
pub mod reports;
mod signature;
mod term;
mod verdict;

pub use budgets::{Budget, BudgetFinding, Checked, Judgement, Rules, Subject, check_budgets};
pub use compare::{CauseChange, CauseSide, ComparedCause, Comparison, compare};
pub use diagnose::diagnose;
pub use event::evidence::{EndKind, Frame, Hit, PreemptionModel, Stack, Step, StepKind, TaskRef};
pub use finding::{
    Advice, Basis, Culprit, Diagnosis, Grade, Group, LateActivation, Ledger, StepCheck, Verdict,
    WaitedMutex, Warning,
};
pub use gaps::{ExplainedGap, Gap, Taker, explain_gaps};
pub use query::{Query, TaskFilter};
pub use term::{Reason, Sum, Term, TermKind, softirq_name};
