//! Programs that wait for a test.

use std::io::Write as _;
use std::process::Child;

/// Lets a program that waits for its input go on, to its end, which must be a success.
pub fn let_end(mut child: Child) {
    let mut input = child.stdin.take().expect("an input");
    input.write_all(b"x").expect("it reads");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}
