//! What goes wrong with a recording, drawn.

use proptest::prelude::*;

use crate::damage::Damage;
use crate::recording::{Recording, Shows, Wakes};
use crate::story::{moody_stories, stories};

/// A stretch of the story in thousandths of its length.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub begin: i64,
    pub len: i64,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub struct Faults {
    pub wakes: Wakes,
    /// The kernel hides when CPUs other than the first leave idle.
    pub hides_idle: bool,
    /// The kernel hides switches to and from this task.
    pub hides_task: Option<i32>,
    /// Events of one CPU, or of all, are lost, and the trace says so.
    pub losses: Vec<(Option<u32>, Share)>,
    /// Events of a CPU, or of all, begin later, and nothing says so.
    pub late: Option<(Option<u32>, i64)>,
    /// The trace is on disk, and bytes of it were overwritten.
    pub damage: Option<Damage>,
    pub shows: Shows,
    /// What of the recording is asked for, where that is not all.
    pub asked: Option<Share>,
}

fn share() -> impl Strategy<Value = Share> {
    (0i64..1_000, 1i64..400).prop_map(|(begin, len)| Share {
        begin,
        len: len.min(1_000 - begin),
    })
}

fn wakes() -> impl Strategy<Value = Wakes> {
    prop_oneof![
        3 => Just(Wakes::Both),
        1 => Just(Wakes::OnlyWaking),
        1 => Just(Wakes::OnlyWakeup),
    ]
}

const NO_FAULTS: Faults = Faults {
    wakes: Wakes::Both,
    hides_idle: false,
    hides_task: None,
    losses: Vec::new(),
    late: None,
    damage: None,
    shows: Shows::Nothing,
    asked: None,
};

fn several() -> impl Strategy<Value = Faults> {
    let cpu = || prop::option::of(0u32..4);
    let losses = prop::collection::vec((cpu(), share(), prop::option::of(0u32..4)), 0..3);
    // Two CPUs may lose the same stretch.
    let losses = losses.prop_map(|losses| {
        let both = |(cpu, share, twin): (Option<u32>, Share, Option<u32>)| {
            let twin = twin.map(|twin| (Some(twin), share));
            [Some((cpu, share)), twin].into_iter().flatten()
        };
        losses.into_iter().flat_map(both).collect::<Vec<_>>()
    });
    let late = prop::option::of((cpu(), 1i64..600));
    let hides_task = prop::option::of(101i32..109);
    (losses, late, any::<bool>(), hides_task).prop_map(|(losses, late, hides_idle, hides_task)| {
        Faults {
            losses,
            late,
            hides_idle,
            hides_task,
            ..NO_FAULTS
        }
    })
}

/// A kind of fault that a property is claimed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    HiddenIdle,
    HiddenTask,
    /// The same two where each event says which task had its CPU.
    ShownIdle,
    ShownTask,
    LostOnOne,
    LostOnAll,
    LateCpu,
    /// All begin in the middle of what happens.
    LateAll,
    /// None, but tasks that have a CPU are moved to another one, and CPUs go off and on.
    Moved,
    /// None, but only a window of it is asked for.
    Window,
    /// Several of these at once.
    Several,
    Damaged,
}

impl Fault {
    fn faults(self) -> BoxedStrategy<Faults> {
        let lost = |cpu: BoxedStrategy<Option<u32>>| {
            let losses = prop::collection::vec((cpu, share()), 1..3);
            losses.prop_map(|losses| Faults {
                losses,
                ..NO_FAULTS
            })
        };
        let faults = match self {
            Fault::None | Fault::Moved => Just(NO_FAULTS).boxed(),
            Fault::HiddenIdle | Fault::ShownIdle => Just(Faults {
                hides_idle: true,
                ..NO_FAULTS
            })
            .boxed(),
            Fault::HiddenTask | Fault::ShownTask => (101i32..109)
                .prop_map(|tid| Faults {
                    hides_task: Some(tid),
                    ..NO_FAULTS
                })
                .boxed(),
            Fault::LostOnOne => lost((0u32..4).prop_map(Some).boxed()).boxed(),
            Fault::LostOnAll => lost(Just(None).boxed()).boxed(),
            Fault::LateCpu => (0u32..4, 1i64..900)
                .prop_map(|(cpu, share)| Faults {
                    late: Some((Some(cpu), share)),
                    ..NO_FAULTS
                })
                .boxed(),
            Fault::LateAll => (1i64..900)
                .prop_map(|share| Faults {
                    late: Some((None, share)),
                    ..NO_FAULTS
                })
                .boxed(),
            Fault::Window => share()
                .prop_map(|share| Faults {
                    asked: Some(share),
                    ..NO_FAULTS
                })
                .boxed(),
            Fault::Several => several().boxed(),
            Fault::Damaged => Damage::any()
                .prop_map(|damage| Faults {
                    damage: Some(damage),
                    ..NO_FAULTS
                })
                .boxed(),
        };
        let shown = [Shows::WithEachEvent, Shows::WhereHidden].map(Just);
        let shown = prop_oneof![shown[0], shown[1]];
        let shows = match self {
            Fault::HiddenIdle | Fault::HiddenTask | Fault::Damaged => Just(Shows::Nothing).boxed(),
            Fault::ShownIdle | Fault::ShownTask => shown.boxed(),
            _ => prop_oneof![Just(Shows::Nothing), shown].boxed(),
        };
        (faults, wakes(), shows)
            .prop_map(|(faults, wakes, shows)| Faults {
                wakes,
                shows,
                ..faults
            })
            .boxed()
    }

    /// Recordings with this fault, of any story.
    pub fn recordings(self) -> impl Strategy<Value = Recording> {
        let stories = match self {
            Fault::Moved => moody_stories(true).boxed(),
            Fault::Several | Fault::Window => {
                prop_oneof![moody_stories(false), moody_stories(true)].boxed()
            }
            Fault::LateAll => moody_stories(false).boxed(),
            _ => stories().boxed(),
        };
        let drawn = (stories, self.faults());
        let recordings = drawn.prop_map(|(story, faults)| Recording::new(&story, &faults));
        recordings.prop_filter("a damage that only takes events away", |recording| {
            !recording.is_garbled()
        })
    }
}
