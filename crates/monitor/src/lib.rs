//! Latencies for months: closed intervals of counted phases, the store that keeps them, and what
//! is told of them. `docs/monitor.md` is for people, `docs/format/monitor.md` has the store.
//!
//! # Design constraints
//! - An interval that was closed is in the store, or the loss is said: it is written in one
//!   transaction that survives the death of the process and of the machine.
//! - One process writes a store; who reads it needs no lock and holds nobody up.
//! - The store is bounded by age and by size; the oldest intervals go first.
//! - Nothing here looks at the kernel: who counts and who knows names hands them over.

mod buckets;
mod compare;
mod compare_text;
mod exemplars;
mod export;
mod gate;
mod gate_text;
mod interval;
mod kind;
mod known;
mod late;
mod metrics;
mod native;
mod of_kind;
mod osadl;
mod otlp;
mod owner;
mod page;
mod reading;
mod refused;
mod report;
mod rows;
mod schema;
mod store;
mod sum;
mod task;
#[cfg(test)]
mod test_data;
mod wall;

pub use buckets::{Histogram, Linear};
pub use compare::{
    ByChance, PhaseChange, PhaseSide, PhaseTrend, StoreComparison, StoreSide, compare_stores,
};
pub use compare_text::{change_line, store_comparison_json, store_comparison_text};
pub use export::{Format, export};
pub use gate::{Gate, GateFinding, GateJudgement, GateReport, GateSubject, judge};
pub use gate_text::{gate_basis, gate_json, gate_reason, gate_text};
pub use interval::{Head, Interval, Names, Run, Scope, Series, Worst};
pub use kind::{Kind, Tracked};
pub use late::Late;
pub use metrics::Metrics;
pub use osadl::export_osadl;
pub use page::{PageQuestion, page_json};
pub use report::report;
pub use store::{Appended, Limits, Range, Store, is_store, store_file};
pub use sum::PhaseSum;
pub use task::Task;
pub use wall::{day_text, wall_text};
