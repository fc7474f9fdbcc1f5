//! Numbers of things, in words.

use diagnosis::Diagnosis;

/// `1 hit`, `2 hits`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    counted_with(count, what, &format!("{what}s"))
}

/// The same for words whose plural has more than an s: `1 class`, `2 classes`.
pub(crate) fn counted_with(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// `2 of 7 late`; where only the longest were looked at, of how many that is.
pub(crate) fn of_late(count: usize, diagnosis: &Diagnosis) -> String {
    let all = diagnosis.activations.len();
    match diagnosis.basis.left_out {
        left_out if left_out > 0 && diagnosis.basis.threshold.is_some() => {
            let late = all as u64 + left_out;
            format!("{count} of the {all} longest of {late} late")
        }
        _ => format!("{count} of {all} late"),
    }
}
