//! Names of what the trackers' keys number, and the keys of what people name.

use std::net::Ipv6Addr;
use std::path::Path;

use bpf_host::trackers::{
    KeyKind, PairPart, Tracker, call_name, call_number, drop_reason, irq_name,
};
use event::{Error, ErrorKind, Result, vectors};
use trace::Symbols;

/// Operations of block devices (`include/linux/blk_types.h`).
const OPERATIONS: &[(u64, &str)] = &[
    (0, "read"),
    (1, "write"),
    (2, "flush"),
    (3, "discard"),
    (5, "secure erase"),
    (7, "zone append"),
    (9, "write zeroes"),
    (34, "driver in"),
    (35, "driver out"),
];

/// In the key of a system call: its number is of the table for programs of 32 bits.
const OF_32_BITS: u64 = abi::trackers::CALL_OF_32_BITS as u64;

/// What a key of `tracker` is called, as people read it.
pub fn key_name(
    tracker: &Tracker,
    (key, detail): (u64, u64),
    label: &str,
    symbols: &Symbols,
) -> String {
    match tracker.key {
        KeyKind::Call if key & OF_32_BITS != 0 => format!("32-bit call {}", key & !OF_32_BITS),
        KeyKind::Call => call_name(key).map_or_else(|| format!("call {key}"), str::to_owned),
        KeyKind::Task => format!("{label} (tid {key})"),
        KeyKind::Irq => interrupt(key as i64 as i32),
        KeyKind::Softirq => {
            vectors::softirq_name(key as u32).map_or_else(|| format!("vector {key}"), str::to_owned)
        }
        KeyKind::Function => {
            let function = symbols.lookup(key);
            let name = function.map_or_else(|| format!("{key:#x}"), |(name, _)| name.to_owned());
            match label {
                "" => name,
                queue => format!("{name} ({queue})"),
            }
        }
        KeyKind::Disk => format!("{label} {}", operation(key & 0xff)),
        KeyKind::Address => format!("{label} {key:#x}"),
        KeyKind::Lock => format!("lock {key:#x}"),
        KeyKind::Packet => match drop_reason(key as u32) {
            None => label.to_owned(),
            Some(reason) => format!("{label} {reason}"),
        },
        KeyKind::Peer => {
            let address = Ipv6Addr::from(u128::from(detail) << 64 | u128::from(key));
            let short = address.to_ipv4_mapped();
            short.map_or_else(|| address.to_string(), |short| short.to_string())
        }
        KeyKind::Pair(parts) => pair_key(parts, [key, detail], label),
    }
}

/// The parts of a pair's key as they were typed.
fn pair_key(parts: &[PairPart], numbers: [u64; 2], label: &str) -> String {
    let mut numbers = numbers.into_iter();
    let parts = parts.iter().map(|part| match part {
        PairPart::Text => format!("\"{label}\""),
        PairPart::Unsigned => numbers.next().unwrap_or(0).to_string(),
        PairPart::Signed => (numbers.next().unwrap_or(0) as i64).to_string(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn interrupt(irq: i32) -> String {
    let name = vectors::vector_name(irq).map_or_else(|| irq_name(irq), str::to_owned);
    match (irq, name.as_str()) {
        (..0, _) => name,
        (_, "") => format!("irq {irq}"),
        _ => format!("irq {irq} {name}"),
    }
}

fn operation(number: u64) -> String {
    let mut operations = OPERATIONS.iter();
    let known = operations.find(|(of, _)| *of == number);
    known.map_or_else(
        || format!("operation {number}"),
        |(_, name)| (*name).to_owned(),
    )
}

/// The keys that a word after `--only` means.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is no such thing, [`ErrorKind::InvalidInput`] for a tracker
/// whose keys have no names of their own.
pub fn keys_named(tracker: &Tracker, word: &str, symbols: &Symbols) -> Result<Vec<u64>> {
    let (keys, what, fix) = match tracker.key {
        KeyKind::Call => (
            call_number(word).into_iter().collect(),
            "no such system call",
            "give its name, as in openat; man 2 syscalls lists them",
        ),
        KeyKind::Irq => (
            interrupts(word, &device_interrupts()),
            "no such interrupt",
            "give a number or a name of /proc/interrupts, or local_timer",
        ),
        KeyKind::Softirq => (
            softirq(word).into_iter().collect(),
            "no such softirq",
            "give a name of /proc/softirqs, as in net_rx",
        ),
        KeyKind::Function => (
            symbols.addresses(word),
            "the kernel has no such function",
            "grep -w FUNCTION /proc/kallsyms finds it",
        ),
        KeyKind::Disk => (
            disk(word).into_iter().collect(),
            "no such disk",
            "ls /sys/block lists them",
        ),
        KeyKind::Packet => (
            interface(word).into_iter().collect(),
            "no such network interface",
            "ls /sys/class/net lists them",
        ),
        KeyKind::Task | KeyKind::Address | KeyKind::Lock | KeyKind::Peer | KeyKind::Pair(_) => {
            let what = format!("the tracker {} has no --only", tracker.name);
            let error = Error::new(ErrorKind::InvalidInput, what).found(format!("'{word}'"));
            return Err(error.fix("choose tasks with --task"));
        }
    };
    if keys.is_empty() {
        let error = Error::new(ErrorKind::NotFound, what).found(format!("'{word}'"));
        return Err(error.fix(fix));
    }
    Ok(keys)
}

fn softirq(word: &str) -> Option<u64> {
    let is_it = |vector: &u32| {
        let name = vectors::softirq_name(*vector);
        name.is_some_and(|name| name.eq_ignore_ascii_case(word))
    };
    (0..32).find(is_it).map(u64::from)
}

/// Those of the CPU itself by their whole name, those of devices by number or a part of the name.
fn interrupts(word: &str, devices: &[(i32, String)]) -> Vec<u64> {
    let own = vectors::VECTORS.iter();
    let own = own.filter(|vector| [vector.name, vector.tag].contains(&word));
    let mut found: Vec<i32> = own.map(|vector| vector.number).collect();
    let number = word.parse::<i32>().ok();
    let is_it = |(irq, name): &&(i32, String)| match number {
        Some(number) => *irq == number,
        None => name.contains(word),
    };
    if !word.is_empty() {
        found.extend(devices.iter().filter(is_it).map(|(irq, _)| *irq));
    }
    found.dedup();
    found.into_iter().map(|irq| i64::from(irq) as u64).collect()
}

/// The interrupts of devices that have a handler, with its name.
fn device_interrupts() -> Vec<(i32, String)> {
    let folders = std::fs::read_dir("/sys/kernel/irq").into_iter().flatten();
    let numbers = folders
        .flatten()
        .filter_map(|folder| folder.file_name().to_str()?.parse::<i32>().ok());
    let named = numbers.map(|irq| (irq, irq_name(irq)));
    named.filter(|(_, name)| !name.is_empty()).collect()
}

/// The number of a disk, as the tracker puts it together.
fn disk(word: &str) -> Option<u64> {
    if word.contains('/') {
        return None;
    }
    let numbers = std::fs::read_to_string(Path::new("/sys/block").join(word).join("dev")).ok()?;
    let (major, minor) = numbers.trim().split_once(':')?;
    Some(major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?)
}

/// The number of a network interface.
fn interface(word: &str) -> Option<u64> {
    if word.is_empty() || word.contains('/') {
        return None;
    }
    let file = Path::new("/sys/class/net").join(word).join("ifindex");
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracker(name: &str) -> &'static Tracker {
        Tracker::find(name).expect("a tracker")
    }

    #[test]
    fn a_key_is_called_as_people_call_it() {
        let symbols = Symbols::from_kallsyms("ffffffff81001000 t hrtimer_wakeup\n");
        let check = |name: &str, key: u64, label: &str, expect: &str| {
            assert_eq!(key_name(tracker(name), (key, 0), label, &symbols), expect);
        };
        check(
            "syscall",
            call_number("openat").expect("a call"),
            "",
            "openat",
        );
        check("syscall", 99_999, "", "call 99999");
        // A program may ask for any number; the kernel looks at 32 bits of it.
        check("syscall", u64::from(u32::MAX), "", "call 4294967295");
        check("syscall", OF_32_BITS | 240, "", "32-bit call 240");
        check("wakeup", 7, "jackd", "jackd (tid 7)");
        check("irq", -1i64 as u64, "", "local timer");
        check("softirq", 3, "", "NET_RX");
        check("softirq", 77, "", "vector 77");
        check("timer", 0xffff_ffff_8100_1000, "", "hrtimer_wakeup");
        check("timer", 0x10, "", "0x10");
        check("workqueue", 0x10, "events", "0x10 (events)");
        check("block", 254 << 28 | 1, "vda", "vda write");
        check("block", 200, "vda", "vda operation 200");
        check("futex", 0x7f00, "app", "app 0x7f00");
        check("lock", 0x7f00, "", "lock 0x7f00");
        check("net", 1 << 32, "lo", "lo");
        check("ttfb", 0xffff_7f00_0001, "", "127.0.0.1");
        check("ttfb", 1, "", "::1");
        let parts = [PairPart::Signed, PairPart::Text, PairPart::Unsigned];
        let minus = -1i64 as u64;
        assert_eq!(
            pair_key(&parts, [minus, minus], "app"),
            "-1, \"app\", 18446744073709551615"
        );
        assert_eq!(pair_key(&parts[..1], [7, 0], ""), "7");
    }

    #[test]
    fn a_word_means_keys_or_is_refused_with_a_remedy() {
        let symbols = Symbols::from_kallsyms("0000000000001000 t work\n0000000000002000 t work\n");
        let check = |name: &str, word: &str, expect: &[u64]| {
            let keys = keys_named(tracker(name), word, &symbols);
            assert_eq!(keys.expect(word), expect, "{name} {word}");
        };
        check("syscall", "read", &[libc::SYS_read as u64]);
        check("softirq", "net_rx", &[3]);
        check("softirq", "NET_RX", &[3]);
        check("irq", "local_timer", &[-1i64 as u64]);
        check("irq", "local timer", &[-1i64 as u64]);
        check("workqueue", "work", &[0x1000, 0x2000]);
        for (name, word) in [
            ("syscall", "jump"),
            ("syscall", ""),
            ("softirq", "disk"),
            ("irq", "no such device"),
            ("irq", ""),
            ("timer", "work+0x10"),
            ("block", "../block"),
            ("net", "../net"),
            ("lock", "0x10"),
            ("ttfb", "127.0.0.1"),
            ("wakeup", "jackd"),
            ("futex", "0x10"),
        ] {
            let error = keys_named(tracker(name), word, &symbols).expect_err(word);
            assert!(error.fixed_by().is_some(), "{name} {word}");
            assert!(error.value_found().is_some(), "{name} {word}");
        }
    }

    #[test]
    fn devices_are_found_by_number_or_a_part_of_their_name() {
        let devices = [
            (36, "virtio1-req.0".to_owned()),
            (41, "virtio3-rx".to_owned()),
        ];
        let check = |word: &str, expect: &[u64]| {
            assert_eq!(interrupts(word, &devices), expect, "{word}");
        };
        check("36", &[36]);
        check("virtio3", &[41]);
        check("virtio", &[36, 41]);
        check("3", &[]);
        check("function call", &[-3i64 as u64]);
    }
}
