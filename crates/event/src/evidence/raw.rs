//! The payloads of `bpf/event.h` as Rust sees them: same names, same order, same bytes.
//!
//! Each kind of records declares its own beside what it means. Fields are read one behind the
//! other, so that padding is spelt out; `abi`'s test compares each offset with a C compiler's.

use super::stack::{Stack as Frames, unnamed};
use super::task::TaskRef;
use crate::{Prio, Tid, plain_text};

/// `RTS_COMM_LENGTH`.
pub const COMM_LENGTH: usize = 16;
/// `RTS_STACK_MAX`.
pub const STACK_MAX: usize = 32;

/// Plain numbers that are read from the front of a record's bytes.
pub(super) trait Plain: Sized {
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! plain_number {
    ($($ty:ty)*) => { $(
        impl Plain for $ty {
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (taken, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(<$ty>::from_ne_bytes(*taken))
            }
        }
    )* };
}
plain_number!(u8 u32 i32 u64);

impl<T: Plain, const COUNT: usize> Plain for [T; COUNT] {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let taken: Vec<T> = (0..COUNT).map_while(|_| T::take(bytes)).collect();
        taken.try_into().ok()
    }
}

/// Declares the mirror of a C structure, and what a C compiler must say of it.
macro_rules! mirror {
    ($(#[$about:meta])* $name:ident = $c:literal { $($field:ident: $ty:ty,)* }) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "bpf/event.h documents every field once")]
        pub struct $name { $(pub $field: $ty,)* }

        impl $crate::evidence::raw::Plain for $name {
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: $crate::evidence::raw::Plain::take(bytes)?,)* })
            }
        }

        impl $name {
            /// C expressions, and the number that each must have.
            pub fn layout() -> Vec<(String, usize)> {
                vec![
                    (format!("sizeof(struct {})", $c), size_of::<$name>()),
                    $((
                        format!("__builtin_offsetof(struct {}, {})", $c, stringify!($field)),
                        std::mem::offset_of!($name, $field),
                    ),)*
                ]
            }
        }
    };
}
pub(super) use mirror;

mirror! {
    /// `struct rts_stack`.
    Stack = "rts_stack" {
        length: u32,
        padding: u32,
        frames: [u64; STACK_MAX],
    }
}

mirror! {
    /// `struct rts_task`.
    Task = "rts_task" {
        tid: i32,
        prio: i32,
        comm: [u8; COMM_LENGTH],
    }
}

impl Stack {
    /// The frames that it says it has, at most those that it can have.
    pub fn frames(&self) -> Frames {
        unnamed(&self.frames[..(self.length as usize).min(STACK_MAX)])
    }
}

impl Task {
    /// The task; none when it names none.
    pub fn named(&self) -> Option<TaskRef> {
        let length = self.comm.iter().position(|byte| *byte == 0);
        let comm = &self.comm[..length.unwrap_or(COMM_LENGTH)];
        let named = TaskRef {
            tid: Tid(self.tid),
            comm: plain_text(comm),
            prio: Prio::from_lttng(self.prio),
        };
        (self.tid >= 0).then_some(named)
    }
}
