//! Places at which a trace does not say what happened.

/// "1 place", "2 places".
pub fn places(count: u64) -> String {
    match count {
        1 => "1 place".to_owned(),
        count => format!("{count} places"),
    }
}
