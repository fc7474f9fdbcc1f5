//! The kernels of the laboratory: named in a table, fetched once, with the headers that build
//! modules for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{cache, debs, table};
use crate::run;

/// The table, below the repository's root.
const TABLE: &str = "tests/vm/kernels.tsv";
const COLUMNS: &[&str] = &["name", "package pattern", "what it stands for"];
/// Version of the layout of a kernel's folder in the cache; another one is fetched anew.
const LAYOUT: &str = "v1";

/// One row of the table.
pub struct Kernel {
    /// What we call it.
    pub name: String,
    /// Regular expression of its package's name.
    pub pattern: String,
    /// Why it is here.
    pub purpose: String,
}

/// A kernel on this machine.
pub struct Fetched {
    /// What we call it.
    pub name: String,
    /// As in `uname -r`.
    pub release: String,
    /// The packages with their versions, for the result.
    pub packages: String,
    root: PathBuf,
}

/// All rows.
pub fn table(repository: &Path) -> Result<Vec<Kernel>> {
    let rows = table::read(&repository.join(TABLE), COLUMNS)?;
    let kernels = rows.into_iter().map(|mut row| {
        let purpose = row.pop().unwrap_or_default();
        let pattern = row.pop().unwrap_or_default();
        let name = row.pop().unwrap_or_default();
        Kernel {
            name,
            pattern,
            purpose,
        }
    });
    Ok(kernels.collect())
}

impl Kernel {
    /// The kernel from the cache, or from the package archive when it is not there.
    pub fn fetch(&self) -> Result<Fetched> {
        let folder = self.folder()?;
        if let Some(fetched) = self.cached()? {
            return Ok(fetched);
        }
        let _held = cache::lock()?;
        cache::fill_once(&folder, |folder| fetch(&self.pattern, folder))
            .with_context(|| format!("cannot fetch the kernel {}", self.name))?;
        self.cached()?
            .with_context(|| format!("{} has no release file", folder.display()))
    }

    /// The kernel when it is in the cache.
    pub fn cached(&self) -> Result<Option<Fetched>> {
        let folder = self.folder()?;
        let Ok(release) = std::fs::read_to_string(folder.join("release")) else {
            return Ok(None);
        };
        Ok(Some(Fetched {
            name: self.name.clone(),
            release,
            packages: std::fs::read_to_string(folder.join("packages"))?,
            root: folder.join("root"),
        }))
    }

    fn folder(&self) -> Result<PathBuf> {
        Ok(cache::folder()?.join(LAYOUT).join(&self.name))
    }
}

impl Fetched {
    /// The compressed kernel.
    pub fn image(&self) -> PathBuf {
        self.root.join(format!("boot/vmlinuz-{}", self.release))
    }

    /// The folder with `modules.dep`.
    pub fn modules(&self) -> PathBuf {
        self.root.join(format!("lib/modules/{}", self.release))
    }

    /// What `make -C` needs to build a module.
    pub fn headers(&self) -> PathBuf {
        self.root
            .join(format!("usr/src/linux-headers-{}", self.release))
    }
}

fn fetch(pattern: &str, folder: &Path) -> Result<()> {
    let image = debs::newest(pattern)?;
    let release = image
        .strip_prefix("linux-image-")
        .and_then(|name| name.strip_suffix("-unsigned"))
        .with_context(|| format!("not the name of a kernel package: {image}"))?;
    let headers = format!("linux-headers-{release}");
    let shared = debs::depends(&headers, |name| {
        name.starts_with("linux-kbuild-") || name.contains("-common")
    })?;
    ensure!(
        shared.len() == 2,
        "{headers} needs {shared:?}, expected the common headers and the build programs"
    );
    let root = folder.join("root");
    let mut packages = String::new();
    for package in [&image, &headers].into_iter().chain(&shared) {
        debs::unpack(package, &folder.join("downloads"), &root)?;
        packages += &format!("{package} {}\n", debs::version(package)?);
    }
    cache::remove(&folder.join("downloads"))?;
    run::must_succeed(Command::new("depmod").arg("-b").arg(&root).arg(release))?;
    relocate_headers(&root, release)?;
    std::fs::write(folder.join("packages"), packages)?;
    // Last: with it the folder counts as a kernel.
    std::fs::write(folder.join("release"), release)?;
    Ok(())
}

/// The headers' makefile names the common headers by the path at which Debian installs them; ours
/// are elsewhere, and will be renamed with the folder that holds them.
fn relocate_headers(root: &Path, release: &str) -> Result<()> {
    let makefile = root.join(format!("usr/src/linux-headers-{release}/Makefile"));
    let text = std::fs::read_to_string(&makefile)
        .with_context(|| format!("cannot read {}", makefile.display()))?;
    let here = "$(realpath $(dir $(lastword $(MAKEFILE_LIST)))..)";
    std::fs::write(&makefile, text.replace("/usr/src", here))?;
    Ok(())
}
