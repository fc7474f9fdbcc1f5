//! How long an event's body is and where its fields begin, as a short list of steps over bytes.
//!
//! Most bodies that have no fixed size are integers, texts that end with zero and sequences whose
//! length stands before them, all on whole bytes. Their end is found without looking at types.

use super::bits::{IntLoad, align_up, first_zero};
use super::layout::{Node, NodeKind, Role, ScopeLayout};

/// One step towards the end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Bytes(usize),
    /// Up to a zero and over it.
    Text,
    /// An integer that is a length further on.
    Keep {
        load: IntLoad,
        slot: u16,
    },
    /// As many times so many bytes as the slot says.
    Times {
        slot: u16,
        stride_bytes: usize,
    },
}

/// A part of a body that begins so many bytes behind what the steps before `step` have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    step: usize,
    offset_bytes: usize,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// By its place in the class's scopes.
    Scope(usize),
    /// By its place in the class's list.
    Field(usize),
}

/// What is done on the way to the last mark, and to the last length that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Go(Step),
    Mark(Mark),
}

/// The steps over the bodies of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodySteps {
    steps: Vec<Step>,
    /// In the order of their bytes.
    marks: Vec<Mark>,
    /// Both, one behind the other, without the steps that lead to nothing more.
    ways: Vec<Way>,
}

impl BodySteps {
    /// The steps of a class; none when its body takes more than these can say.
    pub fn of(scopes: &[Option<ScopeLayout>; 3]) -> Option<BodySteps> {
        let mut steps = BodySteps::default();
        for (place, scope) in scopes.iter().enumerate() {
            let Some(scope) = scope else { continue };
            let NodeKind::Struct(members) = &scope.node.kind else {
                return None;
            };
            if scope.node.align_bits > 8 {
                return None;
            }
            steps.mark(Part::Scope(place));
            for (member, field) in members.iter().zip(scope.first_field..) {
                // The others are so many bytes behind their scope's begin.
                if member.offset_bits.is_none() {
                    steps.mark(Part::Field(field));
                }
                steps.add(&member.node)?;
            }
        }
        steps.ways = steps.ways();
        Some(steps)
    }

    fn ways(&self) -> Vec<Way> {
        let (mut ways, mut gone) = (Vec::new(), 0);
        for mark in &self.marks {
            let steps = self.steps.get(gone..mark.step).unwrap_or_default();
            ways.extend(steps.iter().copied().map(Way::Go));
            ways.push(Way::Mark(*mark));
            gone = mark.step.max(gone);
        }
        // A sequence at a place that is known has no mark, and its length is asked for all the
        // same.
        let keeps = |step: &Step| matches!(step, Step::Keep { .. });
        let last = self
            .steps
            .iter()
            .rposition(keeps)
            .map_or(0, |last| last + 1);
        let rest = self.steps.get(gone..last).unwrap_or_default();
        ways.extend(rest.iter().copied().map(Way::Go));
        ways
    }

    fn mark(&mut self, part: Part) {
        let (step, offset_bytes) = match self.steps.last() {
            Some(Step::Bytes(before)) => (self.steps.len() - 1, *before),
            _ => (self.steps.len(), 0),
        };
        self.marks.push(Mark {
            step,
            offset_bytes,
            part,
        });
    }

    fn add(&mut self, node: &Node) -> Option<()> {
        if node.align_bits > 8 {
            return None;
        }
        if let Some(bits) = node.size_bits.filter(|_| !node.keeps) {
            return self.add_bytes(whole_bytes(bits)?);
        }
        match &node.kind {
            NodeKind::Int(int) => {
                whole_bytes(node.size_bits?)?;
                let slot = match (int.slot, int.later_slot) {
                    (Some(slot), None) | (None, Some(slot)) => slot,
                    _ => return None,
                };
                (int.role == Role::None).then_some(())?;
                self.steps.push(Step::Keep {
                    load: int.load,
                    slot,
                });
            }
            NodeKind::String => self.steps.push(Step::Text),
            NodeKind::Struct(members) => {
                for member in members {
                    self.add(&member.node)?;
                }
            }
            NodeKind::Sequence { element, slot, .. } => {
                let bits = element.size_bits.filter(|_| !element.keeps)?;
                let stride_bytes = whole_bytes(align_up(bits, element.align_bits))?;
                (element.align_bits <= 8).then_some(())?;
                self.steps.push(Step::Times {
                    slot: *slot,
                    stride_bytes,
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn add_bytes(&mut self, bytes: usize) -> Option<()> {
        match self.steps.last_mut() {
            Some(Step::Bytes(before)) => *before = before.checked_add(bytes)?,
            _ => self.steps.push(Step::Bytes(bytes)),
        }
        Some(())
    }

    /// The end of the body that begins at byte `at`; none when it lies beyond the bytes.
    #[inline]
    pub fn end(&self, bytes: &[u8], mut at: usize, slots: &mut [u64]) -> Option<usize> {
        for step in &self.steps {
            at = step.end(bytes, at, slots)?;
        }
        Some(at)
    }

    /// Where the scopes of the body that begins at byte `at` begin, and its fields, as far as that
    /// depends on data, in bits; none when the way there leads beyond the bytes.
    pub fn place(
        &self,
        bytes: &[u8],
        mut at: usize,
        slots: &mut [u64],
        (scopes, fields): (&mut [u64; 3], &mut [u64]),
    ) -> Option<()> {
        for way in &self.ways {
            match *way {
                Way::Go(step) => at = step.end(bytes, at, slots)?,
                Way::Mark(mark) => {
                    let position = (at.checked_add(mark.offset_bytes)? as u64).checked_mul(8)?;
                    match mark.part {
                        Part::Scope(place) => *scopes.get_mut(place)? = position,
                        Part::Field(place) => *fields.get_mut(place)? = position,
                    }
                }
            }
        }
        Some(())
    }
}

impl Step {
    /// Where the step that begins at byte `at` leads; none beyond the bytes.
    #[inline]
    fn end(self, bytes: &[u8], at: usize, slots: &mut [u64]) -> Option<usize> {
        let end = match self {
            Step::Bytes(count) => at.checked_add(count)?,
            Step::Text => at + first_zero(bytes.get(at..)?)? + 1,
            Step::Keep { load, slot } => {
                *slots.get_mut(usize::from(slot))? = load.read(bytes, at as u64 * 8)?;
                at + usize::from(load.size_bits / 8)
            }
            Step::Times { slot, stride_bytes } => {
                let count = usize::try_from(*slots.get(usize::from(slot))?).ok()?;
                at.checked_add(count.checked_mul(stride_bytes)?)?
            }
        };
        (end <= bytes.len()).then_some(end)
    }
}

fn whole_bytes(bits: u64) -> Option<usize> {
    usize::try_from(bits / 8)
        .ok()
        .filter(|_| bits.is_multiple_of(8))
}
