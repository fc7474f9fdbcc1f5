//! Both models follow one kernel: a CPU is its number there, and so is a thread.

use event::{ClassId, Error, ErrorKind, Result};
use trace::Trace;

use super::{Binding, Known};

/// The key of `env` under which LTTng, and we, say whose kernel recorded.
pub(super) const HOST: &str = "hostname";

impl Binding {
    /// Refuses the kernels' events of several machines at once: CPU 0 of one would be taken for
    /// CPU 0 of another, and a task that runs there for the culprit of a delay here.
    ///
    /// # Errors
    /// Traces of more than one host hold events of a kernel.
    pub fn of_one_machine(&self, trace: &Trace) -> Result<()> {
        let mut first: Option<&str> = None;
        for class in trace.classes() {
            let known = self.get(class.id).map(|bound| bound.known);
            if !known.is_some_and(is_of_kernel) {
                continue;
            }
            let Some(host) = host_of(trace, class.id) else {
                continue;
            };
            match first {
                Some(other) if other != host => return Err(several(other, host)),
                _ => first = Some(host),
            }
        }
        Ok(())
    }

    /// Refuses what tells of more than one kernel, or of one kernel more than once.
    ///
    /// # Errors
    /// As [`Binding::of_one_machine`] and [`Binding::recorded_once`].
    pub fn of_one_kernel(&self, trace: &Trace) -> Result<()> {
        self.of_one_machine(trace)?;
        self.recorded_once(trace)
    }
}

/// As [`Binding::of_one_kernel`], for who has bound nothing yet.
///
/// # Errors
/// As that.
pub fn one_kernel(trace: &Trace) -> Result<()> {
    Binding::new(trace).of_one_kernel(trace)
}

/// Whether CPUs and threads of the models follow from it; programs of several hosts may be read
/// together.
fn is_of_kernel(known: Known) -> bool {
    match known {
        Known::Sched(_) | Known::Life(_) | Known::Handler(_) | Known::Call(_) => true,
        Known::Stop(_) => true,
        Known::Fault { .. } => true,
        Known::Device(_) | Known::Dump(_) | Known::Evidence(_) | Known::Current => true,
        Known::Function(_) => false,
    }
}

/// The host whose kernel recorded events of `class`, where the trace says it.
pub fn host_of(trace: &Trace, class: ClassId) -> Option<&str> {
    trace.environment_of(class).get(HOST).map(String::as_str)
}

fn several(one: &str, other: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "kernels' events of several machines cannot be analysed as one: their CPUs and threads \
         have the same numbers",
    )
    .found(format!("hosts '{one}' and '{other}'"))
    .fix("name the traces of one host; 'rtscope cat' and 'convert' merge those of several")
}
