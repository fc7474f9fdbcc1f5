//! Functions of the kernel that are traced where they begin and where they return: by the kernel's
//! tracers in an instance of ours, or by probes where its instances have none of both ends.

use event::{Error, ErrorKind, Result};
use ftrace::{DynamicEvents, EventName, Instance, Tracefs, Tracer};
use host::capabilities::Functions;

use crate::functions::kernel_functions;
use crate::select::glob;

/// So many are probed one by one: each costs the kernel a change of its text.
const PROBED_MAX: usize = 64;
/// Where the kernel has probes, below tracefs.
const PROBES: &str = "kprobe_events";
const NO_TRACER: &str = "neither function_graph nor function in available_tracers of an instance";
/// Returns that a probe waits for at once, of all tasks; others are missed.
const RETURNS_MAX: usize = 256;

/// Which functions are wanted: names, and patterns with `*` and `?`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionPatterns(Vec<String>);

impl FunctionPatterns {
    /// From what was typed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what is no name and no pattern of one.
    pub fn new<S: AsRef<str>>(typed: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut patterns = Vec::new();
        for term in typed {
            let term = term.as_ref().trim();
            // Other words mean something else to the kernel: commands, modules, places.
            let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_.$*?".contains(&b);
            if term.is_empty() || !term.bytes().all(is_letter) {
                let what = "--functions has no name of a function, and no pattern";
                return Err(Error::new(ErrorKind::InvalidInput, what)
                    .found(format!("'{term}'"))
                    .fix("letters, digits, '_', '.', '*' and '?', as in --functions 'vfs_*'"));
            }
            patterns.push(term.to_owned());
        }
        Ok(FunctionPatterns(patterns))
    }

    /// As they were typed.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// Whether none is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The functions that are meant, without repetition.
    fn resolve<'f>(
        &self,
        traceable: &'f [String],
        symbols: impl Fn() -> String,
    ) -> Result<Vec<&'f str>> {
        let mut found = Vec::new();
        for pattern in &self.0 {
            let before = found.len();
            let names = traceable.iter().map(String::as_str);
            found.extend(names.filter(|name| glob(pattern, name)));
            if found.len() == before {
                return Err(none_is_called(pattern, traceable, &symbols()));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

/// No function that can be traced is called so.
fn none_is_called(pattern: &str, traceable: &[String], symbols: &str) -> Error {
    let is_it = |line: &str| line.split_ascii_whitespace().nth(2) == Some(pattern);
    if symbols.lines().any(is_it) {
        let what = "the kernel does not let this function be traced";
        let found = format!(
            "'{pattern}' is in /proc/kallsyms, and not in available_filter_functions: it was built \
             without a place for a tracer (notrace, or called only while the kernel started)"
        );
        return Error::new(ErrorKind::Unsupported, what)
            .found(found)
            .fix("trace what calls it, or what it calls");
    }
    let fix = match expr::nearest(pattern, traceable.iter().map(String::as_str)) {
        Some(near) => format!("perhaps '{near}' is meant"),
        None => "available_filter_functions in tracefs lists them; what a compiler inlined is no \
                 function"
            .to_owned(),
    };
    Error::new(ErrorKind::NotFound, "this kernel has no such function")
        .found(format!("'{pattern}'"))
        .fix(fix)
}

/// How functions are traced.
#[derive(Debug)]
enum Means {
    Tracer(Tracer),
    /// Events that were made for it.
    Probes(DynamicEvents),
}

/// Functions that are about to be traced.
#[derive(Debug)]
pub(crate) struct TracedFunctions {
    means: Means,
    patterns: Vec<String>,
    /// What could not be had of them.
    pub notes: Vec<String>,
}

impl TracedFunctions {
    /// Finds the functions and a way to trace them in instances such as this one; none when none
    /// are wanted.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when one is not there, [`ErrorKind::Unsupported`] when the kernel
    /// does not trace it, or none.
    pub fn prepare(
        tracefs: &Tracefs,
        instance: &Instance,
        wanted: &FunctionPatterns,
    ) -> Result<Option<TracedFunctions>> {
        if wanted.is_empty() {
            return Ok(None);
        }
        let traceable = tracefs.traceable_functions().map_err(refused)?;
        let functions = wanted.resolve(&traceable, kernel_functions)?;
        let mut notes = Vec::new();
        let means = if instance.has_tracer(Tracer::FunctionGraph)? {
            Means::Tracer(Tracer::FunctionGraph)
        } else if functions.len() <= PROBED_MAX && tracefs.has(PROBES) {
            Means::Probes(probes(tracefs, &functions, &mut notes)?)
        } else if instance.has_tracer(Tracer::Function)? {
            notes.push(entries_alone(functions.len()));
            Means::Tracer(Tracer::Function)
        } else {
            let what = "this kernel has no tracer of functions";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .found(NO_TRACER)
                .fix("use a kernel with CONFIG_FUNCTION_GRAPH_TRACER=y, of 6.11 or later"));
        };
        Ok(Some(TracedFunctions {
            means,
            patterns: wanted.0.clone(),
            notes,
        }))
    }

    /// Their events.
    pub fn events(&self) -> Vec<EventName> {
        match &self.means {
            Means::Tracer(tracer) => tracer.events(),
            Means::Probes(made) => made.events().to_vec(),
        }
    }

    /// Lets `instance` trace them from its next start on.
    pub fn switch_on(&self, instance: &Instance) -> Result<()> {
        match &self.means {
            Means::Tracer(tracer) => instance.trace_functions(*tracer, &self.patterns),
            Means::Probes(made) => {
                let mut events = made.events().iter();
                events.try_for_each(|event| instance.enable(event))
            }
        }
    }
}

/// How this kernel lets functions be recorded, asked of an instance of our own; none where there
/// can be none.
pub(crate) fn here() -> Option<Functions> {
    let tracefs = Tracefs::find().ok()?;
    let instance = Instance::create(&tracefs).ok()?;
    let has = |tracer| instance.has_tracer(tracer).unwrap_or(false);
    Some(match tracefs.traceable_functions() {
        Err(error) => {
            let found = error.value_found().unwrap_or_default();
            Functions::Refused(format!("{}: {found}", error.what()))
        }
        Ok(_) if has(Tracer::FunctionGraph) => Functions::BothEnds,
        Ok(_) if tracefs.has(PROBES) => Functions::Probed(PROBED_MAX),
        Ok(_) if has(Tracer::Function) => Functions::Entries,
        Ok(_) => Functions::Refused(NO_TRACER.to_owned()),
    })
}

/// The kernel keeps its list from us.
fn refused(cause: Error) -> Error {
    let found = cause.value_found().unwrap_or_default();
    let found = format!("{}: {found}", cause.what());
    let what = "this kernel does not let its functions be traced";
    Error::new(ErrorKind::Unsupported, what)
        .found(found)
        .fix(
            "use a kernel with CONFIG_FUNCTION_GRAPH_TRACER=y that is not locked down; --events \
             has the kernel's tracepoints",
        )
        .cause(cause)
}

fn entries_alone(count: usize) -> String {
    format!(
        "functions: of {count} functions only the entries are recorded: function_graph does not \
         work in instances of this kernel (it does from 6.11 on); of {PROBED_MAX} or fewer the \
         returns are recorded too, by probes"
    )
}

/// Probes at both ends of each function, under the names of the graph tracer's events.
fn probes(tracefs: &Tracefs, functions: &[&str], notes: &mut Vec<String>) -> Result<DynamicEvents> {
    let mut made = DynamicEvents::new(tracefs)?;
    let returns = format!("r{RETURNS_MAX}");
    let mut refused = None;
    for function in functions {
        let begins = made.make("p", "funcgraph_entry", function);
        let (left_out, ends) = match begins {
            Ok(_) => (
                "its returns are",
                made.make(&returns, "funcgraph_exit", function),
            ),
            Err(error) => ("it is", Err(error)),
        };
        if let Err(error) = ends {
            let found = error.value_found().unwrap_or_default();
            notes.push(format!(
                "functions: {function}: {left_out} left out: {found}"
            ));
            refused = Some(error);
        }
    }
    match refused {
        Some(error) if made.events().is_empty() => Err(error),
        _ => Ok(made),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T vfs_read\nffffffff81000100 t hidden\n\
                           ffffffff81000200 t hidden_too [module]\n";

    fn resolve(typed: &[&str]) -> Result<String> {
        let names = ["vfs_read", "vfs_write", "vfs_write", "do_fault.isra.0"];
        let traceable = names.map(str::to_owned);
        let patterns = FunctionPatterns::new(typed)?;
        let found = patterns.resolve(&traceable, || SYMBOLS.to_owned())?;
        Ok(found.join(" "))
    }

    #[test]
    fn names_and_patterns_mean_the_functions_that_the_kernel_traces_each_once() {
        let check = |typed: &[&str], expect: &str| {
            assert_eq!(resolve(typed).ok().as_deref(), Some(expect), "{typed:?}");
        };
        check(&["vfs_read"], "vfs_read");
        check(&["vfs_*"], "vfs_read vfs_write");
        check(
            &["vfs_write", "*", " vfs_?ead "],
            "do_fault.isra.0 vfs_read vfs_write",
        );
        check(&["*.isra.0"], "do_fault.isra.0");
    }

    #[test]
    fn what_is_not_there_is_refused_with_the_nearest_name_and_what_is_hidden_with_the_reason() {
        let check = |typed: &[&str], kind: ErrorKind, expect: &str| {
            let error = resolve(typed).expect_err(expect);
            assert_eq!(error.kind(), kind, "{error:#}");
            assert!(format!("{error:#}").contains(expect), "{error:#}");
            assert!(error.value_found().is_some() && error.fixed_by().is_some());
        };
        check(&["vfs_raed"], ErrorKind::NotFound, "'vfs_read' is meant");
        check(&["jackd_cycle"], ErrorKind::NotFound, "inlined");
        check(&["vfs_read", "x*"], ErrorKind::NotFound, "'x*'");
        check(
            &["hidden"],
            ErrorKind::Unsupported,
            "available_filter_functions",
        );
        check(&["hidden_too"], ErrorKind::Unsupported, "notrace");
        for term in [
            "",
            "a b",
            "schedule:traceoff",
            ":mod:ext4",
            "!schedule",
            "a\nb",
        ] {
            check(
                &["vfs_read", term],
                ErrorKind::InvalidInput,
                "no name of a function",
            );
        }
    }
}
