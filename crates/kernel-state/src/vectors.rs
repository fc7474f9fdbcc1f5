//! Names of interrupt vectors and softirqs.

/// Names of the softirq vectors (kernel: `include/linux/interrupt.h`).
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// The name of a softirq vector, if the kernel has one of this number.
pub fn softirq_name(vector: u32) -> Option<&'static str> {
    SOFTIRQS.get(vector as usize).copied()
}

/// The name of an interrupt vector that has a negative number in [`event::evidence::Step::id`].
pub fn vector_name(irq: i32) -> Option<&'static str> {
    Some(match irq {
        -1 => "local timer",
        -2 => "reschedule",
        -3 => "function call",
        -4 => "irq work",
        _ => return None,
    })
}
