//! Bounds for what files say of a machine, whatever form the file has.

/// Numbers of CPUs are smaller: it is the most that a kernel can be built for (`CONFIG_NR_CPUS` of
/// x86).
pub(crate) const CPUS_MAX: u32 = 8192;
