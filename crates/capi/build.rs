//! Names the library by the version of its interface, so that an older one is not loaded for it.

/// `ABI_VERSION` in `src/error.rs`; a test compares them.
const ABI_VERSION: u32 = 1;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librtscope.so.{ABI_VERSION}");
}
