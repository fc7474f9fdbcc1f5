//! The capabilities of this machine, with those that only `bpf-host` can find out.

use host::capabilities::{AbsentTracepoint, Bpf, Capabilities};

use crate::traced_functions;

/// The capabilities of this machine, now, for this process.
pub fn gather() -> Capabilities {
    host::capabilities::gather(bpf())
}

/// The same with what takes longer to find out and nobody needs who records.
pub fn gather_all() -> Capabilities {
    let mut all = gather();
    if all.tracefs.writable && all.tracefs.instances {
        all.tracefs.functions = traced_functions::here();
    }
    all
}

fn bpf() -> Bpf {
    let features = bpf_host::Features::probe();
    let absent = features.tracepoints.iter().filter(|fact| !fact.present);
    Bpf {
        btf: features.btf,
        lockdown: features.lockdown.filter(|mode| mode != "none"),
        statistics: features.statistics,
        interrupted_registers: features.interrupted_registers,
        steal: features.steal,
        absent: absent
            .map(|fact| AbsentTracepoint {
                name: fact.name.to_owned(),
                without: fact.without.to_owned(),
            })
            .collect(),
        refused: features.attach_failure,
        ..Bpf::default()
    }
}
