//! The way back: from the end of a window to its begin, through whoever woke the thread.

use super::history::{Doing, Place};
use super::recorder::Recorder;
use crate::reports::ordered::Ordered;
use kernel_state::{ProcId, Waker};

/// So many threads may wait for each other in a chain; what lies deeper is called blocked.
const DEPTH_MAX: usize = 64;

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Runs,
    WaitsForCpu,
    /// Until this woke it; none when nothing did before the window's end.
    Blocked(Option<Waker>),
    Unknown,
}

/// A piece of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub who: ProcId,
    pub what: What,
}

/// What a path consists of, from its end on.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// The last ones, the latest first.
    pub steps: Vec<Step>,
    /// How many came before them.
    pub left_out: u64,
    /// Of all steps: how long, and how often.
    pub sums: Ordered<(u32, What), (i64, u64)>,
    /// The step that the next one may belong to.
    open: Option<Step>,
}

impl Path {
    /// Adds the step before; pieces that touch and say the same are one.
    fn push(&mut self, step: Step, steps_max: usize) {
        if let Some(open) = &mut self.open
            && (open.who, open.what, open.begin_ns) == (step.who, step.what, step.end_ns)
        {
            open.begin_ns = step.begin_ns;
            return;
        }
        self.close(steps_max);
        self.open = Some(step);
    }

    fn close(&mut self, steps_max: usize) {
        let Some(step) = self.open.take() else { return };
        let sum = self.sums.entry((step.who.0, step.what)).or_default();
        sum.0 += step.end_ns - step.begin_ns;
        sum.1 += 1;
        match self.steps.len() < steps_max {
            true => self.steps.push(step),
            false => self.left_out += 1,
        }
    }
}

/// A thread that is followed, down to an instant.
#[derive(Clone, Copy, Debug)]
struct Frame {
    who: ProcId,
    /// The change at which what it did began.
    place: Option<Place>,
    /// What woke it there above, and the last change of the thread that did.
    woken: Option<(Waker, Option<Place>)>,
    /// Down to here, and so down to this change: what is older began before.
    floor_ns: i64,
    floor: u64,
}

/// A path on its way back. It goes down from change to change and never up again, so that the
/// history can be had in parts.
#[derive(Debug)]
pub(super) struct Follower {
    frames: Vec<Frame>,
    end_ns: i64,
    steps_max: usize,
    path: Path,
}

impl Follower {
    /// From the window's end on, where the thread `who` did what began at `place`.
    pub fn new(
        who: ProcId,
        place: Option<Place>,
        begin_ns: i64,
        end_ns: i64,
        steps_max: usize,
    ) -> Follower {
        Follower {
            frames: vec![Frame {
                who,
                place,
                woken: None,
                floor_ns: begin_ns,
                floor: 0,
            }],
            end_ns,
            steps_max,
            path: Path::default(),
        }
    }

    /// Goes as far as the history reaches.
    ///
    /// # Errors
    /// The number of the change that it needs next and that is not kept.
    pub fn follow(&mut self, recorder: &Recorder) -> Result<(), u64> {
        while let Some(&frame) = self.frames.last() {
            if self.end_ns <= frame.floor_ns {
                self.frames.pop();
                continue;
            }
            let kept = frame.place.filter(|place| place.node >= frame.floor);
            let node = match kept {
                Some(place) => Some(recorder.history.get(place.node).ok_or(place.node)?),
                None => None,
            };
            if let Some(open) = self.frames.last_mut() {
                (open.place, open.woken) = match (kept, node) {
                    (Some(place), Some(node)) => {
                        let waker = node.waker.from(place.node);
                        let woken = recorder.waker(node).map(|by| (by, waker));
                        (node.prev.from(place.node), woken)
                    }
                    _ => (None, None),
                };
            }
            let begin_ns = node.map_or(frame.floor_ns, |node| node.at_ns.max(frame.floor_ns));
            // What a thread did when the window began is put down when it changes: its number
            // says nothing of its time.
            let window_ns = self.frames.first().map_or(begin_ns, |root| root.floor_ns);
            let in_turn = kept.filter(|_| node.is_some_and(|node| node.at_ns > window_ns));
            if begin_ns < self.end_ns {
                self.stretch(&frame, begin_ns, in_turn);
            }
        }
        Ok(())
    }

    /// Gives the unknown rest to the thread, when the history cannot be had.
    pub fn give_up(&mut self) {
        if let (Some(frame), Some(root)) = (self.frames.last(), self.frames.first()) {
            let step = Step {
                begin_ns: root.floor_ns,
                end_ns: self.end_ns,
                who: frame.who,
                what: What::Unknown,
            };
            self.path.push(step, self.steps_max);
        }
        self.frames.clear();
    }

    pub fn into_path(mut self) -> Path {
        self.path.close(self.steps_max);
        self.path
    }

    /// What the thread did from `begin_ns` on: a step, or the way goes on in who woke it. `since`
    /// is the change at which it began, when that was inside of the window.
    fn stretch(&mut self, frame: &Frame, begin_ns: i64, since: Option<Place>) {
        let doing = frame.place.map_or(Doing::Unknown, |place| place.doing);
        let what = match doing {
            Doing::Unknown => What::Unknown,
            Doing::Runs => What::Runs,
            Doing::WaitsForCpu => What::WaitsForCpu,
            Doing::Blocked => What::Blocked(frame.woken.map(|(by, _)| by)),
        };
        if let (What::Blocked(Some(Waker::Thread(who))), Some((_, place))) = (what, frame.woken)
            && who != frame.who
            && self.frames.len() <= DEPTH_MAX
        {
            self.frames.push(Frame {
                who,
                place,
                woken: None,
                floor_ns: begin_ns,
                floor: since.map_or(frame.floor, |place| place.node),
            });
            return;
        }
        self.path.push(
            Step {
                begin_ns,
                end_ns: self.end_ns,
                who: frame.who,
                what,
            },
            self.steps_max,
        );
        self.end_ns = begin_ns;
    }
}
