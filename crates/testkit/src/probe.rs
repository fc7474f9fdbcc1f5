//! Programs with our events in them, built for a test and run with rings of their own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the library is compiled for a program of a test.
const FLAGS: [&str; 6] = [
    "-O2",
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
];

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
    let probe = probe();
    let library = library(&probe);
    let folder = folder.join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the program");
    let cpp = program.compiler.ends_with("++");
    let source = folder.join(if cpp { "main.cpp" } else { "main.c" });
    std::fs::write(&source, program.source).expect("the program's text");
    let output = folder.join(name);
    let mut link = Command::new(program.compiler);
    link.args(program.flags)
        .args(["-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg(include(&probe))
        .arg("-o")
        .arg(&output);
    run(link.arg(&source).args(objects(&library)));
    output
}

fn probe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe")
}

fn include(probe: &Path) -> String {
    format!("-I{}", probe.join("include").display())
}

/// The folder with the probe's objects, beside the test programs. Whoever comes first compiles
/// them: they are the same for every program of every test.
fn library(probe: &Path) -> PathBuf {
    let programs = std::env::current_exe().expect("a test's program");
    let programs = programs.parent().expect("its folder");
    let library = programs.join(format!("probe-{:016x}", fingerprint(probe)));
    if !library.exists() {
        let ours = tempfile::tempdir_in(programs).expect("a folder for the objects");
        compile(probe, ours.path());
        // Somebody else's, if they were faster, is as good.
        if std::fs::rename(ours.path(), &library).is_ok() {
            // Nothing is left there to be removed.
            let _moved = ours.keep();
        }
    }
    library
}

/// Compiles each of the probe's sources into an object in `folder`.
fn compile(probe: &Path, folder: &Path) {
    for source in with_ending(&probe.join("src"), "c") {
        let name = source.file_stem().expect("a name");
        let mut compile = Command::new("cc");
        compile.args(FLAGS).arg(include(probe)).arg("-c").arg("-o");
        compile.arg(folder.join(name).with_extension("o"));
        run(compile.arg(source));
    }
}

/// Tells apart what the objects are made of.
fn fingerprint(probe: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    FLAGS.hash(&mut hash);
    let mut folders = vec![probe.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "c" || end == "h") {
                path.hash(&mut hash);
                std::fs::read(&path).expect("a source").hash(&mut hash);
            }
        }
    }
    hash.finish()
}

fn objects(library: &Path) -> Vec<PathBuf> {
    with_ending(library, "o")
}

fn with_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let paths = entries(folder).into_iter();
    paths
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .collect()
}

/// What a folder has, in one order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of the probe");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a name").path()).collect();
    paths.sort();
    paths
}

fn run(command: &mut Command) {
    let done = command.output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}:\n{said}");
}
