//! Who runs below this kernel, and whether it says what it takes.

use serde::Serialize;

/// Whether the time that a hypervisor takes from this machine can be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StealReport {
    /// Nobody runs below this kernel.
    #[default]
    BareMetal,
    /// The hypervisor reports it, and the kernel keeps it.
    Reported,
    /// There is a hypervisor, and it does not: the machine may stand still unseen.
    NotReported,
    /// There is a hypervisor, and whether it does is not known.
    Unknown,
}

impl StealReport {
    /// As traces and `doctor` spell it.
    pub fn name(self) -> &'static str {
        match self {
            StealReport::BareMetal => "bare metal",
            StealReport::Reported => "reported",
            StealReport::NotReported => "not reported",
            StealReport::Unknown => "unknown",
        }
    }

    /// Whether this machine may stand still without anything that says so.
    pub fn may_stand_still_unseen(self) -> bool {
        matches!(self, StealReport::NotReported | StealReport::Unknown)
    }
}

/// What the processor says of a hypervisor (leaves 0x4000_0000 and 0x4000_0001 of CPUID).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaves {
    /// Its signature: registers B, C and D of the first leaf.
    pub signature: [u8; 12],
    /// Register A of the second.
    pub features: u32,
}

const KVM: &[u8; 12] = b"KVMKVMKVM\0\0\0";
/// QEMU without an accelerator. It keeps no account of steal.
const TCG: &[u8; 12] = b"TCGTCGTCGTCG";
/// Hyper-V, VMware and bhyve: steal, where there is any, is not in the account that KVM's guests
/// keep, which is the one that a watch reads. Xen's neither.
const OTHERS: [&[u8; 12]; 4] = [
    b"Microsoft Hv",
    b"VMwareVMware",
    b"bhyve bhyve ",
    b"XenVMMXenVMM",
];
/// KVM_FEATURE_STEAL_TIME.
const KVM_STEAL_TIME: u32 = 1 << 5;
/// Makes the kernel leave KVM's account alone.
const NO_STEAL_ACCOUNT: &str = "no-steal-acc";

/// What `leaves` say of the machine below; none where the processor does not tell. `account` is
/// whether the kernel has a place for steal, `command_line` how it was started.
pub(super) fn steal_report(
    virtualised: bool,
    leaves: Option<Leaves>,
    account: bool,
    command_line: &str,
) -> StealReport {
    if !virtualised {
        return StealReport::BareMetal;
    }
    let Some(leaves) = leaves else {
        return StealReport::Unknown;
    };
    let declined = command_line.split(' ').any(|word| word == NO_STEAL_ACCOUNT);
    match &leaves.signature {
        KVM if leaves.features & KVM_STEAL_TIME == 0 => StealReport::NotReported,
        KVM if !account || declined => StealReport::NotReported,
        KVM => StealReport::Reported,
        TCG => StealReport::NotReported,
        other if OTHERS.contains(&other) => StealReport::NotReported,
        _ => StealReport::Unknown,
    }
}

/// What this processor says; none where it has no such leaves.
#[cfg(target_arch = "x86_64")]
pub(super) fn leaves() -> Option<Leaves> {
    use std::arch::x86_64::__cpuid;

    const HYPERVISOR: u32 = 1 << 31;
    #[allow(unused_unsafe, reason = "unsafe until Rust 1.94")]
    // SAFETY: every 64-bit x86 has CPUID; it reads nothing of ours.
    let leaf = |number: u32| unsafe { __cpuid(number) };
    if leaf(1).ecx & HYPERVISOR == 0 {
        return None;
    }
    let first = leaf(0x4000_0000);
    let mut signature = [0; 12];
    for (place, register) in [first.ebx, first.ecx, first.edx].into_iter().enumerate() {
        signature[place * 4..place * 4 + 4].copy_from_slice(&register.to_le_bytes());
    }
    // KVM of old says 0 for "up to 0x40000001".
    let has_features = first.eax == 0 || first.eax >= 0x4000_0001;
    Some(Leaves {
        signature,
        features: if has_features {
            leaf(0x4000_0001).eax
        } else {
            0
        },
    })
}

/// Other processors have no such instruction.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn leaves() -> Option<Leaves> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_known_only_where_kvm_reports_it_and_the_kernel_keeps_it() {
        let leaves = |signature: &[u8; 12], features: u32| {
            Some(Leaves {
                signature: *signature,
                features,
            })
        };
        let check = |leaves: Option<Leaves>, account: bool, words: &str, expect: StealReport| {
            assert_eq!(
                steal_report(true, leaves, account, words),
                expect,
                "{leaves:?} {words}"
            );
        };
        let all = 0x0100_7efb;
        check(leaves(KVM, all), true, "quiet", StealReport::Reported);
        check(leaves(KVM, all), false, "", StealReport::NotReported);
        check(
            leaves(KVM, all),
            true,
            "a no-steal-acc",
            StealReport::NotReported,
        );
        check(
            leaves(KVM, all & !KVM_STEAL_TIME),
            true,
            "",
            StealReport::NotReported,
        );
        check(leaves(TCG, all), true, "", StealReport::NotReported);
        check(
            leaves(b"VMwareVMware", all),
            true,
            "",
            StealReport::NotReported,
        );
        check(leaves(b"SomebodyElse", all), true, "", StealReport::Unknown);
        check(None, true, "", StealReport::Unknown);
        assert_eq!(steal_report(false, None, true, ""), StealReport::BareMetal);
    }
}
