//! Folders of tables by value, as DuckDB and Spark read them: `KEY=VALUE`.

/// A partition's value: all but letters, digits, `_`, `-` and `.` as `%3A`, which readers undo.
pub fn partition_value(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'_' | b'-' | b'.' => text.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_called_so_that_readers_undo_it() {
        assert_eq!(partition_value("ust:loop"), "ust%3Aloop");
        assert_eq!(partition_value("../a b"), "..%2Fa%20b");
    }
}
