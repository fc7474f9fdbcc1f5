//! Builds the measuring loop together with the probe, whose events it records.

fn main() {
    let probe = std::path::Path::new("../../probe");
    let mut build = cc::Build::new();
    build
        .std("c11")
        .opt_level(2)
        .include(probe.join("include"))
        // Only a loop that is asked for makes rings.
        .define("RTSCOPE_NO_CONSTRUCTOR", None)
        .file("src/looping/npt.c");
    for file in ["file", "register", "sessions", "settings", "write"] {
        build.file(probe.join("src").join(file).with_extension("c"));
    }
    build.compile("rtscope_loop");
    println!("cargo:rerun-if-changed=src/looping/npt.c");
    println!("cargo:rerun-if-changed={}", probe.join("src").display());
    println!("cargo:rerun-if-changed={}", probe.join("include").display());
}
