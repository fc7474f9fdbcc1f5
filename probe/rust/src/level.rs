//! LTTng's log levels.

/// LTTng's log levels, as events carry them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    /// The program cannot go on.
    Emergency = 0,
    /// Something failed.
    Error = 3,
    /// Something may fail.
    Warning = 4,
    /// What a user may want to know.
    Info = 6,
    /// What a programmer may want to know.
    DebugLine = 13,
    /// Everything.
    Debug = 14,
}
