//! Numbers of an evaluation's object as they are shown.

use serde_json::Value;

/// A number of the object in microseconds, with a decimal; `–` for what is not known.
pub(super) fn us(value: &Value) -> String {
    value
        .as_f64()
        .map_or("–".to_owned(), |ns| format!("{:.1}", ns / 1000.0))
}
