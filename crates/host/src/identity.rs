//! Which machine this is: what a certificate has to name.

use std::path::Path;

use serde::Serialize;

/// A machine by the names that its firmware, its kernel and its distribution give it; none where
/// nobody says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The host's name.
    pub host: Option<String>,
    /// Vendor and product (SMBIOS, "System Information").
    pub hardware: Option<String>,
    /// The mainboard's vendor and name.
    pub board: Option<String>,
    /// Vendor, version and date of the firmware.
    pub firmware: Option<String>,
    /// The model of CPU 0.
    pub cpu_model: Option<String>,
    /// The revision of its microcode.
    pub microcode: Option<String>,
    /// Memory that the kernel has for all, in bytes.
    pub memory_bytes: Option<u64>,
    /// Release, builder and options of the kernel, as `/proc/version` has them.
    pub kernel: Option<String>,
    /// What `/etc/os-release` calls the distribution.
    pub distribution: Option<String>,
}

impl Identity {
    /// Of the machine whose files are below `root`: `/` for this one.
    pub fn read(root: &Path) -> Identity {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let dmi = |names: &[&str]| {
            let words = names.iter().map(|name| text(&format!("{DMI}/{name}")));
            let words: Vec<String> = words.map(|word| word.trim().to_owned()).collect();
            said(&words.join(" "))
        };
        let cpus = text("proc/cpuinfo");
        let memory = text("proc/meminfo");
        let memory = value_of(&memory, "MemTotal").and_then(|value| {
            let kib: u64 = value.strip_suffix(" kB")?.trim().parse().ok()?;
            Some(kib * 1024)
        });
        let release = text("etc/os-release");
        let names = release
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="));
        Identity {
            host: said(&text("proc/sys/kernel/hostname")),
            hardware: dmi(&["sys_vendor", "product_name"]),
            board: dmi(&["board_vendor", "board_name"]),
            firmware: dmi(&["bios_vendor", "bios_version", "bios_date"]),
            // Arm's kernels have a model of the machine and numbers of the CPU's parts.
            cpu_model: value_of(&cpus, "model name").or_else(|| value_of(&cpus, "CPU part")),
            microcode: value_of(&cpus, "microcode"),
            memory_bytes: memory,
            kernel: said(&text("proc/version")),
            distribution: names.and_then(|name| said(name.trim_matches(['"', '\'']))),
        }
    }
}

/// The kernel's copy of what the firmware says (SMBIOS).
const DMI: &str = "sys/class/dmi/id";

fn said(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The first `key : value` of such a text.
fn value_of(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| said(value))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Identity {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        Identity::read(root.path())
    }

    #[test]
    fn a_machine_has_the_names_that_its_files_give_it() {
        let cpus = "processor\t: 0\nmodel name\t: Fast CPU\nmicrocode\t: 0x2b\n\n\
                    processor\t: 1\nmodel name\t: Slow CPU\n";
        let found = machine(&[
            ("proc/sys/kernel/hostname", "robot-7\n"),
            ("proc/cpuinfo", cpus),
            ("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            ("proc/version", "Linux version 6.12.1-rt (x)\n"),
            ("etc/os-release", "ID=d\nPRETTY_NAME=\"Distribution 12\"\n"),
            ("sys/class/dmi/id/sys_vendor", "Maker\n"),
            ("sys/class/dmi/id/product_name", "Box 3\n"),
            ("sys/class/dmi/id/bios_version", "1.2\n"),
        ]);
        let expect = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            Identity {
                host: expect("robot-7"),
                hardware: expect("Maker Box 3"),
                board: None,
                firmware: expect("1.2"),
                cpu_model: expect("Fast CPU"),
                microcode: expect("0x2b"),
                memory_bytes: Some(16 << 20),
                kernel: expect("Linux version 6.12.1-rt (x)"),
                distribution: expect("Distribution 12"),
            }
        );
    }

    #[test]
    fn what_no_file_says_is_not_known() {
        assert_eq!(machine(&[]), Identity::default());
        let odd = machine(&[
            ("proc/meminfo", "MemTotal: many kB\n"),
            ("proc/cpuinfo", "model name:\nCPU part\t: 0xd08\n"),
            ("etc/os-release", "PRETTY_NAME=\n"),
        ]);
        let expect = Identity {
            cpu_model: Some("0xd08".to_owned()),
            ..Identity::default()
        };
        assert_eq!(odd, expect);
    }
}
