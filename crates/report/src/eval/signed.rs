//! An evaluation as a file that can be told from a changed one.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The text of `eval.json`.
pub fn eval_file(evaluation: &Value) -> String {
    format!("{evaluation:#}\n")
}

/// The SHA-256 of that text.
pub fn eval_hash(evaluation: &Value) -> String {
    file_hash(&eval_file(evaluation))
}

/// The SHA-256 of the text of a file, in hexadecimal digits.
pub fn file_hash(text: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hash_is_that_of_the_file() {
        // printf '{}\n' | sha256sum
        let expect = "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356";
        assert_eq!(eval_hash(&json!({})), expect);
        assert_ne!(eval_hash(&json!({"verdict": "pass"})), expect);
    }
}
