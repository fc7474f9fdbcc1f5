//! Where kernels and headers are kept between runs: outside the tree, fetched once.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::FlockOperation;

/// `${XDG_CACHE_HOME:-~/.cache}/rtscope/vm`, made when it is not there.
pub fn folder() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let folder = base
        .context("no cache folder: set XDG_CACHE_HOME or HOME")?
        .join("rtscope/vm");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// One guest by this machine's clock, or one fetch, at a time; free again when the file is closed.
pub fn lock() -> Result<File> {
    lock_in(&folder()?)
}

/// For a guest in virtual time: others of its kind may run beside it, and nothing else.
pub fn lock_shared() -> Result<File> {
    let [now, later] = [
        FlockOperation::NonBlockingLockShared,
        FlockOperation::LockShared,
    ];
    hold(&folder()?, now, later)
}

/// Waits until nobody else holds the folder's file `lock`.
pub fn lock_in(folder: &Path) -> Result<File> {
    let [now, later] = [
        FlockOperation::NonBlockingLockExclusive,
        FlockOperation::LockExclusive,
    ];
    hold(folder, now, later)
}

fn hold(folder: &Path, now: FlockOperation, later: FlockOperation) -> Result<File> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    if rustix::fs::flock(&file, now).is_err() {
        eprintln!("waiting for {}, held by another run", path.display());
        rustix::fs::flock(&file, later).context("cannot lock")?;
    }
    Ok(file)
}

/// Fills the folder `target` with what `fill` puts into an empty one; whole or not at all.
pub fn fill_once(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if target.is_dir() {
        return Ok(());
    }
    let mut partial = target.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    remove(&partial)?;
    std::fs::create_dir_all(&partial)
        .with_context(|| format!("cannot make {}", partial.display()))?;
    fill(&partial)?;
    std::fs::rename(&partial, target)
        .with_context(|| format!("cannot rename to {}", target.display()))
}

/// Removes a folder that may not be there.
pub fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_filled_whole_or_not_at_all_and_only_once() {
        let base = std::env::temp_dir().join(format!("rtscope-cache-{}", std::process::id()));
        let target = base.join("6.1-rt");
        assert!(fill_once(&target, |_| anyhow::bail!("no network")).is_err());
        assert!(!target.exists());
        fill_once(&target, |folder| Ok(std::fs::write(folder.join("a"), "1")?)).unwrap();
        fill_once(&target, |_| anyhow::bail!("not again")).unwrap();
        assert_eq!(std::fs::read_to_string(target.join("a")).unwrap(), "1");
        remove(&base).unwrap();
        remove(&base).unwrap();
    }
}
