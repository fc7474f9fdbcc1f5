//! Events at the entry and the exit of functions: of programs built with
//! `-finstrument-functions`, and of the kernel's function graph tracer.

use event::{EventClass, FieldId};

/// A function begins or returns.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub enters: bool,
    /// Its address; an exit may not say it.
    pub address: Option<FieldId>,
    /// The process in whose memory the address is, where a context says it.
    pub pid: Option<FieldId>,
    /// The thread, where a context says it.
    pub tid: Option<FieldId>,
}

pub(super) fn bind(class: &EventClass) -> Option<Function> {
    let field = |field: &str| class.field(field);
    let (enters, address) = match class.kernel_name() {
        "lttng_ust_cyg_profile:func_entry" | "lttng_ust_cyg_profile_fast:func_entry" => {
            (true, field("addr"))
        }
        "lttng_ust_cyg_profile:func_exit" | "lttng_ust_cyg_profile_fast:func_exit" => {
            (false, field("addr"))
        }
        // Of probes in the place of the graph tracer it is where they are.
        "funcgraph_entry" => (true, field("func").or_else(|| field("ip"))),
        "funcgraph_exit" => (false, field("func").or_else(|| field("ip"))),
        _ => return None,
    };
    // An entry into nowhere says nothing.
    (!enters || address.is_some()).then_some(Function {
        enters,
        address,
        pid: field("vpid"),
        tid: field("vtid").or_else(|| field("tid")),
    })
}
