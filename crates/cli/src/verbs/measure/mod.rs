//! `rtscope measure`: is this machine fit for real time?

mod cyclic;
mod cyclictest;
mod deadline;
mod disturbers;
mod eval;
mod explained;
mod gaps;
mod load_part;
mod loads;
mod looping;
mod max_rate;
mod phases;
mod preempting;
mod queuelat;
mod session;
mod small;
mod ssdd;
mod tally;
mod workload;
mod worst;

use event::Result;

use crate::exit::Outcome;
use crate::flags::{Measure, MeasureWhat};
use crate::paint::Paint;

pub use load_part::run as load_part;

/// Runs the verb.
pub fn run(typed: &Measure, paint: Paint) -> Result<Outcome> {
    match &typed.what {
        MeasureWhat::Cyclic(typed) => match &typed.cyclictest {
            Some(words) => cyclictest::run_as(words),
            None => cyclic::run(typed, paint),
        },
        MeasureWhat::Hw(typed) => gaps::run(typed),
        MeasureWhat::Loop(typed) if typed.find_max_rate => max_rate::run(typed),
        MeasureWhat::Loop(typed) => looping::run(typed),
        MeasureWhat::Eval(typed) => eval::run(typed),
        MeasureWhat::Deadline(typed) => deadline::run(typed),
        MeasureWhat::Queuelat(typed) => queuelat::run(typed),
        MeasureWhat::Ssdd(typed) => ssdd::run(typed),
        MeasureWhat::Preempt(typed) => preempting::run(typed),
    }
}
