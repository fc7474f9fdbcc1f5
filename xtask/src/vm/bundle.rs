//! Devices that a case can ask for, each with the drivers, programs and files that go with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::image::{Image, in_path};
use super::modules::Modules;
use super::{cache, debs};
use crate::run;

/// A word in the column `needs`.
pub struct Bundle {
    name: &'static str,
    /// Arguments of the emulator.
    pub qemu: &'static [&'static str],
    modules: &'static [&'static str],
    /// Programs of this machine.
    programs: &'static [&'static str],
    /// Folders of this machine, with the libraries that their files need.
    trees: &'static [&'static str],
    /// Programs and libraries of this machine that others look for at their own places.
    places: &'static [&'static str],
    /// Whether npt's loop with LTTng-UST's tracepoint is compiled for it.
    lttng_loop: bool,
    /// The Debian packages that bring programs and folders.
    from: &'static str,
    /// A Debian package that is unpacked without being installed: its daemon must not run here.
    package: Option<Package>,
}

struct Package {
    name: &'static str,
    /// How the names of its libraries' packages begin.
    libraries: &'static [&'static str],
    /// Its program, below its root.
    program: &'static str,
}

const BUNDLES: &[Bundle] = &[
    Bundle {
        name: "sound",
        // A period of 1 ms: with the usual 10 ms the card itself is late now and then.
        qemu: &[
            "-audiodev",
            "none,id=sound,timer-period=1000",
            "-device",
            "intel-hda",
            "-device",
            "hda-duplex,audiodev=sound",
        ],
        modules: &["snd_hda_intel", "snd_hda_codec_generic"],
        programs: &["jackd"],
        trees: &["/usr/lib/x86_64-linux-gnu/jack", "/usr/share/alsa"],
        places: &[],
        lttng_loop: false,
        from: "jackd2 libasound2-data",
        package: None,
    },
    Bundle {
        name: "network",
        // Two cards on one cable. This model hands a packet over within the write to its register,
        // so that in virtual time the host has no part in it.
        qemu: &[
            "-netdev",
            "hubport,id=near,hubid=0",
            "-device",
            "e1000e,netdev=near,mac=52:54:00:00:00:01,romfile=",
            "-netdev",
            "hubport,id=far,hubid=0",
            "-device",
            "e1000e,netdev=far,mac=52:54:00:00:00:02,romfile=",
        ],
        modules: &["e1000e"],
        programs: &["ip"],
        trees: &[],
        places: &[],
        lttng_loop: false,
        from: "iproute2",
        package: Some(Package {
            name: "memcached",
            libraries: &["libevent-2", "libsasl2-2"],
            program: "usr/bin/memcached",
        }),
    },
    Bundle {
        name: "lttng",
        qemu: &[],
        modules: &[],
        programs: &["lttng", "lttng-sessiond"],
        trees: &["/usr/share/xml/lttng"],
        places: &[
            "/usr/lib/x86_64-linux-gnu/lttng/libexec/lttng-consumerd",
            "/usr/lib/x86_64-linux-gnu/liblttng-ust-tracepoint.so.1",
        ],
        lttng_loop: true,
        from: "lttng-tools liblttng-ust-dev",
        package: None,
    },
];
/// Where npt's loop is, below the repository's root, and what it is called in the guest.
const LOOP: &str = "crates/measure/src/looping";
const LOOP_LIBRARY: &str = "root/npt_lttng.so";

/// The bundle called `name`.
pub fn by_name(name: &str) -> Option<&'static Bundle> {
    BUNDLES.iter().find(|bundle| bundle.name == name)
}

impl Bundle {
    /// What this machine lacks for it, and the way out.
    pub fn lack(&self) -> Option<String> {
        let program = self
            .programs
            .iter()
            .find(|program| in_path(program).is_err());
        let tree = self.trees.iter().find(|tree| !Path::new(tree).is_dir());
        let place = self.places.iter().find(|place| !Path::new(place).is_file());
        program.or(tree).or(place).map(|missing| {
            let package = self.from;
            format!("no {missing} here; fix: apt-get install {package}")
        })
    }

    /// Puts drivers, programs and files into `image`; what is built goes to `artefacts`.
    pub fn install(
        &self,
        image: &mut Image,
        modules: &Modules,
        (repository, artefacts): (&Path, &Path),
    ) -> Result<()> {
        for (name, content) in modules.closure(self.modules)? {
            image.module(&name, &content)?;
        }
        for program in self.programs {
            image.program(&format!("bin/{program}"), &in_path(program)?)?;
        }
        for tree in self.trees {
            image.tree(Path::new(tree))?;
        }
        for place in self.places {
            image.program(place.trim_start_matches('/'), Path::new(place))?;
        }
        if self.lttng_loop {
            image.program(LOOP_LIBRARY, &lttng_loop(repository, artefacts)?)?;
        }
        if let Some(package) = &self.package {
            let root = package.fetch()?;
            let name = package.program.rsplit('/').next().unwrap_or_default();
            let libraries = root.join("usr/lib/x86_64-linux-gnu");
            let program = root.join(package.program);
            image.program_with(&format!("bin/{name}"), &program, &libraries)?;
        }
        Ok(())
    }
}

/// Compiles npt's loop with LTTng-UST's tracepoint: guests have no compiler.
fn lttng_loop(repository: &Path, artefacts: &Path) -> Result<PathBuf> {
    let (sources, library) = (repository.join(LOOP), artefacts.join("npt_lttng.so"));
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-shared", "-fPIC", "-DRTSCOPE_LOOP_LTTNG", "-I"]);
    compile.arg(&sources).arg("-o").arg(&library);
    compile.arg(sources.join("npt.c"));
    run::must_succeed(compile.args(["-llttng-ust", "-ldl"]))?;
    Ok(library)
}

impl Package {
    /// The folder into which the package and its libraries are unpacked, once.
    fn fetch(&self) -> Result<PathBuf> {
        let folder = cache::folder()?.join("packages").join(self.name);
        if folder.is_dir() {
            return Ok(folder);
        }
        let _held = cache::lock()?;
        cache::fill_once(&folder, |folder| {
            let is_wanted = |name: &str| self.libraries.iter().any(|start| name.starts_with(start));
            let libraries = debs::depends(self.name, is_wanted)?;
            for package in [self.name.to_owned()].iter().chain(&libraries) {
                debs::unpack(package, &folder.join("downloads"), folder)?;
            }
            cache::remove(&folder.join("downloads"))
        })
        .with_context(|| format!("cannot fetch the package {}", self.name))?;
        Ok(folder)
    }
}
