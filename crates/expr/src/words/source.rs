//! What the kernel's filter has of a field.

/// What the kernel has of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name there.
    pub name: String,
    /// What it is there.
    pub kind: Kind,
}

/// What a field is in the kernel's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer; the class says how wide it becomes, after `plus` was added.
    Integer {
        /// Width: 8, 16, 32 or 64.
        bits: u8,
        /// Whether it has a sign.
        signed: bool,
        /// What the field is more than that.
        plus: i64,
    },
    /// A text in so many bytes.
    Text {
        /// Its room.
        size: u32,
    },
    /// A text whose length varies.
    Dynamic,
    /// An address in the memory of a program; the recording has what lies there.
    Address,
    /// Nothing that the kernel's filter compares.
    Other,
}

/// Why the kernel's words cannot say it.
pub(super) type Worded<T> = std::result::Result<T, &'static str>;
