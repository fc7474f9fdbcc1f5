//! Builds the fault injectors: a kernel module for each kernel, and a static program for all.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};

use super::kernel::Fetched;
use crate::run;

const SOURCES: &str = "tests/vm/injector";

/// The kernel module for `kernel`, built when it is older than its sources.
pub fn module(repository: &Path, kernel: &Fetched, artefacts: &Path) -> Result<PathBuf> {
    let sources = repository.join(SOURCES).join("module");
    let folder = artefacts.join("injector").join(&kernel.name);
    let built = folder.join("rtscope_lab.ko");
    let mark = folder.join("release");
    let same_kernel = std::fs::read_to_string(&mark).is_ok_and(|text| text == kernel.release);
    if same_kernel && is_newer(&built, &files(&sources)?) {
        return Ok(built);
    }
    super::cache::remove(&folder)?;
    std::fs::create_dir_all(&folder)?;
    for file in files(&sources)? {
        std::fs::copy(
            &file,
            folder.join(file.file_name().context("no file name")?),
        )?;
    }
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(kernel.headers());
    make.arg(format!("M={}", folder.display()));
    // Without it a module with BTF would need pahole, which Debian 12 has too old for 6.12.
    make.args(["CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]);
    run::must_succeed(&mut make)?;
    std::fs::write(mark, &kernel.release)?;
    Ok(built)
}

/// The user-space injector.
pub fn program(repository: &Path, artefacts: &Path) -> Result<PathBuf> {
    let sources = repository.join(SOURCES).join("user");
    compiled(&sources, &artefacts.join("injector/injector-user"))
}

/// A static program of all sources in the folder `sources`, built when it is older than one.
pub fn compiled(sources: &Path, built: &Path) -> Result<PathBuf> {
    let sources = files(sources)?;
    if is_newer(built, &sources) {
        return Ok(built.to_owned());
    }
    std::fs::create_dir_all(built.parent().context("no folder")?)?;
    let mut compile = Command::new("cc");
    compile.args([
        "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o",
    ]);
    compile.arg(built);
    let is_c = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "c");
    compile.args(sources.iter().filter(is_c));
    run::must_succeed(&mut compile)?;
    Ok(built.to_owned())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

fn is_newer(built: &Path, sources: &[PathBuf]) -> bool {
    let time = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified());
    let newest = |source: &PathBuf| time(source).unwrap_or(SystemTime::now());
    time(built).is_ok_and(|built| sources.iter().all(|source| newest(source) < built))
}
