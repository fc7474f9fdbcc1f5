//! What a shared library exports, held against a list that is kept: programs were linked with it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Compares what `library` exports, and `headers` declare, with the list
/// `packaging/abi/NAME.symbols`. `RTSCOPE_BLESS=1` writes the list. What no header declares is
/// nobody's but the library's.
///
/// # Panics
/// When they differ, with what that means; when the library cannot be read.
pub fn check_exported(library: &Path, name: &str, headers: &str) {
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library)
        .output()
        .expect("nm starts");
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).expect("utf-8");
    let found: BTreeSet<_> = printed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|symbol| is_declared(headers, symbol))
        .collect();
    let list = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/abi")
        .join(format!("{name}.symbols"));
    if std::env::var_os("RTSCOPE_BLESS").is_some() {
        let text: String = found.iter().map(|symbol| format!("{symbol}\n")).collect();
        std::fs::write(&list, text).expect("the list");
    }
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let known: BTreeSet<_> = text.lines().collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "programs that were linked with {name} may need {gone:?}: keep them, or raise its version"
    );
    let new: Vec<_> = found.difference(&known).collect();
    assert!(
        new.is_empty(),
        "{name} exports {new:?}: promise them in {}, or hide them",
        list.display()
    );
}

/// Whether `headers` have the whole name.
fn is_declared(headers: &str, symbol: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    headers
        .split(|letter| !is_name(letter))
        .any(|word| word == symbol)
}
