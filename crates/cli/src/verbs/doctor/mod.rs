//! `rtscope doctor`: what works here, what would fix the rest, what killed runs left, what we
//! cost.

mod cost;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use capture::Unfinished;
use capture::capabilities;
use capture::leftovers::{self, Cleaned, Kind, Leftover};
use event::{Duration, Error, ErrorKind, Result};
use host::capabilities::{Capabilities, Effect, Lack, Rung, Scheduler, Stand, Verb};
use host::namespace;
use host::shield::{self, Shield};
use host::tune;
use measure::load;
use measure::preempt::{LeftSemaphores, left_semaphores};
use serde_json::{Value, json};

use crate::exit::{Outcome, stdout_error};
use crate::flags::Doctor;
use crate::paint::Paint;
use crate::verbs::shield::state_text;
use cost::Costs;

/// The schema of `--json`.
const SCHEMA: &str = "rtscope.doctor";
const SCHEMA_VERSION: u32 = 1;

/// Runs the verb.
pub fn run(typed: &Doctor, paint: Paint) -> Result<Outcome> {
    let capabilities = capabilities::gather_all();
    let mut report = Report {
        capabilities: &capabilities,
        shield: shield::state(Path::new("/"))?,
        tried: tune::state(Path::new("/"))?,
        left: Vec::new(),
        cleaned: None,
        costs: None,
    };
    match typed.clean {
        true => report.cleaned = Some(clean(typed)?),
        false => {
            report.left = leftovers::list(&typed.output);
            report.left.extend(left_semaphores().iter().map(semaphores));
        }
    }
    if typed.cost {
        report.costs = Some(Costs::measure(&capabilities)?);
    }
    let text = if typed.json {
        format!("{:#}\n", report.json())
    } else {
        report.text(paint)
    };
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(stdout_error)?;
    Ok(Outcome::Fine)
}

fn clean(typed: &Doctor) -> Result<Cleaned> {
    let looked_into = std::fs::read_dir(&typed.output);
    looked_into.map_err(|error| {
        let what = format!("cannot look into {}", typed.output.display());
        Error::io(what, error).fix("give --output the folder in which rtscope was killed")
    })?;
    let mut cleaned = leftovers::clean(&typed.output)?;
    for left in load::left() {
        left.remove().map_err(|error| {
            Error::io(format!("cannot remove {}", left.path), error).fix("run it with sudo")
        })?;
        cleaned.removed.push(Leftover {
            kind: Kind::Load,
            path: left.path,
            pid: left.owner,
        });
    }
    for left in left_semaphores() {
        left.remove().map_err(|error| {
            let what = format!("cannot remove {}", semaphores(&left).path);
            Error::io(what, error).fix(format!("sudo ipcrm -s {}", left.id))
        })?;
        cleaned.removed.push(semaphores(&left));
    }
    if let Some(keeper) = shield::state(Path::new("/"))?
        .as_ref()
        .and_then(dead_keeper)
    {
        let undone = shield::undo(Path::new("/"))?;
        if let Some(left) = undone.left.first() {
            return Err(
                Error::new(ErrorKind::Io, "a shield cannot be taken down whole")
                    .found(left.clone())
                    .fix("sudo rtscope shield --undo, again"),
            );
        }
        cleaned.removed.push(Leftover {
            kind: Kind::Shield,
            path: format!("a shield, {} changes", undone.restored),
            pid: keeper,
        });
    }
    if let Some(tried) = tune::state(Path::new("/"))?
        && !is_alive(tried.pid)
    {
        tune::undo(Path::new("/"))?;
        cleaned.removed.push(Leftover {
            kind: Kind::Trial,
            path: tried.commands.join(" && "),
            pid: tried.pid,
        });
    }
    Ok(cleaned)
}

/// Who was to take this shield down and is dead; one that was put up by hand has nobody.
fn dead_keeper(shield: &Shield) -> Option<u32> {
    let keeper = shield.keeper?;
    let lives = load::begin_ticks(keeper.pid) == Some(keeper.began_ticks);
    (!lives).then_some(keeper.pid)
}

fn semaphores(left: &LeftSemaphores) -> Leftover {
    Leftover {
        kind: Kind::Semaphores,
        path: format!("System V semaphores {}", left.id),
        pid: left.owner,
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// What a tune tries, or left.
fn tried_text(tried: &tune::State) -> String {
    let (commands, pid) = (tried.commands.join(" && "), tried.pid);
    match is_alive(pid) {
        true => format!("\nrtscope tune (process {pid}) tries now: {commands}\n"),
        false => format!(
            "\na killed tune left its change: {commands}\n\
             to take it back: sudo rtscope tune --undo\n"
        ),
    }
}

struct Report<'a> {
    capabilities: &'a Capabilities,
    /// The shield that is up.
    shield: Option<Shield>,
    /// What is being tried, or was when its process was killed.
    tried: Option<tune::State>,
    /// What killed runs left; not looked for with `--clean`.
    left: Vec<Leftover>,
    /// What `--clean` did; none without it.
    cleaned: Option<Cleaned>,
    /// What `--cost` measured; none without it.
    costs: Option<Costs>,
}

impl Report<'_> {
    fn json(&self) -> Value {
        let verbs: Vec<Stand> = Verb::ALL
            .iter()
            .map(|verb| self.capabilities.stand(*verb))
            .collect();
        let mut report = json!({
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "rtscope": env!("CARGO_PKG_VERSION"),
            "facts": self.capabilities,
            "verbs": verbs,
            "doubts": self.capabilities.doubts(),
            "left": self.left,
            "tried": self.tried.as_ref().map(|tried| &tried.commands),
            "shielded_cpus": self.shield.as_ref().map(|shield| &shield.cpus),
        });
        if let Some(cleaned) = &self.cleaned {
            report["removed"] = json!(cleaned.removed);
            report["in_use"] = json!(cleaned.in_use);
            report["finished"] = json!(cleaned.finished);
        }
        if let Some(costs) = &self.costs {
            report["cost"] = costs.json();
        }
        report
    }

    fn text(&self, paint: Paint) -> String {
        let mut text = self.headline();
        text.push_str("\nverb       stands on  what is missing\n");
        for verb in Verb::ALL {
            text.push_str(&verb_lines(&self.capabilities.stand(verb), paint));
        }
        if let Some(shield) = &self.shield {
            text.push('\n');
            text.push_str(&state_text(shield));
        }
        if let Some(tried) = &self.tried {
            text.push_str(&tried_text(tried));
        }
        let doubts = self.capabilities.doubts();
        if !doubts.is_empty() {
            text.push_str("\nresults of this machine are doubtful where\n");
            for doubt in &doubts {
                text.push_str(&lack_lines("  ", doubt, paint));
            }
        }
        if !self.left.is_empty() {
            text.push_str(&left_lines(&self.left, !namespace::is_inside()));
        }
        if let Some(cleaned) = &self.cleaned {
            text.push_str(&cleaned_lines(cleaned));
        }
        if let Some(costs) = &self.costs {
            text.push_str(&costs.text());
        }
        text
    }

    fn headline(&self) -> String {
        let Capabilities {
            machine, scheduler, ..
        } = self.capabilities;
        let mut text = format!(
            "rtscope {} on Linux {}, {} CPUs, preemption {}",
            env!("CARGO_PKG_VERSION"),
            machine.kernel_release,
            machine.cpus_online.len(),
            scheduler.preemption.name()
        );
        if let Some(clocksource) = &machine.clocksource {
            // Writing to a String cannot fail.
            let _ = write!(text, ", clock {clocksource}");
        }
        if !machine.cpus_isolated.is_empty() {
            let _ = write!(text, ", {} isolated", machine.cpus_isolated.len());
        }
        text += &real_time_share(scheduler);
        text.push('\n');
        text
    }
}

/// What real-time tasks that never sleep have of a CPU, where something limits them.
fn real_time_share(scheduler: &Scheduler) -> String {
    let limit = (scheduler.rt_runtime_us, scheduler.rt_period_us);
    match (scheduler.fair_server, limit) {
        (Some(server), _) => match (server.runtime_ns, server.period_ns) {
            (Some(0), _) => String::new(),
            (Some(runtime_ns), Some(period_ns)) => {
                let [runtime, period] = [runtime_ns, period_ns].map(Duration::from_ns);
                format!(", the fair server gives ordinary tasks {runtime} of {period}")
            }
            _ => ", the fair server gives ordinary tasks a part".to_owned(),
        },
        (None, (Some(runtime), Some(period))) if runtime >= 0 => {
            format!(", real-time tasks get {runtime} of {period} us")
        }
        _ => String::new(),
    }
}

fn verb_lines(stand: &Stand, paint: Paint) -> String {
    // Padded before it is coloured: the codes have no width.
    let rung = match stand.rung {
        Some(Rung::Bpf) => paint.good("BPF      "),
        Some(Rung::Tracefs) => paint.good("tracefs  "),
        Some(Rung::UserSpace) => paint.good("user     "),
        Some(Rung::File) => paint.good("a file   "),
        None => paint.bad("nothing  "),
    };
    let mut text = format!("{:<10} {rung}", stand.verb.name());
    if stand.lacks.is_empty() {
        text.push_str("  -\n");
        return text;
    }
    for (at, lack) in stand.lacks.iter().enumerate() {
        let indent = " ".repeat(22);
        let lines = lack_lines(&indent, lack, paint);
        text.push_str(if at == 0 { &lines[20..] } else { &lines });
    }
    text
}

fn lack_lines(indent: &str, lack: &Lack, paint: Paint) -> String {
    let what = match lack.effect {
        Effect::Stops => paint.bad(&lack.what),
        Effect::Degrades | Effect::Doubts => paint.doubtful(&lack.what),
    };
    let (found, fix) = (&lack.found, &lack.fix);
    format!("{indent}{what}\n{indent}  found: {found}\n{indent}  fix:  {fix}\n")
}

/// So many are listed; the others are counted.
const LEFT_MAX: usize = 10;

/// `sees_all`: no process is hidden from us by a PID namespace.
fn left_lines(left: &[Leftover], sees_all: bool) -> String {
    let mut text = match sees_all {
        true => "\nkilled runs left\n".to_owned(),
        false => {
            "\nperhaps left by killed runs: this PID namespace hides the processes of others, \
                  which may still record\n"
                .to_owned()
        }
    };
    for Leftover { kind, path, pid } in left.iter().take(LEFT_MAX) {
        let is_trace = Unfinished::at(Path::new(path)).is_some();
        let advice = match kind {
            _ if is_trace => format!(": rtscope recover {path}"),
            Kind::RecordSession => ": rtscope record stop finishes its archive".to_owned(),
            Kind::Session => ": events of applications are still switched on".to_owned(),
            _ => String::new(),
        };
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "  {path} (process {pid}){advice}");
    }
    if left.len() > LEFT_MAX {
        let _ = writeln!(text, "  and {} more", left.len() - LEFT_MAX);
    }
    text.push_str("rtscope doctor --clean removes it\n");
    text
}

fn cleaned_lines(cleaned: &Cleaned) -> String {
    let Cleaned {
        removed,
        in_use,
        finished,
    } = cleaned;
    if removed.is_empty() && in_use.is_empty() && finished.is_empty() {
        return "\nnothing was left by killed runs\n".into();
    }
    let mut text = String::new();
    let mut list = |headline: &str, leftovers: &[Leftover]| {
        if !leftovers.is_empty() {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "\n{headline}");
        }
        for Leftover { path, pid, .. } in leftovers {
            let _ = writeln!(text, "  {path} (process {pid})");
        }
    };
    list("removed what killed runs left", removed);
    list(
        "left to the living recorder that has it open, perhaps in a container; clean again when \
         that has ended",
        in_use,
    );
    if !finished.is_empty() {
        text.push_str("\nwhat killed recorders wrote has its name now\n");
    }
    for path in finished {
        let _ = writeln!(text, "  rtscope info {}", path.display());
    }
    text
}

#[cfg(test)]
mod tests {
    use host::capabilities::FairServer;

    use super::*;

    const PLAIN: Paint = Paint::OFF;

    #[test]
    fn a_shield_is_left_when_its_keeper_is_dead_and_not_when_it_was_put_up_by_hand() {
        let check = |keeper: Value, expect: Option<u32>| {
            let shield: Shield = serde_json::from_value(json!({
                "version": 1, "cpus": "1", "housekeeping": "0", "entrance": null,
                "changes": [], "tasks": [], "keeper": keeper,
            }))
            .expect("a shield");
            assert_eq!(dead_keeper(&shield), expect, "{shield:?}");
        };
        let pid = std::process::id();
        let began = load::begin_ticks(pid).expect("we live");
        let keeper = |pid: u32, began: u64| json!({ "pid": pid, "began_ticks": began });
        check(Value::Null, None);
        check(keeper(pid, began), None);
        // Another process has its number now; the largest of Linux is 2^22.
        check(keeper(pid, began + 1), Some(pid));
        check(keeper(99_999_999, 1), Some(99_999_999));
    }

    #[test]
    fn where_there_is_a_fair_server_the_sysctl_is_no_limit() {
        let check = |server: Option<(Option<i64>, Option<i64>)>, expect: &str| {
            let scheduler = Scheduler {
                rt_runtime_us: Some(950_000),
                rt_period_us: Some(1_000_000),
                fair_server: server.map(|(runtime_ns, period_ns)| FairServer {
                    runtime_ns,
                    period_ns,
                }),
                ..Scheduler::default()
            };
            assert_eq!(real_time_share(&scheduler), expect, "{server:?}");
        };
        check(None, ", real-time tasks get 950000 of 1000000 us");
        let default = (Some(50_000_000), Some(1_000_000_000));
        let gives = ", the fair server gives ordinary tasks";
        check(Some(default), &format!("{gives} 50.000 ms of 1.000 s"));
        check(Some((Some(0), Some(1_000_000_000))), "");
        check(Some((None, None)), &format!("{gives} a part"));
    }

    #[test]
    fn a_lack_stands_beside_its_verb_with_what_was_found_and_the_way_out() {
        // A machine of which nothing is known lacks tracefs, among others.
        let lines = verb_lines(&Capabilities::default().stand(Verb::Record), PLAIN);
        let expect = "\
record     nothing    kernel events cannot be recorded: tracefs is not mounted
                        found: no tracefs in /proc/mounts
                        fix:  sudo mount -t tracefs nodev /sys/kernel/tracing
";
        assert_eq!(&lines[..expect.len()], expect);
        assert_eq!(
            verb_lines(&Capabilities::default().stand(Verb::Cat), PLAIN),
            "cat        a file     -\n"
        );
    }

    #[test]
    fn json_names_its_schema_and_judges_every_verb() {
        let capabilities = Capabilities::default();
        let report = Report {
            capabilities: &capabilities,
            shield: None,
            tried: None,
            left: Vec::new(),
            cleaned: Some(Cleaned::default()),
            costs: None,
        }
        .json();
        assert_eq!(report["schema"], "rtscope.doctor");
        assert_eq!(report["version"], 1);
        assert_eq!(
            report["verbs"].as_array().map(Vec::len),
            Some(Verb::ALL.len())
        );
        assert_eq!(report["verbs"][0]["verb"], "watch");
        assert_eq!(report["removed"], json!([]));
        assert_eq!(report["in_use"], json!([]));
    }
}
