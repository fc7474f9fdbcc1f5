//! Kernel modules of a guest with everything that they need, in the order in which to load them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What `depmod` found out about a kernel's modules.
pub struct Modules {
    folder: PathBuf,
    index: Index,
}

/// Module names to files, and files to the files that they need.
struct Index {
    loadable: BTreeMap<String, (String, Vec<String>)>,
    builtin: Vec<String>,
}

impl Modules {
    /// Reads `modules.dep` and `modules.builtin` in `folder`.
    pub fn open(folder: &Path) -> Result<Modules> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        };
        let index = Index::parse(&read("modules.dep")?, &read("modules.builtin")?);
        Ok(Modules {
            folder: folder.to_path_buf(),
            index,
        })
    }

    /// The contents of the modules called `names` and of all that they need, in loading order,
    /// each with a file name; modules that the kernel has built in are left out.
    pub fn closure(&self, names: &[&str]) -> Result<Vec<(String, Vec<u8>)>> {
        self.index
            .closure(names)?
            .iter()
            .map(|file| {
                let path = self.folder.join(file);
                Ok((format!("{}.ko", module_name(file)), content(&path)?))
            })
            .collect()
    }
}

impl Index {
    fn parse(dep: &str, builtin: &str) -> Index {
        let loadable = dep.lines().filter_map(|line| {
            let (file, needs) = line.split_once(':')?;
            let needs = needs.split_whitespace().map(str::to_owned).collect();
            Some((module_name(file), (file.to_owned(), needs)))
        });
        Index {
            loadable: loadable.collect(),
            builtin: builtin.lines().map(module_name).collect(),
        }
    }

    fn closure(&self, names: &[&str]) -> Result<Vec<&String>> {
        let mut files: Vec<&String> = Vec::new();
        for name in names {
            let Some((file, needs)) = self.loadable.get(*name) else {
                ensure!(
                    self.builtin.iter().any(|builtin| builtin == name),
                    "this kernel has no module '{name}'"
                );
                continue;
            };
            // depmod lists what a module needs directly before what that needs in turn.
            for file in needs.iter().rev().chain([file]) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }
}

/// `kernel/drivers/block/virtio-blk.ko.xz` is called `virtio_blk`.
fn module_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.split(".ko").next().unwrap_or(name);
    name.replace('-', "_")
}

fn content(path: &Path) -> Result<Vec<u8>> {
    let packed = path.extension().is_some_and(|extension| extension == "xz");
    if !packed {
        return std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    }
    let output = Command::new("xz").arg("-dc").arg(path).output();
    let output = output.context("cannot start xz")?;
    ensure!(output.status.success(), "cannot unpack {}", path.display());
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "\
kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio-ring.ko.xz \
kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/virtio/virtio-ring.ko.xz: kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/virtio/virtio.ko.xz:
";

    #[test]
    fn a_module_comes_after_all_that_it_needs_and_once() {
        let index = Index::parse(DEP, "kernel/fs/ext4.ko\n");
        let check = |names: &[&str], expect: Result<&[&str], &str>| {
            let found = index.closure(names).map_err(|error| error.to_string());
            let found: Result<Vec<String>, String> =
                found.map(|files| files.iter().map(|file| module_name(file)).collect());
            let expect = expect.map_err(str::to_owned);
            let expect = expect.map(|names| names.iter().map(|name| (*name).into()).collect());
            assert_eq!(found, expect, "{names:?}");
        };
        let all: &[&str] = &["virtio", "virtio_ring", "virtio_blk"];
        check(&["virtio_blk"], Ok(all));
        check(&["virtio", "virtio_blk"], Ok(all));
        check(&["ext4"], Ok(&[]));
        check(&["xfs"], Err("this kernel has no module 'xfs'"));
    }
}
