//! Opens the traces of a verb, and says what is wrong with them that reading does not need.

use std::path::{Path, PathBuf};

use diagnosis::quoted;
use event::{Error, ErrorKind, Result};
use trace::{OpenOptions, Root, TRACKED_TASKS, Trace};

/// So many places are named; `info --strict` names the others.
const NAMED_MAX: usize = 3;

/// Opens a trace.
///
/// # Errors
/// As [`Trace::open`].
pub fn open(path: &Path) -> Result<Trace> {
    open_all(&[Root::from(path)], &OpenOptions::default())
}

/// Opens several traces as one.
///
/// # Errors
/// As [`Trace::open_all`].
pub fn open_all(roots: &[Root], options: &OpenOptions) -> Result<Trace> {
    let trace = Trace::open_all(roots, options)?;
    name_tracked(&trace);
    for (part, violations) in trace.violations() {
        let named = violations.first.iter().take(NAMED_MAX);
        let mut found: Vec<String> = named
            .map(|violation| format!("line {}: {}", violation.line, violation.what))
            .collect();
        let more = violations.count - found.len() as u64;
        if more > 0 {
            found.push(format!("{more} more"));
        }
        let of_part = match part {
            "" => String::new(),
            part => format!(" of {part}"),
        };
        note!(
            "warning: the metadata{of_part} breaks CTF 1.8, and is read all the same\n  \
             found: {}\n  fix:  rtscope info --strict has all of it, for whoever wrote the tracer",
            found.join("; ")
        );
    }
    Ok(trace)
}

/// Says whose events alone a trace has: what others did is no part of any answer.
fn name_tracked(trace: &Trace) {
    let Some(words) = trace.info().environment.get(TRACKED_TASKS) else {
        return;
    };
    note!(
        "note: recorded with --track {}: what other tasks did, and who else had a CPU, is not in \
         it",
        event::plain_text(words.as_bytes())
    );
}

/// Opens traces of one time as one, for a verb that follows tasks through them: recordings of the
/// kernel, and those of applications beside them.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] where an application's is of another time, and as
/// [`Trace::open_all`].
pub fn open_of_one_time(paths: &[PathBuf], verb: &str) -> Result<Trace> {
    let roots: Vec<Root> = paths.iter().map(Root::from).collect();
    if paths.len() > 1 {
        let singly = roots
            .iter()
            .map(|root| Ok((root, Trace::open(&root.path)?)));
        belong_together(&singly.collect::<Result<Vec<_>>>()?, verb)?;
    }
    open_all(&roots, &OpenOptions::default())
}

fn belong_together(singly: &[(&Root, Trace)], verb: &str) -> Result<()> {
    let names: Vec<String> = singly
        .iter()
        .map(|(root, _)| quoted(&root.path.display().to_string()))
        .collect();
    let refuse = |what: &str, found: String| {
        let names = names.join(" ");
        let error = Error::new(ErrorKind::InvalidInput, what).found(found);
        Err(error.fix(format!(
            "one after the other: for trace in {names}; do rtscope {verb} \"$trace\"; done; \
             'rtscope diff' compares them"
        )))
    };
    let follows_tasks = |trace: &Trace| {
        let mut classes = trace.classes().iter();
        classes.any(|class| class.name == "sched_switch")
    };
    let ranges = singly.iter().zip(&names).filter_map(|((_, trace), name)| {
        let range = trace.range()?;
        let (begin_ns, until_ns) = (trace.wall_ns(range.begin), trace.wall_ns(range.end));
        Some((begin_ns, until_ns, name, follows_tasks(trace)))
    });
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_unstable();
    let (mut end_ns, mut has_kernel) = (i64::MAX, false);
    for (begin_ns, until_ns, name, is_kernel) in ranges {
        // Between two recordings of a kernel nothing is known, and the answer says so.
        if begin_ns > end_ns && !(is_kernel && has_kernel) {
            let apart = (begin_ns - end_ns) as f64 / 1e9;
            let found = format!("{name} begins {apart:.3} s after the others end");
            return refuse("these traces are not of one time", found);
        }
        end_ns = match end_ns {
            i64::MAX => until_ns,
            end_ns => end_ns.max(until_ns),
        };
        has_kernel |= is_kernel;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use event::Value;
    use testkit::{SyntheticTrace, Task};

    use super::*;

    const FAIR: Task = Task::fair(300, "compile");

    /// From 1 ms on.
    fn kernel(until_us: i64) -> SyntheticTrace {
        let trace = SyntheticTrace::new().at(1_000).block(FAIR, Task::IDLE);
        trace.at(until_us).block(Task::IDLE, FAIR)
    }

    fn application(from_us: i64, until_us: i64) -> SyntheticTrace {
        let number = [("number", Value::Unsigned(7))];
        let trace = SyntheticTrace::new()
            .at(from_us)
            .event("app:begin", &number);
        trace.at(until_us).event("app:end", &number)
    }

    #[test]
    fn a_kernels_trace_and_those_of_applications_belong_together_where_their_times_meet() {
        let check = |traces: Vec<SyntheticTrace>, expect: Option<&str>| {
            let roots = ["a b", "c", "d"].map(|name| Root::from(Path::new(name)));
            let traces = traces.into_iter().map(SyntheticTrace::build);
            let singly: Vec<_> = roots.iter().zip(traces).collect();
            let found = belong_together(&singly, "diagnose").err();
            assert_eq!(found.as_ref().map(Error::what), expect);
            let fix = found
                .as_ref()
                .map(|error| error.fixed_by().unwrap_or_default());
            assert!(fix.is_none_or(|fix| fix.contains("for trace in 'a b' c")));
        };
        check(vec![kernel(9_000), application(2_000, 3_000)], None);
        check(vec![application(8_000, 12_000), kernel(9_000)], None);
        let within = [application(9_000, 20_000), application(15_000, 30_000)];
        let [first, second] = within;
        check(vec![kernel(10_000), second, first], None);
        let apart = "these traces are not of one time";
        check(
            vec![kernel(9_000), application(10_000, 12_000)],
            Some(apart),
        );
        check(vec![application(100, 900), kernel(9_000)], Some(apart));
        // What they tell twice is for who follows the kernel to refuse.
        check(vec![kernel(9_000), kernel(12_000)], None);
    }
}
