//! Completions for shells: what clap makes of the flags, and names that no flag knows: those of
//! reports, of tasks that run, of events that the kernel has.

use capture::EventSelection;
use clap::Command;
use clap_complete::Shell;
use views::reports::REPORTS;

/// Flags that mean tasks by their names, as they stand in the shells' texts.
const TASKS: [&str; 3] = ["task", "process", "procname"];
const EVENTS: [&str; 1] = ["events"];
/// Where `--task` is no name: a deadline that is measured.
const TIMES: [&str; 2] = [":RUNTIME:", "from deadline"];

/// The whole text of a shell.
pub fn text(shell: Shell, command: &mut Command) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, command, "rtscope", &mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    match shell {
        Shell::Bash => format!("{text}{}", named(include_str!("completions/names.bash"))),
        Shell::Zsh => zsh(&text),
        Shell::Fish => fish(&text),
        _ => text.into_owned(),
    }
}

/// A text with the names that the program has.
fn named(text: &str) -> String {
    let reports: Vec<&str> = REPORTS.iter().map(|report| report.name).collect();
    let sets: Vec<&str> = EventSelection::set_names().collect();
    text.replace("@REPORTS@", &reports.join(" "))
        .replace("@SETS@", &sets.join(" "))
}

/// Where a flag's value was left to the shell, its names are asked for.
fn zsh(text: &str) -> String {
    let line = |line: &str| {
        let of = |flags: &[&str]| {
            flags
                .iter()
                .any(|flag| line.contains(&format!("--{flag}=[")))
        };
        let names = match line {
            _ if TIMES.iter().any(|times| line.contains(times)) => None,
            _ if of(&TASKS) => Some(":_rtscope_tasks"),
            _ if of(&EVENTS) => Some(":_rtscope_events"),
            _ if line.starts_with("':name -- Reports") => Some(":_rtscope_reports"),
            _ => None,
        };
        match names {
            Some(names) => line.replace(":_default", names),
            None => line.to_owned(),
        }
    };
    let text = text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n";
    let names = named(include_str!("completions/names.zsh"));
    text.replacen("\n_rtscope() {", &format!("\n{names}_rtscope() {{"), 1)
}

fn fish(text: &str) -> String {
    let line = |line: &str| {
        let of = |flags: &[&str]| {
            flags
                .iter()
                .any(|flag| line.contains(&format!(" -l {flag} ")))
        };
        let names = match line {
            _ if TIMES.iter().any(|times| line.contains(times)) => "",
            _ if of(&TASKS) => " -x -a \"(__rtscope_tasks)\"",
            _ if of(&EVENTS) => " -x -a \"(__rtscope_events)\"",
            _ => "",
        };
        format!("{line}{names}\n")
    };
    let text: String = text.lines().map(line).collect();
    text + &named(include_str!("completions/names.fish"))
}
