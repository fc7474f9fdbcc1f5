//! How what the kernel's watch sends becomes a record.

use super::preemption_model::PreemptionModel;
use super::raw::Plain;
use super::record::Place;

/// What the machine says for all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The preemption model in force.
    pub model: PreemptionModel,
}

/// A kind of records that the kernel's watch sends.
pub(super) trait FromKernel: Sized {
    /// The kernel's bytes.
    type Raw: Plain;
    /// What they say; none when they make no sense.
    fn from_kernel(place: Place, raw: &Self::Raw, machine: &Machine) -> Option<Self>;
    /// Names the functions of its stack, if it has one.
    fn symbolise(&mut self, _name: &dyn Fn(u64) -> String) {}
}
