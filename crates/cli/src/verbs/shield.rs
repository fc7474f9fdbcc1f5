//! `rtscope shield`: CPUs for real-time tasks alone, and the way back.

use std::path::Path;
use std::process::Command;

use capture::capabilities;
use event::{Error, ErrorKind, Result};
use host::capabilities::Verb;
use host::shield::{self, Shield};
use serde_json::{Value, json};

use crate::exit::{self, Outcome};
use crate::flags;
use crate::options::known_cpus;
use crate::signals;

const SCHEMA: &str = "rtscope.shield";
const SCHEMA_VERSION: u32 = 1;
/// The machine.
const ROOT: &str = "/";
/// Goes into the group of the file that comes first, then becomes the command behind it.
const ENTER: &str = "echo $$ > \"$0\" && exec \"$@\"";

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
    let plan = shield::plan(Path::new(ROOT), &known_cpus(list, online)?, online)?;
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
    let refused = shield::apply(Path::new(ROOT), plan)?;
    eprint!("{}", refused_text(&refused));
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(ENTER)
        .arg(entrance)
        .args(&typed.command);
    let ended = command.status();
    let undone = shield::undo(Path::new(ROOT))?;
    left_over(&undone)?;
    let status = ended.map_err(|error| Error::io("cannot start the command", error))?;
    if status.success() {
        return Ok(Outcome::Fine);
    }
    Err(
        Error::new(ErrorKind::Io, "the command inside the shield failed")
            .found(status.to_string())
            .fix("the shield is down; run the command alone to see why"),
    )
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
    let changes: Vec<String> = shield.changes.iter().map(shield::Change::shell).collect();
    json!({
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "up": shield::state(Path::new(ROOT)).ok().flatten().as_ref() == Some(shield),
        "cpus": shield.cpus,
        "housekeeping": shield.housekeeping,
        "entrance": shield.entrance,
        "changes": changes,
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
