//! How readily a kernel preempts its own code.

use super::record::label_part;

/// The preemption model in force; the values are those of `docs/format/evidence.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PreemptionModel {
    /// The kernel does not say.
    #[default]
    Unknown = 0,
    /// Kernel code is not preempted.
    None = 1,
    /// Kernel code is preempted at explicit points.
    Voluntary = 2,
    /// Fair tasks are preempted at the next tick, others at once.
    Lazy = 3,
    /// Kernel code is preempted where it does not forbid it.
    Full = 4,
    /// PREEMPT_RT.
    Rt = 5,
}

impl PreemptionModel {
    /// All models, with the names that text, JSON and traces use, in the order of the values.
    pub const NAMES: [(PreemptionModel, &'static str); 6] = [
        (PreemptionModel::Unknown, "unknown"),
        (PreemptionModel::None, "none"),
        (PreemptionModel::Voluntary, "voluntary"),
        (PreemptionModel::Lazy, "lazy"),
        (PreemptionModel::Full, "full"),
        (PreemptionModel::Rt, "rt"),
    ];

    /// This one, or `other` where it is not known.
    pub fn or(self, other: PreemptionModel) -> PreemptionModel {
        match self {
            PreemptionModel::Unknown => other,
            known => known,
        }
    }

    /// The model with this value in a record.
    pub fn from_value(value: u8) -> Option<PreemptionModel> {
        Self::NAMES.get(usize::from(value)).map(|(model, _)| *model)
    }

    /// The model of this name.
    pub fn from_name(name: &str) -> Option<PreemptionModel> {
        let found = Self::NAMES.iter().find(|(_, text)| *text == name);
        found.map(|(model, _)| *model)
    }

    /// Whether kernel code is preempted outside critical sections, so that a task that stays on
    /// the CPU has preemption off.
    pub fn is_full(self) -> bool {
        matches!(self, PreemptionModel::Full | PreemptionModel::Rt)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

label_part!(PreemptionModel, PreemptionModel::Unknown);
