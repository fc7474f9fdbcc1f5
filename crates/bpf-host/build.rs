//! Compiles `bpf/*.bpf.c` into objects that the library embeds. Rebuilt when a file there changes.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// The programs, without `.bpf.c`.
const OBJECTS: [&str; 4] = ["watch", "phases", "interruptions", "empty"];

fn main() -> Result<(), Box<dyn Error>> {
    let sources = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest")?)
        .join("../../bpf")
        .canonicalize()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    for object in OBJECTS {
        let mut builder = SkeletonBuilder::new();
        builder
            .source(sources.join(format!("{object}.bpf.c")))
            .obj(out.join(format!("{object}.bpf.o")))
            .clang_args([
                "-mcpu=v3",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-parameter",
            ]);
        if let Some(clang) = env::var_os("CLANG") {
            builder.clang(clang);
        }
        builder.build()?;
    }
    Ok(())
}
