//! Chains: from an origin through handlers and wake-ups to a task.
//!
//! A chain is a list that grows at its end; chains that fork share their beginning. All nodes lie
//! in one arena, so that a step costs no allocation of its own.

use event::{Cpu, Instant, Prio};

use super::tasks::{Tasks, VersionId};
use event::evidence::{Step, StepKind};

/// A place in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub u32);

impl NodeId {
    pub const NONE: NodeId = NodeId(u32::MAX);

    pub fn is_none(self) -> bool {
        self == NodeId::NONE
    }
}

/// One step and what came before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub time_ns: i64,
    pub origin_ns: i64,
    pub parent: NodeId,
    pub id: i32,
    pub version: VersionId,
    pub cpu: u16,
    pub kind: StepKind,
    /// Steps before it.
    pub depth: u8,
}

/// Steps that a chain may have before a wake-up starts a new one.
pub(crate) const DEPTH_MAX: u8 = 64;
/// Age that a chain may have when a task hands it on: two tasks that wake each other for ever would
/// make one chain for ever.
pub(crate) const AGE_MAX_NS: i64 = 10_000_000_000;

/// All chains of a trace.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
}

/// What a new node is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewNode {
    pub time_ns: i64,
    pub kind: StepKind,
    pub cpu: u32,
    pub id: i32,
    pub version: VersionId,
}

impl Arena {
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    /// Appends to `parent`; without one, the node is the origin of a new chain.
    pub fn add(&mut self, parent: NodeId, new: NewNode) -> NodeId {
        let before = self.get(parent).copied();
        self.nodes.push(Node {
            time_ns: new.time_ns,
            origin_ns: before.map_or(new.time_ns, |node| node.origin_ns),
            parent,
            id: new.id,
            version: new.version,
            cpu: new.cpu as u16,
            kind: new.kind,
            depth: before.map_or(0, |node| node.depth.saturating_add(1)),
        });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// The chain that a task or handler hands on, or none when it is too long or too old.
    pub fn fresh(&self, id: NodeId, now_ns: i64) -> NodeId {
        let keeps = |node: &Node| {
            node.depth < DEPTH_MAX && now_ns.saturating_sub(node.origin_ns) <= AGE_MAX_NS
        };
        if self.get(id).is_some_and(keeps) {
            id
        } else {
            NodeId::NONE
        }
    }

    /// The same chain for a task that has waited for it only since `since_ns`.
    pub fn wait_since(&mut self, id: NodeId, since_ns: i64) -> NodeId {
        let Some(node) = self.get(id).copied() else {
            return id;
        };
        if node.origin_ns >= since_ns {
            return id;
        }
        self.nodes.push(Node {
            origin_ns: since_ns,
            ..node
        });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// When the task was woken whose wake-up, or whose switch-in behind it, is the last step.
    pub fn woken_ns(&self, id: NodeId) -> Option<i64> {
        let last = self.get(id)?;
        let woken = match last.kind {
            StepKind::SwitchIn => self.get(last.parent)?,
            _ => last,
        };
        (woken.kind == StepKind::Waking).then_some(woken.time_ns)
    }

    /// Whether a timer's callback made the wake-up with which a chain ends, or is its last step.
    pub fn released_by_timer(&self, id: NodeId) -> bool {
        let last = self.get(id);
        let last = match last {
            Some(node) if node.kind == StepKind::Waking => self.get(node.parent),
            last => last,
        };
        last.is_some_and(|node| node.kind == StepKind::Hrtimer)
    }

    /// The same of a task that was scheduled in.
    pub fn came_by_timer(&self, id: NodeId) -> bool {
        let came = self.get(id).filter(|node| node.kind == StepKind::SwitchIn);
        self.released_by_timer(came.map_or(id, |node| node.parent))
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Begins to drop what is not reachable.
    pub fn sweep(&self) -> Sweep {
        Sweep(vec![false; self.nodes.len()])
    }

    /// Copies a chain behind another origin.
    pub fn rebase(&mut self, id: NodeId, origin: NewNode) -> NodeId {
        let path = self.path(id);
        let mut last = self.add(NodeId::NONE, origin);
        // Of a chain that was not waited for from its begin on, the rest lies before the origin.
        let begins = |place: &NodeId| self.nodes[place.0 as usize].time_ns >= origin.time_ns;
        let path: Vec<NodeId> = path.into_iter().filter(begins).collect();
        for place in path {
            let Node {
                time_ns,
                kind,
                cpu,
                id,
                version,
                ..
            } = self.nodes[place.0 as usize];
            last = self.add(
                last,
                NewNode {
                    time_ns,
                    kind,
                    cpu: u32::from(cpu),
                    id,
                    version,
                },
            );
        }
        last
    }

    /// The nodes from the origin to `id`.
    fn path(&self, id: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut next = id;
        while let Some(node) = self.get(next) {
            path.push(next);
            next = node.parent;
        }
        path.reverse();
        path
    }

    /// The steps from the origin to `id`, as people see them.
    pub fn steps(&self, id: NodeId, tasks: &Tasks, name: impl Fn(&Node) -> String) -> Vec<Step> {
        let step = |place: NodeId| {
            let node = &self.nodes[place.0 as usize];
            let version = tasks.version(node.version);
            Step {
                time: Instant::from_ns(node.time_ns),
                kind: node.kind,
                cpu: Cpu(u32::from(node.cpu)),
                id: node.id,
                prio: version.map_or(Prio(0), |version| version.prio),
                comm: version
                    .map_or_else(|| name(node), |version| event::plain_text(version.comm())),
            }
        };
        let mut steps: Vec<Step> = self.path(id).into_iter().map(step).collect();
        if let Some(node) = self.get(id) {
            begin_at(&mut steps, Instant::from_ns(node.origin_ns));
        }
        steps
    }
}

/// Cuts off what came before `origin`; the step under way then begins there.
pub(crate) fn begin_at(steps: &mut Vec<Step>, origin: Instant) -> usize {
    let begun = steps.partition_point(|step| step.time <= origin);
    let Some(first) = begun.checked_sub(1) else {
        return 0;
    };
    steps.drain(..first);
    steps[0].time = origin;
    first
}

/// Which nodes are kept.
#[derive(Debug)]
pub(crate) struct Sweep(Vec<bool>);

impl Sweep {
    /// Keeps a node, and with it what came before.
    pub fn keep(&mut self, id: NodeId) {
        if let Some(kept) = self.0.get_mut(id.0 as usize) {
            *kept = true;
        }
    }

    /// Drops the others. A parent lies before its children.
    pub fn finish(mut self, arena: &mut Arena) -> Numbers {
        for place in (0..arena.nodes.len()).rev() {
            if self.0[place] {
                self.keep(arena.nodes[place].parent);
            }
        }
        let mut numbers = Numbers(vec![NodeId::NONE; arena.nodes.len()]);
        let mut next = 0;
        for place in 0..arena.nodes.len() {
            if self.0[place] {
                let mut node = arena.nodes[place];
                node.parent = numbers.of(node.parent);
                arena.nodes[next] = node;
                numbers.0[place] = NodeId(next as u32);
                next += 1;
            }
        }
        arena.nodes.truncate(next);
        arena.nodes.shrink_to(2 * next);
        numbers
    }
}

/// The new numbers of the nodes that were kept.
#[derive(Debug)]
pub(crate) struct Numbers(Vec<NodeId>);

impl Numbers {
    /// The new number; none for a node that was dropped, and for none.
    pub fn of(&self, id: NodeId) -> NodeId {
        self.0.get(id.0 as usize).copied().unwrap_or(NodeId::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_keeps_a_chain_whole_and_drops_the_others() {
        let mut arena = Arena::default();
        let step = |time_ns| NewNode {
            time_ns,
            kind: StepKind::Waking,
            cpu: 0,
            id: 0,
            version: VersionId::NONE,
        };
        let dropped = arena.add(NodeId::NONE, step(1));
        let first = arena.add(NodeId::NONE, step(2));
        arena.add(dropped, step(3));
        let last = arena.add(first, step(4));
        let mut sweep = arena.sweep();
        sweep.keep(last);
        sweep.keep(NodeId::NONE);
        let numbers = sweep.finish(&mut arena);
        assert_eq!(arena.len(), 2);
        assert_eq!(numbers.of(dropped), NodeId::NONE);
        let node = arena.get(numbers.of(last)).expect("it is kept");
        assert_eq!((node.time_ns, node.origin_ns), (4, 2));
        let parent = arena.get(node.parent).expect("it is kept");
        assert_eq!((parent.time_ns, parent.depth), (2, 0));
    }
}
