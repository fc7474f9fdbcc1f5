//! Check that declarations drawn at random record what they are given, whoever compiles them:
//! programs under the address and the undefined-behaviour sanitizers, read back and compared with
//! what `docs/format/rings.md` promises. `RTSCOPE_FUZZ_COMBINATIONS` says how many (a
//! program of each compiler without it), `RTSCOPE_FUZZ_SEED` where to begin. A combination is a
//! declaration, its values, and how they were compiled; each is recorded twice, the second time by
//! the long way of a filter.

mod draw;
#[path = "../traced/mod.rs"]
mod traced;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use draw::{Declaration, Random};
use traced::{Event, events, run};

/// Declarations of a program, and values that each of them is given: a compiler takes longer over a
/// declaration than over a call.
const DECLARATIONS: usize = 25;
const VALUES: usize = 8;
const COMPILERS: [&str; 4] = ["gcc", "clang++", "clang", "g++"];
/// Combinations where nobody says how many.
const USUAL: u64 = (COMPILERS.len() * DECLARATIONS * VALUES) as u64;

/// How a program is compiled.
struct Build {
    compiler: &'static str,
    flags: Vec<&'static str>,
}

/// The kinds of builds, by turns.
fn builds(turn: usize, random: &mut Random) -> Build {
    let compiler = COMPILERS[turn % COMPILERS.len()];
    let mut flags = vec![["-O0", "-O1", "-O2", "-O3", "-Os"][random.below(5)]];
    let standards: &[&str] = match compiler.ends_with("++") {
        false => &[
            "-std=c99",
            "-std=gnu99",
            "-std=c11",
            "-std=gnu11",
            "-std=gnu17",
            "-std=c2x",
        ],
        true => &[
            "-std=c++11",
            "-std=gnu++14",
            "-std=c++17",
            "-std=gnu++20",
            "-std=c++2b",
        ],
    };
    flags.push(standards[random.below(standards.len())]);
    let odd = [
        &[][..],
        &["-fPIE", "-pie"],
        &["-fno-pie", "-no-pie"],
        &[
            "-ffunction-sections",
            "-fdata-sections",
            "-Wl,--gc-sections",
        ],
        &["-fpack-struct"],
        &["-fshort-enums", "-funsigned-char"],
        &["-fno-strict-aliasing", "-fomit-frame-pointer"],
        &["-fno-common", "-fstack-protector-all"],
        &["-flto"],
        &["-fPIC", "-mno-red-zone", "-fcf-protection=full"],
        &["-mcmodel=medium"],
    ];
    flags.extend(odd[random.below(odd.len())]);
    Build { compiler, flags }
}

/// The library, compiled once by each compiler of C, and the sanitizers that it has.
struct Library {
    objects: Vec<PathBuf>,
    sanitize: [&'static str; 3],
}

/// That of gcc and g++, or of clang and clang++.
fn library(compiler: &str) -> &'static Library {
    static LIBRARIES: [OnceLock<Library>; 2] = [OnceLock::new(), OnceLock::new()];
    let (place, of_c) = match compiler {
        "gcc" | "g++" => (0, "gcc"),
        _ => (1, "clang"),
    };
    LIBRARIES[place].get_or_init(|| {
        let folder = tmp().join(format!("fuzzed-library-{of_c}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let sanitize = sanitizers(of_c, &folder);
        let sources = std::fs::read_dir(probe().join("src")).expect("the probe's sources");
        let mut sources: Vec<_> = sources.map(|one| one.expect("a name").path()).collect();
        sources.retain(|path| path.extension().is_some_and(|end| end == "c"));
        let mut compile = Command::new(of_c);
        compile
            .args(["-c", "-O1", "-fPIC", "-std=c11"])
            .arg(include());
        done(compile.args(sanitize).args(&sources).current_dir(&folder));
        let objects = sources.iter().map(|path| {
            let name = path.file_name().expect("a name");
            folder.join(name).with_extension("o")
        });
        let objects = objects.collect();
        Library { objects, sanitize }
    })
}

/// The sanitizers of a compiler: distributions keep the library of clang's for addresses apart.
fn sanitizers(compiler: &str, folder: &Path) -> [&'static str; 3] {
    let empty = folder.join("empty.c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").expect("a file");
    let mut link = Command::new(compiler);
    link.args(["-fsanitize=address", "-o"])
        .arg(folder.join("empty"));
    if link
        .arg(empty)
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return [
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-g1",
        ];
    }
    let why = format!("{compiler} has no libclang_rt.asan: install libclang-rt-dev");
    testkit::skip("fuzzed under the address sanitizer", &why);
    // Needs no library.
    [
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
        "-g1",
    ]
}

fn tmp() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn probe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe")
}

fn include() -> String {
    format!("-I{}", probe().join("include").display())
}

fn done(command: &mut Command) {
    let output = command.output().expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}");
}

/// Compiles `source` and links it with the library, under the sanitizers.
fn compile(build: &Build, source: &str, folder: &Path) -> PathBuf {
    let cpp = build.compiler.ends_with("++");
    let main = folder.join(if cpp { "main.cpp" } else { "main.c" });
    std::fs::write(&main, source).expect("the program's text");
    let library = library(build.compiler);
    let program = folder.join("program");
    let mut link = Command::new(build.compiler);
    link.args(&build.flags).args(library.sanitize);
    link.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    link.arg(include()).arg("-o").arg(&program).arg(&main);
    done(link.args(&library.objects).arg("-pthread"));
    program
}

/// Runs the program and gives its events in the order in which they were recorded.
fn record(program: &Path, filtered: bool) -> Vec<Event> {
    let mut variables = vec![("RTSCOPE_EVENTS", "fuzz"), ("RTSCOPE_RING_SIZE", "4M")];
    variables.extend(filtered.then_some(("FILTERED", "1")));
    let (_folder, mut files) = run(program, &variables);
    let mut found = events(&mut files[0]);
    found.sort_by_key(|event| {
        let serial = event.1[0].trim_start_matches("serial=[");
        let bytes = serial.trim_end_matches(']').rsplit(", ");
        let bytes = bytes.map(|byte| byte.parse::<u32>().expect("a byte"));
        bytes.fold(0, |number, byte| number << 8 | byte)
    });
    found
}

fn source(declarations: &[Declaration], calls: &str) -> String {
    let functions: String = declarations.iter().map(Declaration::function).collect();
    format!(
        "{}{functions}{}{calls}return 0;\n}}\n",
        draw::BEGIN,
        draw::MAIN
    )
}

/// One program; returns how many events were compared.
fn one_program(turn: usize, seed: u64) -> usize {
    let mut random = Random::new(seed.wrapping_add(turn as u64));
    let build = builds(turn, &mut random);
    if Command::new(build.compiler)
        .arg("--version")
        .output()
        .is_err()
    {
        testkit::skip("fuzzed", &format!("no {} here", build.compiler));
        return 0;
    }
    let declarations: Vec<_> = (0..DECLARATIONS)
        .map(|number| Declaration::draw(number, &mut random))
        .collect();
    let (mut calls, mut expected) = (String::new(), Vec::new());
    for serial in 0..DECLARATIONS * VALUES {
        let (call, event) = declarations[serial % DECLARATIONS].call(serial as u32, &mut random);
        calls += &call;
        expected.push(event);
    }
    let folder = tmp().join(format!("fuzzed-{seed}-{turn}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = compile(&build, &source(&declarations, &calls), &folder);
    let mut compared = 0;
    for filtered in [false, true] {
        let found = record(&program, filtered);
        assert_eq!(found.len(), expected.len(), "{}", folder.display());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{} {:?}", folder.display(), build.flags);
            compared += 1;
        }
    }
    std::fs::remove_dir_all(folder).expect("removed");
    compared
}

#[test]
fn drawn_declarations_record_what_they_are_given_under_every_compiler() {
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}: a number, not {text}")),
        Err(_) => otherwise,
    };
    let wanted = number("RTSCOPE_FUZZ_COMBINATIONS", USUAL) as usize;
    let seed = number("RTSCOPE_FUZZ_SEED", 17);
    let programs = wanted.div_ceil(DECLARATIONS * VALUES);
    let (next, compared) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= programs {
                break;
            }
            compared.fetch_add(one_program(turn, seed), Ordering::Relaxed);
        }
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cpus).for_each(|_| drop(scope.spawn(work))));
    let compared = compared.into_inner();
    println!(
        "{} combinations of {programs} programs from the seed {seed} on, {compared} events",
        compared / 2
    );
}
