//! Programs with our events in them, built for a test and run with rings of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How a program is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Traced<'a> {
    /// The compiler.
    pub compiler: &'a str,
    /// Its flags, before the sources.
    pub flags: &'a [&'a str],
    /// The program's text; C, or C++ when the compiler is one.
    pub source: &'a str,
}

impl<'a> Traced<'a> {
    /// `source` by `cc`, optimised.
    pub fn c(source: &'a str) -> Self {
        Traced {
            compiler: "cc",
            flags: &["-O2", "-std=gnu11"],
            source,
        }
    }
}

/// Builds a program together with the probe below `folder`, under the name `name`.
///
/// # Panics
/// When the compiler is not there, fails or warns.
pub fn build_traced(folder: &Path, name: &str, program: Traced<'_>) -> PathBuf {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let folder = folder.join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the program");
    let include = format!("-I{}", probe.join("include").display());
    let mut objects = Vec::new();
    for source in sources(&probe) {
        let name = source.file_stem().expect("a name");
        let object = folder.join(name).with_extension("o");
        let mut compile = Command::new("cc");
        compile.args([
            "-O2",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ]);
        compile.arg(&include).arg("-c").arg("-o").arg(&object);
        run(compile.arg(source));
        objects.push(object);
    }
    let cpp = program.compiler.ends_with("++");
    let source = folder.join(if cpp { "main.cpp" } else { "main.c" });
    std::fs::write(&source, program.source).expect("the program's text");
    let output = folder.join(name);
    let mut link = Command::new(program.compiler);
    link.args(program.flags)
        .args(["-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg(&include)
        .arg("-o")
        .arg(&output);
    run(link.arg(&source).args(&objects));
    output
}

/// The library's files.
fn sources(probe: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(probe.join("src")).expect("the probe's sources");
    let paths = entries.map(|entry| entry.expect("a name").path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .collect()
}

fn run(command: &mut Command) {
    let done = command.output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}:\n{said}");
}
