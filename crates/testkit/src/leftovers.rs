//! What killed runs leave behind, and that `doctor --clean` removes it.

use std::path::Path;
use std::process::Command;

/// The instances of tracefs, in order of their names.
///
/// # Panics
/// When tracefs is not mounted.
pub fn tracefs_instances() -> Vec<String> {
    names(Path::new("/sys/kernel/tracing/instances")).expect("tracefs is mounted")
}

/// The state to which `doctor --clean` must come back.
pub struct Leftovers<'a> {
    rtscope: &'a Path,
    instances: Vec<String>,
}

impl<'a> Leftovers<'a> {
    /// Removes what others left, which is not this test's to find, and remembers what remains.
    ///
    /// # Panics
    /// When `doctor --clean` fails.
    pub fn before(rtscope: &'a Path) -> Leftovers<'a> {
        let clean = Command::new(rtscope).args(["doctor", "--clean"]).output();
        assert!(clean.expect("rtscope starts").status.success());
        let instances = tracefs_instances();
        Leftovers { rtscope, instances }
    }

    /// Cleans up after a run in `folder` that was killed after `delay_ms`, and checks that nothing
    /// is left of it.
    ///
    /// # Panics
    /// When something is.
    pub fn check_removed(&self, folder: &Path, delay_ms: u64) {
        // Who is killed at once has not made it.
        std::fs::create_dir_all(folder.join("rtscope-snapshots")).expect("a folder");
        let mut doctor = Command::new(self.rtscope);
        doctor.args(["doctor", "--clean", "--output", "rtscope-snapshots"]);
        let cleaned = doctor.current_dir(folder).output().expect("rtscope starts");
        assert!(cleaned.status.success(), "{cleaned:?}");
        let found = tracefs_instances();
        assert_eq!(
            found, self.instances,
            "killed after {delay_ms} ms: {cleaned:?}"
        );
        let snapshots = names(&folder.join("rtscope-snapshots")).unwrap_or_default();
        let half = snapshots.iter().find(|name| name.contains(".partial"));
        assert_eq!(half, None, "killed after {delay_ms} ms: {cleaned:?}");
    }
}

fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?.flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}
