//! Interrupts that nothing masks: how many have come. A kernel without them in its trace may still
//! have been stopped by them.

use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Serialize;

/// Sums since the machine was started; none where they cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unmasked {
    /// Non-maskable interrupts, of all CPUs.
    pub nmis: Option<u64>,
    /// Interrupts of the firmware (system management mode), of the CPU that had most: each is one
    /// of all CPUs.
    pub smis: Option<u64>,
}

/// MSR_SMI_COUNT, since Intel's first Core (Software Developer's Manual, volume 4). Its upper half
/// is reserved.
const SMI_COUNT: u64 = 0x34;

impl Unmasked {
    /// Of the machine whose files are below `root`: `/` for this one.
    pub fn read(root: &Path) -> Unmasked {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let intel = text("proc/cpuinfo").contains("GenuineIntel");
        Unmasked {
            nmis: nmis(&text("proc/interrupts")),
            smis: intel.then(|| smis(root)).flatten(),
        }
    }

    /// How many came since `earlier`.
    pub fn since(self, earlier: Unmasked) -> Unmasked {
        let between = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Unmasked {
            nmis: between(self.nmis, earlier.nmis),
            smis: between(self.smis, earlier.smis),
        }
    }
}

fn nmis(interrupts: &str) -> Option<u64> {
    let mut lines = interrupts.lines();
    let row = lines.find_map(|line| line.trim_start().strip_prefix("NMI:"))?;
    let counts = row
        .split_whitespace()
        .map_while(|word| word.parse::<u64>().ok());
    Some(counts.sum())
}

/// Needs the module `msr` and root.
fn smis(root: &Path) -> Option<u64> {
    let cpus = std::fs::read_dir(root.join("dev/cpu")).ok()?;
    let of_cpu = |folder: std::fs::DirEntry| {
        let mut bytes = [0; 8];
        let registers = std::fs::File::open(folder.path().join("msr")).ok()?;
        registers.read_exact_at(&mut bytes, SMI_COUNT).ok()?;
        Some(u64::from_le_bytes(bytes) & u64::from(u32::MAX))
    };
    cpus.flatten().filter_map(of_cpu).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_maskable_interrupts_are_summed_over_all_cpus() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(nmis(text), expect, "{text}");
        let head = "           CPU0       CPU1\n  1:   9   9   IO-APIC   1-edge   i8042\n";
        check(
            &format!("{head}NMI:   3   4   Non-maskable interrupts\n"),
            Some(7),
        );
        check(&format!("{head} NMI:   0\n"), Some(0));
        check(head, None);
        check("", None);
    }

    #[test]
    fn firmware_interrupts_are_read_where_the_registers_can_be() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, bytes: &[u8]| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, bytes).expect("written");
        };
        write("proc/cpuinfo", b"vendor_id : GenuineIntel\n");
        assert_eq!(Unmasked::read(root.path()).smis, None);
        let registers = |count: u64| {
            let mut bytes = vec![0; SMI_COUNT as usize];
            bytes.extend(count.to_le_bytes());
            bytes
        };
        write("dev/cpu/0/msr", &registers(5));
        write("dev/cpu/1/msr", &registers((1 << 40) + 7));
        assert_eq!(Unmasked::read(root.path()).smis, Some(7));
        write("proc/cpuinfo", b"vendor_id : AuthenticAMD\n");
        assert_eq!(Unmasked::read(root.path()).smis, None);
    }

    #[test]
    fn what_came_between_is_known_where_both_are() {
        let at = |nmis, smis| Unmasked { nmis, smis };
        let found = at(Some(9), None).since(at(Some(4), Some(1)));
        assert_eq!(found, at(Some(5), None));
    }
}
