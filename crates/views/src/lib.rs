//! Views of a trace: reports, periods, packets between hosts, budgets.
//!
//! # Design constraints
//! - Pure: events in, tables out. No clock, no printing; no file but one that its caller lends it.
//! - All reports that are asked for are answered in one pass, by observing [`kernel_state`].

mod budgets;
mod hosts;
pub mod periods;
pub mod reports;

pub use budgets::{
    Budget, BudgetFinding, Called, Checked, Judgement, Rules, SleepsInside, Subject, check_budgets,
    check_budgets_on,
};
