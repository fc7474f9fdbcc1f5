//! Puts the page into the program, when it was built: `make ui` writes it to ui/dist.

use std::fmt::Write;
use std::path::Path;

const FILES: [&str; 7] = [
    "index.html",
    "app.js",
    "app.css",
    "monitor.html",
    "monitor.js",
    "hits.html",
    "hits.js",
];

fn main() {
    // Asked for now: where this was compiled may be another copy of the source, with another page.
    let source = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where");
    let dist = Path::new(&source).join("../../ui/dist");
    println!("cargo:rerun-if-changed={}", dist.display());
    let mut list = String::new();
    let whole = FILES.iter().all(|name| dist.join(name).is_file());
    for name in FILES.iter().filter(|_| whole) {
        let path = dist.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        let _ = write!(list, "({name:?}, include_bytes!({path:?})), ");
    }
    let code = format!("const FILES: &[(&str, &[u8])] = &[{list}];\n");
    let out = std::env::var("OUT_DIR").expect("cargo says where");
    std::fs::write(Path::new(&out).join("page.rs"), code).expect("there is room");
}
