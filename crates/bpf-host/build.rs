//! Compiles `bpf/*.bpf.c` and `bpf/trackers/*.bpf.c` into objects that the library embeds,
//! compressed. Rebuilt when a file there changes. The tables that the programs share with every
//! analysis are written as C from `event`.

use std::env;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libbpf_cargo::SkeletonBuilder;

/// The programs, without `.bpf.c`.
const OBJECTS: [&str; 7] = [
    "watch",
    "phases",
    "interruptions",
    "monitor",
    "syscalls",
    "contexts",
    "empty",
];

/// The examples for those who write BPF of their own: built as they would, for their tests.
const EXAMPLES: [&str; 2] = ["slow_sleeps", "count_culprits"];

/// Where Debian's compilers find the headers of the system that name the machine.
fn system_headers() -> Option<PathBuf> {
    let machine = env::var("CARGO_CFG_TARGET_ARCH").ok()?;
    let folder = PathBuf::from(format!("/usr/include/{machine}-linux-gnu"));
    folder.is_dir().then_some(folder)
}

fn build_example(name: &str, sources: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let examples = sources.join("../examples/bpf");
    println!("cargo::rerun-if-changed={}", examples.display());
    let mut builder = SkeletonBuilder::new();
    let mut arguments = vec!["-Wall".into(), "-Wextra".into(), "-Werror".into()];
    arguments.push("-Wno-unused-parameter".into());
    arguments.push(format!("-I{}", sources.join("include").display()));
    arguments.extend(system_headers().map(|folder| format!("-I{}", folder.display())));
    builder
        .source(examples.join(format!("{name}.bpf.c")))
        .obj(out.join(format!("{name}.bpf.o")))
        .clang_args(arguments);
    if let Some(clang) = env::var_os("CLANG") {
        builder.clang(clang);
    }
    Ok(builder.build()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let sources = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest")?)
        .join("../../bpf")
        .canonicalize()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    std::fs::write(out.join("tables.h"), tables())?;
    std::fs::create_dir_all(out.join("trackers"))?;
    for object in OBJECTS
        .map(str::to_owned)
        .into_iter()
        .chain(trackers(&sources)?)
    {
        let mut builder = SkeletonBuilder::new();
        builder
            .source(sources.join(format!("{object}.bpf.c")))
            .obj(out.join(format!("{object}.bpf.o")))
            .clang_args([
                "-mcpu=v3".into(),
                "-Wall".into(),
                "-Wextra".into(),
                "-Werror".into(),
                "-Wno-unused-parameter".into(),
                format!("-I{}", out.display()),
                // The kernel keeps the lines of the source: the same bytes wherever this is built.
                format!("-ffile-prefix-map={}=bpf", sources.display()),
                format!("-ffile-prefix-map={}=out", out.display()),
                "-ffile-compilation-dir=/rtscope".into(),
            ]);
        if let Some(clang) = env::var_os("CLANG") {
            builder.clang(clang);
        }
        builder.build()?;
        compress(&out.join(format!("{object}.bpf.o")))?;
    }
    for example in EXAMPLES {
        build_example(example, &sources, &out)?;
    }
    Ok(())
}

/// Writes the file once more beside itself, compressed.
fn compress(object: &Path) -> std::io::Result<()> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&std::fs::read(object)?)?;
    std::fs::write(object.with_extension("o.z"), encoder.finish()?)
}

/// Every `trackers/NAME.bpf.c`, without its ending.
fn trackers(sources: &Path) -> std::io::Result<Vec<String>> {
    let mut objects = Vec::new();
    for entry in sources.join("trackers").read_dir()? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if let Some(name) = name.strip_suffix(".bpf.c") {
            objects.push(format!("trackers/{name}"));
        }
    }
    objects.sort();
    Ok(objects)
}

/// `tables.h`: `RTS_VECTORS(X)` is an `X(event, number)` for each vector, `RTS_PASSING_THREADS(X)`
/// an `X(prefix)` for each kind of kernel threads that only pass work on.
fn tables() -> String {
    let list = |name: &str, items: Vec<String>| {
        let items: String = items
            .iter()
            .map(|item| format!(" \\\n\tX({item})"))
            .collect();
        format!("#define {name}(X){items}\n")
    };
    let vectors = event::vectors::VECTORS.iter();
    let vectors = vectors.map(|vector| format!("{}, {}", vector.event, vector.number));
    let threads = event::kernel_threads::KERNEL_THREADS.iter();
    let passing = threads.filter(|threads| threads.passes_work_on);
    let passing = passing.map(|threads| format!("{:?}", threads.prefix));
    list("RTS_VECTORS", vectors.collect()) + &list("RTS_PASSING_THREADS", passing.collect())
}
