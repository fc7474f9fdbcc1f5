//! Builds the C library that the macros call.

fn main() {
    // Links to the library's folders; in the published crate they are its files.
    let probe = std::path::Path::new("c");
    let sources = std::fs::read_dir(probe.join("src")).expect("the library's sources");
    let sources = sources.map(|entry| entry.expect("a source").path());
    cc::Build::new()
        .std("c11")
        .opt_level(2)
        .include(probe.join("include"))
        .files(sources.filter(|path| path.extension().is_some_and(|end| end == "c")))
        .compile("rtscope_probe");
    for folder in ["src", "include"] {
        let path = probe.join(folder);
        println!("cargo:rerun-if-changed={}", path.display());
    }
}
