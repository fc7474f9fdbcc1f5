//! `rtscope shield`: CPUs for real-time tasks alone, and the way back.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capture::capabilities;
use event::{Error, ErrorKind, Result};
use host::capabilities::Verb;
use host::shield::{self, InterruptPrio, Keeper, Shield};
use measure::load::begin_ticks;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::exit::{self, Outcome};
use crate::flags;
use crate::options::known_cpus;
use crate::signals;

const SCHEMA: &str = "rtscope.shield";
const SCHEMA_VERSION: u32 = 1;
/// The machine.
const ROOT: &str = "/";
/// How often we look whether the command has ended.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
/// A shell's exit code for a command that a signal ended is its number above this.
const BY_SIGNAL: i32 = 128;

/// Runs the verb.
pub fn run(typed: &flags::Shield) -> Result<Outcome> {
    if typed.undo {
        return undo(typed.json);
    }
    let Some(list) = &typed.cpu else {
        let up = shield::state(Path::new(ROOT))?;
        let text = up
            .as_ref()
            .map_or_else(|| "no shield is up\n".into(), state_text);
        return print(typed.json, up.as_ref().map(state_json), &text);
    };
    let capabilities = capabilities::gather();
    let online = &capabilities.machine.cpus_online;
    let prios = typed.irq_prio.iter().map(|text| InterruptPrio::parse(text));
    let prios = prios.collect::<Result<Vec<_>>>()?;
    let cpus = known_cpus(list, online)?;
    let plan = shield::plan(Path::new(ROOT), &cpus, online, &prios)?;
    if typed.boot_line || typed.tuned_profile {
        return for_boot(typed.tuned_profile, &plan);
    }
    if !typed.apply {
        return print(typed.json, Some(state_json(&plan)), &plan_text(&plan));
    }
    capabilities.require(Verb::Shield)?;
    if typed.command.is_empty() {
        let refused = shield::apply(Path::new(ROOT), &plan)?;
        let mut json = state_json(&plan);
        json["refused"] = json!(refused);
        return print(
            typed.json,
            Some(json),
            &(state_text(&plan) + &refused_text(&refused)),
        );
    }
    inside(typed, &plan)
}

/// Prints what makes the shield part of the machine's start; what it cannot do goes to stderr.
fn for_boot(is_profile: bool, plan: &Shield) -> Result<Outcome> {
    let root = Path::new(ROOT);
    for note in shield::boot_notes(root) {
        note!("warning: {note:#}");
    }
    exit::print(&match is_profile {
        true => shield::tuned_profile(root, plan),
        false => shield::boot_line(root, plan) + "\n",
    })?;
    Ok(Outcome::Fine)
}

/// Runs the command inside, and takes the shield down however it ends.
fn inside(typed: &flags::Shield, plan: &Shield) -> Result<Outcome> {
    let Some(entrance) = &plan.entrance else {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "nothing can be run inside this shield",
        )
        .found("no control groups with cpuset are mounted")
        .fix("sudo mount -t cgroup2 none /sys/fs/cgroup, or go without a command"));
    };
    // Ctrl-C is the command's to obey; we stay to clean up behind it.
    signals::take_over()?;
    let passed_on = PassedOn::take_over()?;
    let pid = std::process::id();
    let mut plan = plan.clone();
    plan.keeper = begin_ticks(pid).map(|began_ticks| Keeper { pid, began_ticks });
    let refused = shield::apply(Path::new(ROOT), &plan)?;
    note_text!("{}", refused_text(&refused));
    let ended = run_inside(typed, entrance, &passed_on);
    let undone = shield::undo(Path::new(ROOT))?;
    let status = ended?;
    left_over(&undone)?;
    Ok(Outcome::Code(exit_code(status)))
}

/// Signals that somebody sends to us alone and means the command: of a terminal it has them itself.
struct PassedOn([(Signal, Arc<AtomicBool>); 2]);

impl PassedOn {
    fn take_over() -> Result<PassedOn> {
        let asked = |number, signal| {
            let asked = Arc::new(AtomicBool::new(false));
            let registered = signal_hook::flag::register(number, asked.clone());
            let cannot = |error| Error::io("cannot handle signals", error);
            registered.map(|_| (signal, asked)).map_err(cannot)
        };
        Ok(PassedOn([
            asked(SIGTERM, Signal::TERM)?,
            asked(SIGHUP, Signal::HUP)?,
        ]))
    }

    fn pass_on(&self, to: Option<Pid>) {
        for (signal, asked) in &self.0 {
            if asked.swap(false, Ordering::Relaxed)
                && let Some(pid) = to
            {
                // It may have ended.
                kill_process(pid, *signal).ok();
            }
        }
    }
}

fn run_inside(typed: &flags::Shield, entrance: &Path, passed_on: &PassedOn) -> Result<ExitStatus> {
    let cannot = |error: std::io::Error| {
        let name = typed.command.first().map(|word| word.to_string_lossy());
        let what = format!("cannot start {}", name.unwrap_or_default());
        let fix = "check the command's name and its path, and that it may be run; the shield is \
                   down again";
        Error::io(what, error).fix(fix)
    };
    let mut door = File::options().write(true).open(entrance).map_err(cannot)?;
    let (name, words) = typed.command.split_first().ok_or_else(|| {
        let nothing = std::io::ErrorKind::InvalidInput;
        cannot(nothing.into())
    })?;
    let mut command = Command::new(name);
    command.args(words);
    // SAFETY: one write to an open file, between fork and exec; it allocates nothing. Zero is
    // whoever writes it.
    unsafe { command.pre_exec(move || door.write_all(b"0")) };
    let mut child = command.spawn().map_err(cannot)?;
    let pid = Pid::from_raw(child.id() as i32);
    loop {
        if let Some(status) = child.try_wait().map_err(cannot)? {
            return Ok(status);
        }
        passed_on.pass_on(pid);
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// As a shell has it.
fn exit_code(status: ExitStatus) -> u8 {
    let by_signal = || status.signal().map(|signal| BY_SIGNAL + signal);
    let code = status.code().or_else(by_signal);
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn undo(json: bool) -> Result<Outcome> {
    capabilities::gather().require(Verb::Shield)?;
    let undone = shield::undo(Path::new(ROOT))?;
    left_over(&undone)?;
    let text = format!(
        "the shield is down: {} changes taken back\n",
        undone.restored
    );
    let value = json!({
        "schema": SCHEMA, "version": SCHEMA_VERSION, "up": false, "restored": undone.restored,
    });
    print(json, Some(value), &text)
}

fn left_over(undone: &shield::Undone) -> Result<()> {
    if undone.left.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Io, "the shield is not down whole")
        .found(undone.left.join("\n         "))
        .fix("rtscope shield --undo tries again; a restart of the machine ends it in any case"))
}

fn print(json: bool, value: Option<Value>, text: &str) -> Result<Outcome> {
    let none = || json!({"schema": SCHEMA, "version": SCHEMA_VERSION, "up": false});
    let text = match json {
        true => format!("{}\n", value.unwrap_or_else(none)),
        false => text.to_owned(),
    };
    exit::print(&text)?;
    Ok(Outcome::Fine)
}

fn state_json(shield: &Shield) -> Value {
    let changes: Vec<String> = shield.changes.iter().map(shield::Step::shell).collect();
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "up": shield::state(Path::new(ROOT)).ok().flatten().as_ref() == Some(shield),
        "cpus": shield.cpus,
        "housekeeping": shield.housekeeping,
        "entrance": shield.entrance,
        "changes": changes,
        "boot_line": shield::boot_line(Path::new(ROOT), shield),
    })
}

fn plan_text(shield: &Shield) -> String {
    let lines = shield.changes.iter().map(|change| change.shell() + "\n");
    format!(
        "a shield of CPU {}, everything else on {}:\n{}nothing was changed; --apply does it, and \
         rtscope shield --undo takes it back\n",
        shield.cpus,
        shield.housekeeping,
        lines.collect::<String>()
    )
}

/// What is up, for `doctor` too.
pub(super) fn state_text(shield: &Shield) -> String {
    let enter = match &shield.entrance {
        Some(path) => format!("; to go inside: echo $$ | sudo tee {}", path.display()),
        None => String::new(),
    };
    format!(
        "a shield is up: CPU {} for real-time tasks, everything else on {}; to take it down: sudo \
         rtscope shield --undo{enter}\n",
        shield.cpus, shield.housekeeping
    )
}

fn refused_text(refused: &[String]) -> String {
    let line = |line: &String| format!("refused, and passed over: {line}\n");
    refused.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_the_commands_and_a_signal_counts_from_128() {
        let check = |wait_status: i32, expect: u8| {
            assert_eq!(exit_code(ExitStatus::from_raw(wait_status)), expect);
        };
        check(0, 0);
        check(3 << 8, 3);
        check(255 << 8, 255);
        check(9, 137);
        check(15, 143);
    }
}
