//! Names of functions and of system calls.

use bpf_host::trackers::call_name;
use monitor::Names;
use trace::Symbols;

/// The kernel's functions as they were when the monitor began.
pub(super) struct KernelNames(Symbols);

impl KernelNames {
    pub(super) fn symbols(&self) -> &Symbols {
        &self.0
    }

    pub(super) fn read() -> KernelNames {
        KernelNames(Symbols::from_kallsyms(&capture::kernel_functions()))
    }
}

impl Names for KernelNames {
    fn function(&self, address: u64) -> Option<String> {
        let (name, offset) = self.0.lookup(address)?;
        Some(format!("{name}+{offset:#x}"))
    }

    fn call(&self, number: u32) -> Option<String> {
        call_name(u64::from(number)).map(str::to_owned)
    }
}
