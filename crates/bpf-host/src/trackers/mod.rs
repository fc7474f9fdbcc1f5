//! The trackers: intervals that the kernel measures between two of its events, each kind a file
//! here and one in `bpf/trackers`, and all of them a line in [`TRACKERS`].

mod block;
mod calls;
mod futex;
mod io;
mod ipi;
mod irq;
mod lock;
mod net;
mod nmi;
mod offcpu;
mod pagefault;
mod pair;
mod preempt;
mod running;
mod softirq;
mod software;
mod statistics;
mod syscall;
mod timer;
mod ttfb;
mod turned;
mod wakeup;
mod workqueue;

pub use calls::{call_name, call_number};
pub use pair::{MarkSite, Pair, PairCounts, PairPart, PairPlace, PairSeen, PairSide, pair_tracker};
pub use running::{TrackerConfig, TrackerWatch};
pub use statistics::{KeySum, Losses, SeriesStatistics, TrackerStatistics};
pub use turned::{Turned, TurnedSeries};

use event::{Error, ErrorKind, Result};

use crate::packed::Packed;

/// Every tracker, in the order in which people meet them.
pub static TRACKERS: &[&Tracker] = &[
    &wakeup::TRACKER,
    &offcpu::TRACKER,
    &syscall::TRACKER,
    &futex::TRACKER,
    &pagefault::TRACKER,
    &irq::TRACKER,
    &softirq::TRACKER,
    &timer::TRACKER,
    &workqueue::TRACKER,
    &block::TRACKER,
    &io::TRACKER,
    &net::TRACKER,
    &ttfb::TRACKER,
    &lock::TRACKER,
    &ipi::TRACKER,
    &nmi::TRACKER,
    &preempt::TRACKER,
];

/// What a tracker's keys number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// System calls.
    Call,
    /// Tasks; the label is their name.
    Task,
    /// Interrupts, negative ones as in [`event::vectors`].
    Irq,
    /// Softirq vectors.
    Softirq,
    /// Functions of the kernel.
    Function,
    /// Disks with the operation; the label is the disk's name.
    Disk,
    /// Addresses of a process; the label is its name.
    Address,
    /// Locks of the kernel, by their addresses.
    Lock,
    /// Interfaces with the reason of a drop, 0 for none; the label is the interface's name.
    Packet,
    /// The other end of a connection: the lower half of its address; the upper half is the detail.
    Peer,
    /// What two events of any pair have in common: the first number; the second is the detail, a
    /// text the label.
    Pair(&'static [PairPart]),
}

/// What the number beside an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailKind {
    /// Nothing.
    None,
    /// What the call returned.
    Result,
    /// The first sector.
    Sector,
    /// An address of the task's.
    Address,
    /// A task's tid, and what that task is.
    Tid(&'static str),
    /// How many bytes.
    Bytes,
    /// The rest of the key; one more number is a port.
    Port,
}

/// Where a tracker keeps what is open, and so who can look for what is open for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenIn {
    /// In the tasks: an iterator in the kernel looks.
    Tasks,
    /// In a table by address: user space looks.
    Table,
    /// In a table by the keys of a pair: user space looks.
    Keys,
    /// On a CPU that does nothing else meanwhile: nobody can look before it ends.
    Nowhere,
}

/// One tracepoint that a tracker stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its name; the program that is attached to it has the same.
    pub tracepoint: &'static str,
    /// The setting of the kernel that brings it.
    pub setting: &'static str,
}

/// A tracker: what people are told of it, and what it needs.
#[derive(Debug)]
pub struct Tracker {
    /// As it is typed.
    pub name: &'static str,
    /// What it measures, in a line.
    pub help: &'static str,
    /// Its intervals, by series.
    pub series: &'static [&'static str],
    /// Whose the intervals are: what `--task` chooses by.
    pub whose: &'static str,
    /// What the other one of an interval did, in words that go before a name, by series; empty when
    /// there is no other one.
    pub other: &'static [&'static str],
    /// What its keys number.
    pub key: KeyKind,
    /// What the number beside an interval is.
    pub detail: DetailKind,
    /// Who can look for what is open.
    pub open: OpenIn,
    /// Its intervals end on the CPU on which they begin, which `--cpu` can choose.
    pub stays_on_its_cpu: bool,
    /// Without these there is no such tracker. Its other programs are attached where they can be.
    pub hooks: &'static [Hook],
    /// Programs that run at software events of the kernel, with the events' numbers.
    pub software_events: &'static [(&'static str, u64)],
    /// Programs that are needed for stacks alone.
    pub for_stacks: &'static [&'static str],
    /// Where the answer still comes from when a hook is missing.
    pub below: &'static str,
    /// The compiled programs.
    pub(crate) object: Packed,
}

/// The programs of `bpf/trackers/NAME.bpf.c`, as `build.rs` compiled them.
macro_rules! object {
    ($name:literal) => {
        crate::packed::packed!("trackers/", $name)
    };
}
use object;

/// Tracepoints that every kernel with BPF's own has.
const SCHEDULER: &str = "CONFIG_TRACEPOINTS=y";
/// Those of system calls.
const CALLS: &str = "CONFIG_HAVE_SYSCALL_TRACEPOINTS=y and CONFIG_FTRACE_SYSCALLS=y";

const fn hook(tracepoint: &'static str, setting: &'static str) -> Hook {
    Hook {
        tracepoint,
        setting,
    }
}

impl Tracker {
    /// The tracker of this name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with the names that there are.
    pub fn find(name: &str) -> Result<&'static Tracker> {
        let mut trackers = TRACKERS.iter().copied();
        trackers
            .find(|tracker| tracker.name == name)
            .ok_or_else(|| {
                let names: Vec<_> = TRACKERS.iter().map(|tracker| tracker.name).collect();
                Error::new(ErrorKind::NotFound, "no such tracker")
                    .found(format!("'{name}'"))
                    .fix(format!(
                        "--process {name} watches a process, -- {name} a command; trackers: {}",
                        names.join(", ")
                    ))
            })
    }

    /// Whether each of its rows has a histogram, out of which the last minutes can be told.
    pub fn has_history(&self) -> bool {
        self.key == KeyKind::Disk
    }

    /// The hooks that a kernel lacks, which has the tracepoints that `present` says.
    pub fn missing(&self, present: impl Fn(&str) -> bool) -> Vec<Hook> {
        let hooks = self.hooks.iter().copied();
        hooks.filter(|hook| !present(hook.tracepoint)).collect()
    }

    /// The refusal of a kernel that lacks some hooks; none when it has them all.
    pub fn refusal(&self, missing: &[Hook]) -> Option<Error> {
        let first = missing.first()?;
        let names: Vec<_> = missing.iter().map(|hook| hook.tracepoint).collect();
        let what = format!("this kernel has no hook for the tracker {}", self.name);
        let found = format!("no tracepoint {}", names.join(", "));
        let fix = format!(
            "boot a kernel with {}; until then {}",
            first.setting, self.below
        );
        let error = Error::new(ErrorKind::Unsupported, what);
        Some(error.found(found).fix(fix))
    }
}

/// The handlers of an interrupt, comma-separated as the kernel lists them; empty when it has none.
pub fn irq_name(irq: i32) -> String {
    crate::kernel::irq_name(irq)
}

/// Why a packet was dropped, by the running kernel's own number; none for 0, which is no reason.
pub fn drop_reason(number: u32) -> Option<String> {
    const PREFIX: &str = "SKB_DROP_REASON_";
    if number == 0 {
        return None;
    }
    let named = crate::features::vmlinux().and_then(|btf| {
        let reasons = btf.type_by_name::<libbpf_rs::btf::types::Enum<'_>>("skb_drop_reason")?;
        let mut reasons = reasons.iter();
        let found = reasons.find(|reason| i64::from(reason.value as i32) == i64::from(number))?;
        let name = found.name?.to_str()?;
        Some(name.strip_prefix(PREFIX).unwrap_or(name).to_owned())
    });
    Some(named.unwrap_or_else(|| format!("reason {number}")))
}

/// Each tracker with the hooks that the running kernel lacks for it; none when nobody can say.
pub fn stands() -> Vec<(&'static Tracker, Option<Vec<Hook>>)> {
    let btf = crate::features::vmlinux();
    let stand = |tracker: &&'static Tracker| {
        let missing = btf.as_ref().map(|btf| {
            tracker.missing(|tracepoint| crate::features::has_tracepoint(btf, tracepoint))
        });
        (*tracker, missing)
    };
    TRACKERS.iter().map(stand).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tracker_is_told_apart_and_described_on_a_line_of_a_screen() {
        for tracker in TRACKERS {
            let found = Tracker::find(tracker.name).expect("itself");
            assert!(std::ptr::eq(found, *tracker), "{}", tracker.name);
            let others = tracker.other.len();
            assert!(
                [0, tracker.series.len()].contains(&others),
                "{}",
                tracker.name
            );
            let line = format!("  {:<10} {}", tracker.name, tracker.help);
            assert!(line.len() <= 79, "{line}");
            assert!((1..=abi::trackers::SERIES_MAX).contains(&tracker.series.len()));
            assert!(!tracker.hooks.is_empty(), "{}", tracker.name);
        }
        let refused = Tracker::find("jitter").expect_err("no such tracker");
        let remedy = refused.fixed_by().expect("a remedy");
        assert!(
            remedy.contains("--process jitter") && remedy.contains("wakeup"),
            "{remedy}"
        );
    }

    #[test]
    fn a_kernel_without_a_hook_is_told_which_and_what_brings_it() {
        let present = |tracepoint: &str| tracepoint != "softirq_raise";
        let check = |name: &str, expect: Option<&str>| {
            let tracker = Tracker::find(name).expect("a tracker");
            let refusal = tracker.refusal(&tracker.missing(present));
            let found = refusal.as_ref().and_then(|error| error.value_found());
            assert_eq!(found, expect, "{name}");
            assert_eq!(
                refusal.and_then(|error| error.fixed_by().map(|fix| fix.contains("CONFIG_"))),
                expect.map(|_| true),
            );
        };
        check("softirq", Some("no tracepoint softirq_raise"));
        check("irq", None);
    }
}
