//! The filters that traced processes evaluate (`probe/include/rtscope/filter.h`) as Rust sees them.
//!
//! `tests/rings_layout.rs` compares them with what a C compiler says.

#![allow(missing_docs, reason = "filter.h documents every field once")]

pub const INSTRUCTIONS_MAX: usize = 512;
pub const REGISTERS: u8 = 8;

pub const PASS: u8 = 1;
pub const DROP: u8 = 2;
pub const PLACE: u8 = 3;
pub const SKIP: u8 = 4;
pub const SKIP_COUNTED: u8 = 5;
pub const LOAD: u8 = 6;
pub const INTEGER: u8 = 7;
pub const FLOAT: u8 = 8;
pub const FACT: u8 = 9;
pub const UNARY: u8 = 10;
pub const BINARY: u8 = 11;
pub const TEXT: u8 = 12;
pub const IF_COMPARE: u8 = 13;
pub const IF_NOT_ZERO: u8 = 14;
pub const IF_VALUE: u8 = 15;
pub const IF_TEXT: u8 = 16;
pub const IF_LIKE: u8 = 17;

pub const EQUAL: u8 = 0;
pub const NOT_EQUAL: u8 = 1;
pub const LESS: u8 = 2;
pub const LESS_EQUAL: u8 = 3;
pub const GREATER: u8 = 4;
pub const GREATER_EQUAL: u8 = 5;

pub const ADD: u8 = 0;
pub const SUBTRACT: u8 = 1;
pub const MULTIPLY: u8 = 2;
pub const DIVIDE: u8 = 3;
pub const REMAINDER: u8 = 4;
pub const AND: u8 = 5;
pub const OR: u8 = 6;
pub const XOR: u8 = 7;
pub const SHIFT_LEFT: u8 = 8;
pub const SHIFT_RIGHT: u8 = 9;

pub const ANY: u8 = 0;
pub const ONE: u8 = 1;
pub const BYTE: u8 = 2;
pub const SET: u8 = 3;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub instructions_length: u32,
    pub constants_bytes: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    pub op: u8,
    pub a: u8,
    pub b: u8,
    pub c: u8,
    pub target: u32,
    pub value: u64,
}

impl Instruction {
    /// As it lies in shared memory.
    pub fn bytes(&self) -> [u8; size_of::<Instruction>()] {
        let mut bytes = [0; size_of::<Instruction>()];
        bytes[..4].copy_from_slice(&[self.op, self.a, self.b, self.c]);
        bytes[4..8].copy_from_slice(&self.target.to_le_bytes());
        bytes[8..].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }
}
