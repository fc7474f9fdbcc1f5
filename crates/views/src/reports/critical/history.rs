//! What threads did, change by change, in as little memory as it takes to find one's way back.

use std::collections::VecDeque;

/// What a thread does from a change on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Doing {
    Unknown,
    Runs,
    WaitsForCpu,
    Blocked,
}

/// The way to an earlier node of a thread, with what the thread did from there on: what lies before
/// the stretch that is looked at need not be kept to know it.
///
/// # Encoding
/// The lower 30 bits are how many nodes earlier it is, zero for none; the upper two what it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Link(u32);

const DISTANCE_BITS: u32 = 30;
const DISTANCE_MAX: u64 = (1 << DISTANCE_BITS) - 1;

impl Link {
    /// To `place` from the later node `here`; none where that is too far.
    pub fn new(place: Option<Place>, here: u64) -> Link {
        let Some(place) = place else {
            return Link::default();
        };
        match here - place.node {
            distance @ 1..=DISTANCE_MAX => {
                Link(distance as u32 | (place.doing as u32) << DISTANCE_BITS)
            }
            _ => Link::default(),
        }
    }

    /// Where it leads from the node `here`.
    pub fn from(self, here: u64) -> Option<Place> {
        let distance = u64::from(self.0) & DISTANCE_MAX;
        let doing = match self.0 >> DISTANCE_BITS {
            1 => Doing::Runs,
            2 => Doing::WaitsForCpu,
            3 => Doing::Blocked,
            _ => Doing::Unknown,
        };
        (distance > 0).then(|| Place {
            node: here - distance,
            doing,
        })
    }
}

/// A thread's change: the number of its node, and what the thread did from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub node: u64,
    pub doing: Doing,
}

/// A change of a thread. Packed: there are as many as there are switches and wake-ups.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(super) struct Node {
    pub at_ns: i64,
    /// The change before.
    pub prev: Link,
    /// In a wake-up by a thread: the waker's last change.
    pub waker: Link,
    /// In a wake-up: what woke, as the recorder numbers it.
    pub by: Option<std::num::NonZeroU32>,
}

/// So many nodes share an allocation: nothing that is large is ever moved.
const BLOCK_NODES: usize = 1 << 16;

/// The newest nodes, numbered from the first that there ever was.
#[derive(Debug)]
pub(super) struct History {
    blocks: VecDeque<Vec<Node>>,
    /// The number of the first that is kept.
    begin: u64,
    blocks_max: usize,
}

impl History {
    /// Keeps `nodes_max` nodes, and less than a block more.
    pub fn new(nodes_max: usize) -> History {
        History {
            blocks: VecDeque::new(),
            begin: 0,
            blocks_max: nodes_max.div_ceil(BLOCK_NODES).saturating_add(1),
        }
    }

    /// The number of the next node.
    pub fn end(&self) -> u64 {
        let last = self.blocks.back().map_or(0, Vec::len);
        let full = self.blocks.len().saturating_sub(1) * BLOCK_NODES;
        self.begin + (full + last) as u64
    }

    pub fn push(&mut self, node: Node) {
        if self
            .blocks
            .back()
            .is_none_or(|block| block.len() == BLOCK_NODES)
        {
            let mut block = match self.blocks.len() == self.blocks_max {
                true => {
                    self.begin += BLOCK_NODES as u64;
                    self.blocks.pop_front().unwrap_or_default()
                }
                false => Vec::new(),
            };
            block.clear();
            self.blocks.push_back(block);
        }
        if let Some(block) = self.blocks.back_mut() {
            block.push(node);
        }
    }

    /// A node; none when it is no longer kept.
    pub fn get(&self, number: u64) -> Option<Node> {
        let place = usize::try_from(number.checked_sub(self.begin)?).ok()?;
        let block = self.blocks.get(place / BLOCK_NODES)?;
        block.get(place % BLOCK_NODES).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(at_ns: i64) -> Node {
        Node {
            at_ns,
            prev: Link::default(),
            waker: Link::default(),
            by: None,
        }
    }

    #[test]
    fn the_newest_nodes_are_kept_and_the_oldest_go() {
        let mut history = History::new(BLOCK_NODES);
        let count = 3 * BLOCK_NODES as i64 + 7;
        (0..count).for_each(|at_ns| history.push(node(at_ns)));
        assert_eq!(history.end(), count as u64);
        let at_ns = |number: i64| history.get(number as u64).map(|node| node.at_ns);
        assert_eq!(at_ns(count - 1), Some(count - 1));
        let oldest = count - BLOCK_NODES as i64;
        assert_eq!(at_ns(oldest), Some(oldest));
        assert_eq!(at_ns(0), None);
        assert_eq!(at_ns(count), None);
    }

    #[test]
    fn a_link_leads_back_to_what_it_was_made_from() {
        let check = |place: Option<Place>, here: u64, expect: Option<Place>| {
            assert_eq!(Link::new(place, here).from(here), expect);
        };
        let place = |node, doing| Some(Place { node, doing });
        check(None, 9, None);
        for doing in [
            Doing::Unknown,
            Doing::Runs,
            Doing::WaitsForCpu,
            Doing::Blocked,
        ] {
            check(place(3, doing), 9, place(3, doing));
        }
        let far = DISTANCE_MAX + 1;
        check(place(1, Doing::Runs), far, place(1, Doing::Runs));
        check(place(0, Doing::Runs), far, None);
        assert_eq!(size_of::<Node>(), 20);
    }
}
