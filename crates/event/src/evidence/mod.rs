//! Evidence: what the in-kernel watch sends, what a snapshot holds, what is printed.
//!
//! One vocabulary for all three, so that the same hit reads the same everywhere. Each kind of
//! records has a file: what it means, the kernel's bytes, its event class, its way into a trace and
//! back, and the test of that. To add one: such a file, a line in [`kinds`] below, the structure
//! and the number in `bpf/event.h`, the program that writes it, its section in
//! `docs/format/evidence.md`.

mod blocked;
mod from_kernel;
mod hit;
mod late;
mod late_timer;
mod moment;
mod preemption_model;
mod preemption_off;
pub mod raw;
mod record;
mod released;
mod stack;
mod steal;
mod stopped;
mod sum;
mod task;
mod throttled;
pub mod tracked;
mod worked;

use crate::{ClassId, Cpu, EventClass, Instant};
use from_kernel::FromKernel;
use raw::Plain;
use record::Record;

pub use blocked::{Blocked, BlockedOn};
pub use from_kernel::Machine;
pub use hit::{EndKind, Hit, Kin, Step, StepKind, irq};
pub use late::LateOne;
pub use late_timer::{LateTimer, Mode};
pub use moment::{Moment, Role};
pub use preemption_model::PreemptionModel;
pub use preemption_off::PreemptionOff;
pub use record::{Place, Source};
pub use released::{ReleaseKind, Released, slack_floor};
pub use stack::{Frame, Stack, named, unnamed};
pub use steal::Steal;
pub use stopped::{Asleep, StopKind, Stopped};
pub use sum::Sum;
pub use task::TaskRef;
pub use throttled::Throttled;
pub use worked::{FoundStack, Worked};

/// All kinds: each a variant, the place for its records, its number in `bpf/event.h`.
macro_rules! kinds {
    ($( $(#[$doc:meta])* $name:ident in $records:ident = $value:literal, )*) => {
        /// One record of the evidence stream that is no hit.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Evidence { $( $(#[$doc])* $name($name), )* }

        /// All evidence of a trace, each kind in the order of time.
        #[derive(Clone, Debug, Default)]
        pub struct Records {
            /// Chains over the threshold.
            pub hits: Vec<Hit>,
            $( $(#[$doc])* pub $records: Vec<$name>, )*
        }

        /// A kind of records of the evidence stream.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            /// A chain over the threshold.
            Hit,
            $( $(#[$doc])* $name, )*
        }

        impl Kind {
            /// All kinds, in the order of their classes in a stream.
            pub const ALL: &[Kind] = &[Kind::Hit, $(Kind::$name,)*];

            /// The name of its event class.
            pub fn class_name(self) -> &'static str {
                match self {
                    Kind::Hit => Hit::NAME,
                    $( Kind::$name => $name::NAME, )*
                }
            }

            fn fields(self) -> Vec<crate::Field> {
                match self {
                    Kind::Hit => Hit::fields(),
                    $( Kind::$name => $name::fields(), )*
                }
            }
        }

        impl Evidence {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self { $( Evidence::$name(_) => Kind::$name, )* }
            }

            fn place(&self) -> Place {
                match self { $( Evidence::$name(record) => record.place(), )* }
            }

            /// Names the functions of its stack.
            pub fn symbolise(&mut self, name: impl Fn(u64) -> String) {
                match self { $( Evidence::$name(record) => record.symbolise(&name), )* }
            }

            /// Appends its bytes, as the fields of its class lay them out.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self { $( Evidence::$name(record) => record.encode(out), )* }
            }

            /// What the kernel's bytes say; none when the kind is unknown or they make no sense.
            pub fn from_kernel(
                value: u8,
                place: Place,
                mut bytes: &[u8],
                machine: &Machine,
            ) -> Option<Evidence> {
                match value {
                    $( $value => {
                        let raw = Plain::take(&mut bytes)?;
                        $name::from_kernel(place, &raw, machine).map(Evidence::$name)
                    } )*
                    _ => None,
                }
            }
        }

        impl Records {
            /// Reads an event of this kind, if it makes sense; `adjust` may change what it says.
            pub fn read(
                &mut self,
                kind: Kind,
                place: Place,
                source: &dyn Source,
                adjust: impl Fn(&mut Evidence),
            ) {
                match kind {
                    Kind::Hit => self.hits.extend(Hit::decode(place, source)),
                    $( Kind::$name => {
                        let read = $name::decode(place, source).map(Evidence::$name);
                        read.into_iter().for_each(|mut evidence| {
                            adjust(&mut evidence);
                            self.push(evidence);
                        });
                    } )*
                }
            }

            /// Adds a record.
            pub fn push(&mut self, evidence: Evidence) {
                match evidence { $( Evidence::$name(record) => self.$records.push(record), )* }
            }
        }

        /// What a C compiler must say of `bpf/event.h`: expressions, and the number of each.
        pub fn kernel_layout() -> Vec<(String, usize)> {
            let mut layout = [raw::Stack::layout(), raw::Task::layout()].concat();
            $( layout.extend(<$name as FromKernel>::Raw::layout()); )*
            layout
        }
    };
}

kinds! {
    /// A late timer.
    LateTimer in late_timers = 1,
    /// A late preemption.
    PreemptionOff in preemption_off = 2,
    /// A target blocked inside its activation.
    Blocked in blocked = 3,
    /// A target that its group's quota keeps from running.
    Throttled in throttled = 4,
    /// A target that was stopped, traced or frozen.
    Stopped in stopped = 5,
    /// A target that was due before its timer woke it.
    Released in released = 6,
    /// A task of a hit as it was then.
    Moment in moments = 7,
    /// What the hypervisor took.
    Steal in steal = 8,
    /// Where a target was at its own work.
    Worked in worked = 9,
}

impl Kind {
    /// The kind of this event class.
    pub fn of_class(name: &str) -> Option<Kind> {
        let mut kinds = Kind::ALL.iter().copied();
        kinds.find(|kind| kind.class_name() == name)
    }

    /// Its place in [`classes`].
    pub fn class(self) -> u32 {
        self as u32
    }
}

/// The event classes of the stream.
pub fn classes(stream: u32) -> Vec<EventClass> {
    let class = |kind: &Kind| EventClass {
        id: ClassId(0),
        name: kind.class_name().to_owned(),
        stream,
        fields: kind.fields().into(),
    };
    Kind::ALL.iter().map(class).collect()
}

impl Evidence {
    /// The event's time.
    pub fn time(&self) -> Instant {
        self.place().time
    }

    /// The CPU that it happened on.
    pub fn cpu(&self) -> Cpu {
        self.place().cpu
    }
}

impl Hit {
    /// Appends its bytes, as the fields of its class lay them out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        Record::encode(self, out);
    }
}

#[cfg(test)]
mod testing {
    //! What the tests of all kinds need.

    pub(super) use super::record::testing::check_round_trip;
    use super::{Place, Plain, TaskRef};
    use crate::{Cpu, Instant, Prio, Tid};

    pub(super) fn place() -> Place {
        Place {
            cpu: Cpu(1),
            time: Instant::from_ns(1_000),
        }
    }

    pub(super) fn task(comm: &str) -> TaskRef {
        TaskRef {
            tid: Tid(7),
            comm: comm.to_owned(),
            prio: Prio(39),
        }
    }

    /// A record of zeros.
    pub(super) fn kernel_record<R: Plain>() -> R {
        let zeros = vec![0; size_of::<R>()];
        R::take(&mut zeros.as_slice()).expect("as many bytes as it has")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_class_of_its_own_at_its_place() {
        let classes = classes(1);
        for (place, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(kind.class() as usize, place);
            assert_eq!(Kind::of_class(&classes[place].name), Some(*kind));
        }
        assert_eq!(Kind::of_class("rtscope_other"), None);
    }

    #[test]
    fn bytes_of_no_kind_or_too_few_are_no_record() {
        let place = testing::place();
        let machine = Machine::default();
        assert_eq!(Evidence::from_kernel(99, place, &[0; 512], &machine), None);
        assert_eq!(Evidence::from_kernel(1, place, &[0; 16], &machine), None);
        assert!(Evidence::from_kernel(1, place, &[0; 512], &machine).is_some());
    }
}
