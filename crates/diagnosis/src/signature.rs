//! The signature of a cause: the names of what kept a task waiting, without anything that another
//! run, boot or build of the same system numbers anew.

use kernel_state::{softirq_name, vector_name};

use event::evidence::TaskRef;

use crate::term::TermKind;

/// What `kinds` have in common with the same fault in another run: tags of the ledger's terms and
/// names of functions, interrupts and tasks, these as `task` calls them. The order does not count,
/// because causes of nearly the same length change places from one time to the next.
pub(crate) fn signature<'a>(
    kinds: impl Iterator<Item = &'a TermKind>,
    task: impl Fn(&TaskRef) -> String,
) -> String {
    let mut causes: Vec<String> = kinds.map(|kind| cause(kind, &task)).collect();
    causes.sort_unstable();
    causes.dedup();
    causes.join("+")
}

/// Whether a signature has this task, named as [`stable_task`] does.
pub(crate) fn names_task(signature: &str, name: &str) -> bool {
    let names = signature
        .split('+')
        .filter_map(|cause| cause.split_once(':'));
    names
        .flat_map(|(_, names)| names.split('<'))
        .any(|one| one == name)
}

fn cause(kind: &TermKind, task: impl Fn(&TaskRef) -> String) -> String {
    let tag = kind.tag();
    let name = match kind {
        TermKind::InterruptsOff { function, .. }
        | TermKind::PreemptionOff {
            function: Some(function),
            ..
        } => Some(stable_function(function)),
        TermKind::Hardirq { irq, name } => match vector_name(*irq) {
            Some(vector) => Some(vector.to_owned()),
            // Nothing but its number is known, and that is another one after the next boot.
            None if name.is_empty() => None,
            None => Some(stable_interrupt(name)),
        },
        // The kernel numbers the vectors once and for all.
        TermKind::Softirq { vector } => {
            let name = softirq_name(*vector).map(str::to_owned);
            Some(name.unwrap_or_else(|| vector.to_string()))
        }
        TermKind::PriorityInversion { owner, behind } => {
            Some(format!("{}<{}", task(owner), task(behind)))
        }
        other => other.task().map(task),
    };
    match name {
        Some(name) => format!("{tag}:{name}"),
        None => tag.to_owned(),
    }
}

/// What a compiler adds to the name of a function that it split, cloned or shortened; numbers and
/// further suffixes follow.
const CLONES: [&str; 5] = [".isra", ".constprop", ".part", ".cold", ".llvm"];

/// A function as its source calls it; `?` for an address that has no name.
fn stable_function(symbol: &str) -> String {
    // A module stands behind the name; names of programs are several words.
    let name = symbol.split('+').next().unwrap_or_default();
    let name = name.split(" [").next().unwrap_or_default();
    let clone = CLONES.iter().filter_map(|suffix| name.find(suffix)).min();
    let name = &name[..clone.unwrap_or(name.len())];
    // Bare addresses of 32 and 64 bits.
    let is_hex = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = name.starts_with("0x") || is_hex && matches!(name.len(), 8 | 16);
    match name.is_empty() || is_address {
        true => "?".to_owned(),
        false => name.to_owned(),
    }
}

/// A handler's name; of a device with several queues the queue's number, which is a CPU's, is left
/// out: `nvme0q3` is `nvme0q*`.
fn stable_interrupt(name: &str) -> String {
    let name = numbers_out(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let before = stem.strip_suffix('q').unwrap_or_default();
    let is_queue = stem.len() < name.len() && before.ends_with(|c: char| c.is_ascii_digit());
    match is_queue {
        true => format!("{stem}*"),
        false => name,
    }
}

/// The kernel cuts a task's name to so many bytes.
const COMM_MAX: usize = 15;
/// What is left of an interrupt's name in that of its thread when the number has three digits.
const IRQ_THREAD_NAME_MAX: usize = COMM_MAX - "irq/123-".len();

/// A task's name without the numbers of CPUs, interrupts and instances.
pub(crate) fn stable_task(comm: &str) -> String {
    if let Some(worker) = comm.strip_prefix("kworker/") {
        return stable_worker(worker);
    }
    if let Some(thread) = comm.strip_prefix("irq/") {
        let name = thread.trim_start_matches(|c: char| c.is_ascii_digit());
        let name = name.strip_prefix('-').unwrap_or(name);
        // How much of the name is there depends on how many digits its number has.
        let name: String = name.chars().take(IRQ_THREAD_NAME_MAX).collect();
        return format!("irq/*-{name}");
    }
    numbers_out(comm)
}

/// `0:1H` serves CPU 0 at a high priority, `u8:2` any CPU; both may carry the name of their present
/// work, which is not theirs.
fn stable_worker(worker: &str) -> String {
    let id = worker.split(['-', '+']).next().unwrap_or_default();
    let unbound = if id.starts_with('u') { "u" } else { "" };
    let high = if id.ends_with('H') { "H" } else { "" };
    format!("kworker/{unbound}*{high}")
}

/// The text with `*` in the place of each number that is a word of its own.
fn numbers_out(text: &str) -> String {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let stem = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        match is_number(stem) {
            true => out.push('*'),
            false => out.push_str(stem),
        }
        out.push_str(&word[stem.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(task: &TaskRef) -> String {
        stable_task(&task.comm)
    }

    #[test]
    fn a_signature_names_the_tasks_of_its_causes_and_no_parts_of_their_names() {
        let check = |name: &str, expect: bool| {
            let signature = "hardirq:eth0+priority_inversion:low<middle+run_queue_wait:hog";
            assert_eq!(names_task(signature, name), expect, "{name}");
        };
        check("hog", true);
        check("low", true);
        check("middle", true);
        check("ho", false);
        check("run_queue_wait", false);
        check("", false);
    }

    #[test]
    fn a_task_keeps_its_name_and_loses_the_numbers_of_cpus_interrupts_and_instances() {
        let check = |comm: &str, expect: &str| assert_eq!(stable_task(comm), expect);
        check("ksoftirqd/1", "ksoftirqd/*");
        check("napi/eth0-8193", "napi/eth0-*");
        check("Thread-12", "Thread-*");
        check("CPU 0/KVM", "CPU */KVM");
        check("burner", "burner");
        check("mp3player", "mp3player");
        check("", "");
    }

    #[test]
    fn the_thread_of_an_interrupt_is_the_same_however_long_its_number_is() {
        let check = |comm: &str| assert_eq!(stable_task(comm), "irq/*-snd_hda", "{comm}");
        check("irq/9-snd_hda_i");
        check("irq/28-snd_hda_");
        check("irq/128-snd_hda");
    }

    #[test]
    fn a_worker_keeps_its_kind_and_not_its_pool() {
        let check = |comm: &str, expect: &str| assert_eq!(stable_task(comm), expect);
        check("kworker/0:1", "kworker/*");
        check("kworker/13:0H", "kworker/*H");
        check("kworker/u8:2", "kworker/u*");
        check("kworker/u8:2-events_unbound", "kworker/u*");
        check("kworker/u16:0+flush-8:0", "kworker/u*");
    }

    #[test]
    fn a_function_is_called_as_in_its_source_whatever_the_compiler_made_of_it() {
        let check = |symbol: &str, expect: &str| assert_eq!(stable_function(symbol), expect);
        check("console_flush_all", "console_flush_all");
        check("console_flush_all+0x1a/0x300", "console_flush_all");
        check("hold.isra.0", "hold");
        check("hold.constprop.0.isra.1", "hold");
        check("hold.part.3.cold [some_driver]", "hold");
        check("ffffffff812345ab", "?");
        check("0x12", "?");
        check("", "?");
        check("feed", "feed");
    }

    #[test]
    fn an_interrupt_is_called_by_its_device_and_never_by_a_queue() {
        let check = |name: &str, expect: &str| assert_eq!(stable_interrupt(name), expect);
        check("snd_hda_intel:card0", "snd_hda_intel:card0");
        check("nvme0q3", "nvme0q*");
        check("eth0-TxRx-2", "eth0-TxRx-*");
        check("virtio1-input.0", "virtio1-input.*");
        check("i8042", "i8042");
        check("q8", "q8");
        let unnamed = |irq| TermKind::Hardirq {
            irq,
            name: String::new(),
        };
        assert_eq!(signature([unnamed(17)].iter(), by_name), "hardirq");
        assert_eq!(
            signature([unnamed(-1)].iter(), by_name),
            "hardirq:local timer"
        );
    }

    #[test]
    fn the_order_of_causes_is_not_part_of_the_signature() {
        let (a, b) = (TermKind::Nmi, TermKind::BlockIo);
        let expect = "block_io+nmi";
        assert_eq!(signature([&a, &b].into_iter(), by_name), expect);
        assert_eq!(signature([&b, &a].into_iter(), by_name), expect);
    }
}
