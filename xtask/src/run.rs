//! Running other programs and saying which one failed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result, bail};

/// The cargo that runs us.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Where cargo builds.
pub fn target_folder(root: &Path) -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR");
    named.map_or_else(|| root.join("target"), |named| root.join(named))
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

/// A program that runs beside this one. It is ended where nobody waits for it.
pub struct Started {
    child: Child,
    line: String,
}

impl Started {
    /// Waits for its end; a status other than 0 is an error that shows the command line.
    pub fn wait(mut self) -> Result<()> {
        let status = self.child.wait();
        let status = status.with_context(|| format!("cannot wait for: {}", self.line))?;
        if !status.success() {
            bail!("failed ({status}): {}", self.line);
        }
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// How programs that are tested are built, by a profile of Cargo.toml.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Profile {
    /// What people run; `make test-all` and trials by hand.
    #[default]
    Release,
    /// Built in less time, for `make test`.
    Tested,
}

impl Profile {
    /// Its name, which is that of the folder, too.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Tested => "tested",
        }
    }
}

/// Starts `command`, and does not wait for it.
pub fn start(command: &mut Command) -> Result<Started> {
    let line = show(command);
    eprintln!("+ {line} &");
    let child = command.spawn();
    let child = child.with_context(|| format!("cannot start: {line}"))?;
    Ok(Started { child, line })
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
