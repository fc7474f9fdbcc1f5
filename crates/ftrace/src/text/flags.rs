//! The letters before a line's time, as the bits of the record that they were printed from
//! (`trace_print_lat_fmt` of the kernel).

/// `common_flags` and `common_preempt_count` of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub bits: u8,
    /// Preemption's depth below, migration's above.
    pub preempt_count: u8,
}

const IRQS_OFF: u8 = 0x01;
const NEED_RESCHED_LAZY: u8 = 0x02;
const NEED_RESCHED: u8 = 0x04;
const HARDIRQ: u8 = 0x08;
const SOFTIRQ: u8 = 0x10;
const PREEMPT_RESCHED: u8 = 0x20;
const NMI: u8 = 0x40;
const BH_OFF: u8 = 0x80;

/// Columns of kernels with PREEMPT_RT's patches, which have one for lazy rescheduling too.
const RT_COLUMNS: usize = 6;

impl Flags {
    /// `d.h2.`: interrupts, rescheduling, context, depth of preemption, depth of migration. With
    /// PREEMPT_RT's patches two more: lazy rescheduling, and its depth before that of migration.
    pub fn parse(text: &str) -> Flags {
        let mut letters = [b'.'; RT_COLUMNS + 1];
        let count = text.len().min(letters.len());
        letters[..count].copy_from_slice(&text.as_bytes()[..count]);
        let [interrupts, resched, third, fourth, fifth, sixth, seventh] = letters;
        let (lazy, context, depth, migration) = match count >= RT_COLUMNS {
            true => (
                third,
                fourth,
                fifth,
                if count > RT_COLUMNS { seventh } else { sixth },
            ),
            false => (b'.', third, fourth, fifth),
        };
        Flags {
            bits: interrupts_bits(interrupts)
                | resched_bits(resched)
                | context_bits(context)
                | if lazy == b'.' { 0 } else { NEED_RESCHED_LAZY },
            preempt_count: digit(depth) | digit(migration) << 4,
        }
    }
}

fn interrupts_bits(letter: u8) -> u8 {
    match letter {
        b'd' => IRQS_OFF,
        b'D' => IRQS_OFF | BH_OFF,
        b'b' => BH_OFF,
        _ => 0,
    }
}

fn resched_bits(letter: u8) -> u8 {
    match letter {
        b'B' => NEED_RESCHED | NEED_RESCHED_LAZY | PREEMPT_RESCHED,
        b'N' => NEED_RESCHED | PREEMPT_RESCHED,
        b'L' => NEED_RESCHED_LAZY | PREEMPT_RESCHED,
        b'b' => NEED_RESCHED | NEED_RESCHED_LAZY,
        b'n' => NEED_RESCHED,
        b'l' => NEED_RESCHED_LAZY,
        b'p' => PREEMPT_RESCHED,
        _ => 0,
    }
}

fn context_bits(letter: u8) -> u8 {
    match letter {
        b'Z' => NMI | HARDIRQ,
        b'z' => NMI,
        b'H' => HARDIRQ | SOFTIRQ,
        b'h' => HARDIRQ,
        b's' => SOFTIRQ,
        _ => 0,
    }
}

fn digit(letter: u8) -> u8 {
    char::from(letter).to_digit(16).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_the_bits_that_the_kernel_prints_them_from() {
        let check = |text: &str, bits: u8, preempt_count: u8| {
            let expect = Flags {
                bits,
                preempt_count,
            };
            assert_eq!(Flags::parse(text), expect, "{text}");
        };
        check(".....", 0, 0);
        check("d.h3.", IRQS_OFF | HARDIRQ, 3);
        check(
            "dNh3.",
            IRQS_OFF | NEED_RESCHED | PREEMPT_RESCHED | HARDIRQ,
            3,
        );
        check("d.H1", IRQS_OFF | HARDIRQ | SOFTIRQ, 1);
        check("..s21", SOFTIRQ, 0x12);
        check("b.z1.", BH_OFF | NMI, 1);
        check("D.Z..", IRQS_OFF | BH_OFF | NMI | HARDIRQ, 0);
        check("dn.2.", IRQS_OFF | NEED_RESCHED, 2);
        check(
            "dLh1.",
            IRQS_OFF | HARDIRQ | NEED_RESCHED_LAZY | PREEMPT_RESCHED,
            1,
        );
        check("d..h2.1", IRQS_OFF | HARDIRQ, 0x12);
        check("d.Lh2..", IRQS_OFF | HARDIRQ | NEED_RESCHED_LAZY, 2);
        check("", 0, 0);
    }
}
