//! Interrupts of the CPU itself, which have a vector and no number, and softirqs: one table for the
//! reading of traces, the names in every text, the sets of events and the programs of the watch.
//!
//! Adding a vector is a line in [`VECTORS`]: the watch's programs are generated from it.

/// A vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Its number in a step's `id`: negative, and never another one's.
    pub number: i32,
    /// As people read it.
    pub name: &'static str,
    /// Its name in evidence.
    pub tag: &'static str,
    /// Its tracepoints, without `_entry` and `_exit`.
    pub event: &'static str,
}

macro_rules! vectors {
    ($($number:literal $event:literal $tag:literal $name:literal;)*) => {
        /// Every vector that kernels have events of: x86's (`asm/trace/irq_vectors.h`) and the
        /// inter-processor interrupts of ARM (`trace/events/ipi.h`). Two events of one number are
        /// one interrupt to whoever reads of it.
        pub const VECTORS: &[Vector] = &[$(Vector {
            number: $number,
            name: $name,
            tag: $tag,
            event: $event,
        },)*];
    };
}

vectors! {
    -1 "local_timer" "local_timer" "local timer";
    -2 "reschedule" "reschedule" "reschedule";
    -3 "call_function" "function_call" "function call";
    -3 "call_function_single" "function_call" "function call";
    -4 "irq_work" "irq_work" "irq work";
    -5 "x86_platform_ipi" "platform_ipi" "platform IPI";
    -6 "thermal_apic" "thermal" "thermal event";
    -7 "threshold_apic" "threshold" "machine-check threshold";
    -8 "deferred_error_apic" "deferred_error" "deferred machine-check error";
    -9 "error_apic" "apic_error" "APIC error";
    -10 "spurious_apic" "spurious" "spurious APIC";
    -11 "ipi" "ipi" "inter-processor";
}

/// An interrupt of which only the wake-up that it did is known.
pub const UNKNOWN_INTERRUPT: i32 = -999;
/// Interrupts of events that [`VECTORS`] does not have are numbered from here downwards.
pub const UNLISTED_FIRST: i32 = -1000;

/// What `ipi_entry` says is the reason, and the vector that is the same on x86; the rest keeps
/// its own words.
const IPI_REASONS: &[(&str, i32)] = &[
    ("Rescheduling interrupts", -2),
    ("Function call interrupts", -3),
    ("IRQ work interrupts", -4),
];

/// The vector of an inter-processor interrupt's reason, where x86 has the same.
pub fn vector_of_reason(reason: &str) -> Option<i32> {
    let mut reasons = IPI_REASONS.iter();
    reasons.find_map(|(text, number)| (*text == reason).then_some(*number))
}

/// The vector of this number.
pub fn vector(number: i32) -> Option<&'static Vector> {
    VECTORS.iter().find(|vector| vector.number == number)
}

/// The name of a vector, as people read it.
pub fn vector_name(number: i32) -> Option<&'static str> {
    vector(number).map(|vector| vector.name)
}

/// Names of the softirq vectors (kernel: `include/linux/interrupt.h`).
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// The name of a softirq vector, if the kernel has one of this number.
pub fn softirq_name(vector: u32) -> Option<&'static str> {
    SOFTIRQS.get(vector as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_name_and_an_event_one_number() {
        for vector in VECTORS {
            assert!(
                vector.number < 0 && vector.number > UNKNOWN_INTERRUPT,
                "{vector:?}"
            );
            for other in VECTORS {
                let same_name = (vector.name, vector.tag) == (other.name, other.tag);
                assert_eq!(
                    vector.number == other.number,
                    same_name,
                    "{vector:?} {other:?}"
                );
                let same_event = vector.event == other.event;
                assert_eq!(
                    std::ptr::eq(vector, other),
                    same_event,
                    "{vector:?} {other:?}"
                );
            }
        }
    }
}
