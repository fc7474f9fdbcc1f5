//! Running other programs and saying which one failed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The cargo that runs us.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs `command`; a status other than 0 is an error that shows the command line.
pub fn must_succeed(command: &mut Command) -> Result<()> {
    let line = show(command);
    eprintln!("+ {line}");
    let status = command
        .status()
        .with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("failed ({status}): {line}");
    }
    Ok(())
}

/// The command line as one would type it.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
