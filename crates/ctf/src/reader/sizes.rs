//! How long an event's body is, as a short list of steps over bytes.
//!
//! Most bodies that have no fixed size are integers, texts that end with zero and sequences whose
//! length stands before them, all on whole bytes. Their end is found without looking at types.

use super::bits::{IntLoad, align_up, first_zero};
use super::layout::{ClassLayout, Node, NodeKind, Role};

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

/// The steps over the bodies of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BodySteps(Vec<Step>);

impl BodySteps {
    /// The steps of a class; none when its body takes more than these can say.
    pub fn of(class: &ClassLayout) -> Option<BodySteps> {
        let mut steps = BodySteps::default();
        for scope in class.scopes.iter().flatten() {
            steps.add(&scope.node)?;
        }
        Some(steps)
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
                let slot = int.slot.filter(|_| int.role == Role::None)?;
                self.0.push(Step::Keep {
                    load: int.load,
                    slot,
                });
            }
            NodeKind::String => self.0.push(Step::Text),
            NodeKind::Struct(members) => {
                for member in members {
                    self.add(&member.node)?;
                }
            }
            NodeKind::Sequence { element, slot, .. } => {
                let bits = element.size_bits.filter(|_| !element.keeps)?;
                let stride_bytes = whole_bytes(align_up(bits, element.align_bits))?;
                (element.align_bits <= 8).then_some(())?;
                self.0.push(Step::Times {
                    slot: *slot,
                    stride_bytes,
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn add_bytes(&mut self, bytes: usize) -> Option<()> {
        match self.0.last_mut() {
            Some(Step::Bytes(before)) => *before = before.checked_add(bytes)?,
            _ => self.0.push(Step::Bytes(bytes)),
        }
        Some(())
    }

    /// The end of the body that begins at byte `at`; none when it lies beyond the bytes.
    #[inline]
    pub fn end(&self, bytes: &[u8], mut at: usize, slots: &mut [u64]) -> Option<usize> {
        for step in &self.0 {
            at = match *step {
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
        }
        (at <= bytes.len()).then_some(at)
    }
}

fn whole_bytes(bits: u64) -> Option<usize> {
    usize::try_from(bits / 8)
        .ok()
        .filter(|_| bits.is_multiple_of(8))
}
