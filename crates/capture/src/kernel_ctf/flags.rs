//! What ftrace notes before each event: flags, and what ran by them.

// `enum trace_flag_type`, include/linux/trace_events.h.
pub(super) const IRQS_OFF: u8 = 0x01;
pub(super) const NEED_RESCHED: u8 = 0x04;
pub(super) const HARDIRQ: u8 = 0x08;
pub(super) const SOFTIRQ: u8 = 0x10;
pub(super) const NMI: u8 = 0x40;
pub(super) const SOFTIRQS_OFF: u8 = 0x80;

/// What ran as an event happened: 0 a task, 1 a softirq, 2 a hard interrupt, 3 an NMI; the
/// innermost counts.
pub(super) fn irq_level(flags: u8) -> u8 {
    match flags {
        flags if flags & NMI != 0 => 3,
        flags if flags & HARDIRQ != 0 => 2,
        flags if flags & SOFTIRQ != 0 => 1,
        _ => 0,
    }
}
