//! What a shield needs from the kernel's command line, and the shield as a profile of tuned: for
//! machines that are to start with it.

use std::path::Path;

use event::{Cpu, Error, ErrorKind};

use super::Shield;
use super::plan::{MASKS, SETTINGS, hexadecimal};

/// Is there just where the kernel can keep its tick from CPUs (CONFIG_NO_HZ_FULL).
const TICKLESS: &str = "sys/devices/system/cpu/nohz_full";

/// What only the kernel's command line can do for these CPUs, as its words; without what this
/// kernel would pass over.
pub fn boot_line(root: &Path, shield: &Shield) -> String {
    let (inside, outside) = (&shield.cpus, &shield.housekeeping);
    let mut words = vec![format!("isolcpus=managed_irq,domain,{inside}")];
    if root.join(TICKLESS).exists() {
        words.push(format!("nohz_full={inside}"));
    }
    words.push(format!("rcu_nocbs={inside}"));
    words.push(format!("irqaffinity={outside}"));
    words.join(" ")
}

/// What the line cannot do here, and why.
pub fn boot_notes(root: &Path) -> Vec<Error> {
    if root.join(TICKLESS).exists() {
        return Vec::new();
    }
    let what = "nohz_full= is left out: this kernel cannot stop its tick";
    vec![
        Error::new(ErrorKind::Unsupported, what)
            .found(format!("no /{TICKLESS}"))
            .fix("boot a kernel with CONFIG_NO_HZ_FULL=y, and ask again"),
    ]
}

/// The shield as `tuned.conf` of a profile of tuned.
pub fn tuned_profile(root: &Path, shield: &Shield) -> String {
    let mut sysctl = String::new();
    let mut sysfs = String::new();
    let mut add = |path: &str, value: &str| match path.strip_prefix("proc/sys/") {
        Some(name) => sysctl += &format!("{}={value}\n", name.replace('/', ".")),
        None if path.starts_with("sys/") => sysfs += &format!("/{path}={value}\n"),
        // New interrupts are the scheduler plug-in's, below.
        None => {}
    };
    let housekeeping = Cpu::parse_list(&shield.housekeeping).unwrap_or_default();
    let mask = hexadecimal(&housekeeping);
    let masks = MASKS.map(|path| (path, mask.as_str()));
    let watchdog = ("proc/sys/kernel/watchdog_cpumask", &*shield.housekeeping);
    for (path, value) in masks.into_iter().chain([watchdog]).chain(SETTINGS) {
        // A file that this kernel does not have would fail the profile.
        if root.join(path).exists() {
            add(path, value);
        }
    }
    let (inside, boot_line) = (&shield.cpus, boot_line(root, shield));
    format!(
        "[main]\nsummary=CPU {inside} for real-time tasks alone (rtscope shield)\n\n\
         [sysctl]\n{sysctl}\n[sysfs]\n{sysfs}\n[irqbalance]\nbanned_cpus={inside}\n\n\
         [scheduler]\nisolated_cores={inside}\ndefault_irq_smp_affinity=calc\n\n\
         [bootloader]\ncmdline_rtscope=+{boot_line}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shield::plan;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        folder
    }

    fn shield(root: &Path) -> Shield {
        plan(root, &[Cpu(2), Cpu(3)], &[0, 1, 2, 3].map(Cpu), &[]).expect("planned")
    }

    #[test]
    fn the_line_names_what_this_kernel_can_do_and_says_what_it_cannot() {
        let check = |files: &[(&str, &str)], expect: &str, notes: usize| {
            let machine = machine(files);
            let root = machine.path();
            assert_eq!(boot_line(root, &shield(root)), expect);
            assert_eq!(boot_notes(root).len(), notes);
        };
        let tickless = [(TICKLESS, "\n")];
        check(
            &tickless,
            "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1",
            0,
        );
        check(
            &[],
            "isolcpus=managed_irq,domain,2-3 rcu_nocbs=2-3 irqaffinity=0-1",
            1,
        );
    }

    #[test]
    fn a_profile_of_tuned_has_the_settings_that_are_there() {
        let machine = machine(&[
            ("proc/sys/kernel/timer_migration", "0\n"),
            ("sys/devices/virtual/workqueue/cpumask", "f\n"),
            ("proc/irq/default_smp_affinity", "f\n"),
        ]);
        let profile = tuned_profile(machine.path(), &shield(machine.path()));
        let expect = "\
[main]
summary=CPU 2-3 for real-time tasks alone (rtscope shield)

[sysctl]
kernel.timer_migration=1

[sysfs]
/sys/devices/virtual/workqueue/cpumask=3

[irqbalance]
banned_cpus=2-3

[scheduler]
isolated_cores=2-3
default_irq_smp_affinity=calc

[bootloader]
cmdline_rtscope=+isolcpus=managed_irq,domain,2-3 rcu_nocbs=2-3 irqaffinity=0-1
";
        assert_eq!(profile, expect);
    }
}
