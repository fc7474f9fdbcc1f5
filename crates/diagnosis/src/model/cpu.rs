//! What the model keeps of each CPU while it reads.

use super::chain::NodeId;
use super::tasks::TaskIndex;
use super::timeline::Timeline;

/// A hard interrupt that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct HardFrame {
    pub irq: i32,
    pub base: NodeId,
    pub current: NodeId,
}

/// A hard interrupt whose handler has returned. It may go on to wake the handler's thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftHandler {
    pub irq: i32,
    pub chain: NodeId,
    pub end_ns: i64,
}

/// Softirq vectors that the model has room for; the kernel has ten.
pub(super) const VECTORS_MAX: usize = 32;
/// Hard interrupts that may nest; more means that exits were missed.
pub(super) const NESTING_MAX: usize = 8;

/// A timer as it was armed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    /// When what it wakes is due.
    pub due_ns: i64,
    /// So much later it may run; 0: too little to count.
    pub slack_ns: i64,
}

/// The state of one CPU.
#[derive(Debug)]
pub(super) struct CpuState {
    /// The timer in progress, where its slack counts.
    pub slack: Option<Armed>,
    pub current: Option<TaskIndex>,
    pub frames: Vec<HardFrame>,
    /// The last thing that happened here, but for events that change nobody's place.
    pub left_handler: Option<LeftHandler>,
    pub raised: [NodeId; VECTORS_MAX],
    /// A runnable real-time task was preempted for one that is not.
    pub throttled: bool,
    /// Events were lost, and no switch has been seen since.
    pub lost: bool,
    /// The last that had it left it unseen, and no switch has been seen since.
    pub left_unseen: bool,
    /// Of whom the watch said with which priority it has the CPU.
    pub told: Option<TaskIndex>,
    /// Its first event.
    pub first_ns: i64,
    pub timeline: Timeline,
}

impl Default for CpuState {
    fn default() -> Self {
        CpuState {
            slack: None,
            current: None,
            frames: vec![],
            left_handler: None,
            raised: [NodeId::NONE; VECTORS_MAX],
            throttled: false,
            lost: false,
            left_unseen: false,
            told: None,
            first_ns: i64::MAX,
            timeline: Timeline::default(),
        }
    }
}
