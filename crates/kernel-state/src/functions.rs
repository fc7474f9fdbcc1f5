//! Functions that are called and return, and their names.

use trace::{EventView, Symbols};

use super::{Change, Kernel, Sink};
use crate::bind::Function;

/// A function, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId {
    /// The process in whose memory it is; none of the kernel, or where nobody says.
    pub pid: Option<i32>,
    /// Where it begins.
    pub address: u64,
}

impl Kernel {
    pub(super) fn function<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        function: Function,
        sink: &mut S,
    ) {
        let running = || self.current(cpu).map_or(0, |id| self.process(id).tid);
        let tid = match function.tid {
            Some(tid) => event.i64(tid) as i32,
            None => running(),
        };
        let id = function.address.map(|address| FunctionId {
            pid: function.pid.map(|pid| event.i64(pid) as i32),
            address: event.u64(address),
        });
        match (function.enters, id) {
            (true, Some(function)) => sink.change(self, &Change::FunctionEntry { tid, function }),
            (true, None) => {}
            (false, function) => sink.change(self, &Change::FunctionExit { tid, function }),
        }
    }

    /// The function's name where the trace has the kernel's symbols, else its address.
    pub fn function_name(&self, function: FunctionId) -> String {
        match self
            .symbols
            .as_ref()
            .and_then(|symbols| symbols.lookup(function.address))
        {
            Some((name, _)) => name.to_owned(),
            None => format!("{:#x}", function.address),
        }
    }
}

/// The symbols of a trace that has functions' events; few have, and symbols are many.
pub(super) fn symbols(trace: &trace::Trace, has_functions: bool) -> Option<Symbols> {
    has_functions.then(|| trace.symbols().clone())
}
