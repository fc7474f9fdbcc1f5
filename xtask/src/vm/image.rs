//! The guest's first and only file system: busybox, our programs with their libraries, modules,
//! and an `init` that runs one script.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::cpio::Archive;
use super::debs;
use super::modules::Modules;

/// A guest's file system in the making.
pub struct Image {
    archive: Archive,
    load_order: String,
}

/// What the results' disk needs, on kernels that have it not built in.
const DISK_MODULES: &[&str] = &["virtio_pci", "virtio_blk"];
/// Where the guest's loader looks for libraries.
const LOADER_FOLDERS: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
const FOLDERS: &[&str] = &[
    "dev", "proc", "sys", "tmp", "run", "root", "out", "etc", "mnt", "lib64", "var/tmp",
];

impl Image {
    /// A file system with a shell, `tests/vm/guest/init` and the modules of the results' disk.
    pub fn new(repository: &Path, modules: &Modules) -> Result<Image> {
        let mut image = Image {
            archive: Archive::default(),
            load_order: String::new(),
        };
        for folder in FOLDERS {
            image.archive.folder(folder)?;
        }
        image.archive.link("var/run", "../run")?;
        let busybox = in_path("busybox").context("fix: apt-get install busybox-static")?;
        ensure!(
            libraries(&mut Command::new("ldd"), &busybox)?.is_empty(),
            "{} needs libraries\n  fix: apt-get install busybox-static",
            busybox.display()
        );
        image.archive.copy("bin/busybox", &busybox)?;
        image.archive.link("bin/sh", "busybox")?;
        let passwd = "root:x:0:0:root:/root:/bin/sh\n";
        image.archive.file("etc/passwd", 0o644, passwd.as_bytes())?;
        image.archive.file("etc/group", 0o644, b"root:x:0:\n")?;
        let guest = repository.join("tests/vm/guest");
        image.archive.copy("init", &guest.join("init"))?;
        image.archive.copy("lib/vm.sh", &guest.join("lib.sh"))?;
        for (name, content) in modules.closure(DISK_MODULES)? {
            image.module(&name, &content)?;
        }
        Ok(image)
    }

    /// Adds a module that `init` loads, after those added before.
    pub fn module(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.load_order += &format!("{name}\n");
        self.archive
            .file(&format!("lib/modules/{name}"), 0o644, content)
    }

    /// Adds the program or file `from` as `path`, with the libraries that it needs.
    pub fn program(&mut self, path: &str, from: &Path) -> Result<()> {
        self.archive.copy(path, from)?;
        self.libraries(&mut Command::new("ldd"), from)
    }

    /// Adds a program whose libraries may be in the folder `also`.
    pub fn program_with(&mut self, path: &str, from: &Path, also: &Path) -> Result<()> {
        self.archive.copy(path, from)?;
        self.libraries(Command::new("ldd").env("LD_LIBRARY_PATH", also), from)
    }

    /// Adds the files in the folder `from` under the same path, with the libraries that they need.
    pub fn tree(&mut self, from: &Path) -> Result<()> {
        let entries =
            std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
        let mut paths = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.tree(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "so") {
                self.program(&inside(&path), &path)?;
            } else {
                self.archive.copy(&inside(&path), &path)?;
            }
        }
        Ok(())
    }

    fn libraries(&mut self, ldd: &mut Command, of: &Path) -> Result<()> {
        for library in libraries(ldd, of)? {
            let path = match LOADER_FOLDERS.iter().any(|at| library.starts_with(at)) {
                true => inside(&library),
                // Where the guest's loader looks too.
                false => {
                    let name = library.file_name().unwrap_or_default();
                    format!("usr/lib/x86_64-linux-gnu/{}", name.to_string_lossy())
                }
            };
            if !self.archive.has(&path) {
                self.archive.copy(&path, &library)?;
            }
        }
        Ok(())
    }

    /// Adds a file of this text.
    pub fn text(&mut self, path: &str, content: &str) -> Result<()> {
        self.archive.file(path, 0o644, content.as_bytes())
    }

    /// Adds the script that `init` runs.
    pub fn script(&mut self, from: &Path) -> Result<()> {
        self.archive.copy("case.sh", from)
    }

    /// Writes the archive to `path`.
    pub fn write(mut self, path: &Path) -> Result<()> {
        let order = std::mem::take(&mut self.load_order);
        self.archive
            .file("lib/modules/order", 0o644, order.as_bytes())?;
        std::fs::write(path, self.archive.finish()?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The file that the shell would run for `program`.
pub fn in_path(program: &str) -> Result<PathBuf> {
    which::which(program)
        .or_else(|_| which::which_in(program, Some("/sbin:/usr/sbin"), "/"))
        .with_context(|| format!("no program '{program}' in PATH"))
}

/// A path of this machine as one in the archive.
fn inside(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.trim_start_matches('/').to_owned()
}

/// The shared libraries of an ELF file, its loader among them; none for a static one.
fn libraries(ldd: &mut Command, file: &Path) -> Result<Vec<PathBuf>> {
    let Ok(text) = debs::output(ldd.arg(file)) else {
        return Ok(Vec::new()); // `ldd` fails for static programs and for files that are none
    };
    ensure!(
        !text.contains("not found"),
        "{} lacks libraries:\n{text}",
        file.display()
    );
    Ok(library_paths(&text))
}

/// Paths in the output of `ldd`: `libc.so.6 => /lib/libc.so.6 (0x…)` or `/lib64/ld.so (0x…)`.
fn library_paths(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.rsplit_once(" => ").map_or(line, |(_, path)| path);
        let path = line.trim().split(" (").next().unwrap_or_default();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_names_libraries_and_the_loader_but_no_file_for_the_vdso() {
        let check = |text: &str, expect: &[&str]| {
            let expect: Vec<PathBuf> = expect.iter().map(PathBuf::from).collect();
            assert_eq!(library_paths(text), expect, "{text}");
        };
        check("\tlinux-vdso.so.1 (0x00007ffd)\n", &[]);
        check(
            "\tlibz.so.1 => /lib/x/libz.so.1 (0x7f)\n",
            &["/lib/x/libz.so.1"],
        );
        check(
            "\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n",
            &["/lib64/ld-linux-x86-64.so.2"],
        );
        check("\tstatically linked\n", &[]);
    }
}
