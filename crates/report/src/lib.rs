//! Findings as text, JSON, pages and pictures: no analysis here, and no printing either.
//!
//! # Design constraints
//! - JSON is versioned; times and lengths are integer nanoseconds with `_ns` in the key.
//! - Colour only when asked for, and only with a meaning.

mod budgets;
mod comparison;
mod count;
mod cyclic;
mod deadline;
mod diagnosis_text;
mod eval;
mod events_text;
mod gaps;
mod incident;
mod junit;
mod loop_picture;
mod looping;
mod measured;
mod preempt;
mod queue;
mod reports;
mod scope;
mod steps;
mod trace_facts;
mod xml;

pub use budgets::{budgets_json, budgets_junit, budgets_text};
pub use comparison::{comparison_json, comparison_junit, comparison_text, loads_apart};
pub use cyclic::{
    Cyclic, CyclictestFacts, Late, cyclic_json, cyclic_text, cyclictest_histogram, cyclictest_json,
    cyclictest_status,
};
pub use deadline::{Deadlines, deadline_json, deadline_text};
pub use diagnosis::{diagnosis_json, hit_json};
pub use diagnosis_text::{TextStyle, diagnosis_text, hit_text, judged_text};
pub use eval::{
    Compared, Ended, Evaluation, Parts, RunPart, Series, Workload, compare_html, compare_text,
    compare_verdict, eval_file, eval_hash, eval_html, eval_json, eval_junit, eval_text, file_hash,
    is_eval,
};
pub use events_text::{
    EventBodies, EventClock, EventLines, EventNames, EventOrigin, EventText, EventTextOptions,
    EventTimes,
};
pub use gaps::{Gaps, Held, Limits, gaps_json, gaps_text};
pub use incident::{Incident, incident_html, incident_svg};
pub use junit::{Case, CaseOutcome, junit};
pub use loop_picture::{LoopBins, loop_picture};
pub use looping::{
    LoopFacts, LossFreeRate, loop_file, loop_json, loop_plot, loop_text, rates_json, rates_text,
};
pub use measured::Measured;
pub use preempt::{Preempt, preempt_json, preempt_text};
pub use queue::{Queue, queue_json, queue_text};
pub use reports::{
    Calendar, Date, Drawing, Grid, LAMI_VERSION, LamiColumn, LamiResults, LamiTable, Picture,
    ReportHtml, ReportJson, ReportText, lami_error, lami_metadata, lami_tables, picture,
};
pub use steps::{Steps, steps_json, steps_text};
pub use trace_facts::{ClassCount, Losses, TraceFacts, trace_facts_json, trace_facts_text};
