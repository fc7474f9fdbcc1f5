//! What the library exports is what `packaging/abi` promises.

const HEADER: &str = include_str!("../include/rtscope.h");

#[test]
fn the_library_exports_what_is_promised() {
    let built = std::env::current_exe()
        .expect("this test")
        .with_file_name("librtscope.so");
    testkit::check_exported(&built, "librtscope.so.1", HEADER);
}
