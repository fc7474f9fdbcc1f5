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
    let sources = std::fs::read_dir(probe.join("src")).expect("the probe's sources");
    let sources = sources.map(|entry| entry.expect("a source").path());
    build.files(sources.filter(|path| path.extension().is_some_and(|end| end == "c")));
    build.compile("rtscope_loop");
    println!("cargo:rerun-if-changed=src/looping/npt.c");
    println!("cargo:rerun-if-changed={}", probe.join("src").display());
    println!("cargo:rerun-if-changed={}", probe.join("include").display());
}
