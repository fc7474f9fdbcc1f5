//! Names of addresses in the code of programs and libraries: function, file and line.
//!
//! # How to use it
//! [`UserSymbols::read`] takes the maps of all processes out of a trace: LTTng's statedump of its
//! applications, which our recordings have too. [`UserSymbols::place`] then says what lies at an
//! address of a process at an instant. Analyses, which open no files, get it as a function from
//! their caller.
//!
//! # Design constraints
//! - An address has a name only where the file on this disk is the one that was traced: by its
//!   build id, where it has one. What stands in the way is said once for each file
//!   ([`UserSymbols::problems`]).
//! - Of several objects that lay at an address one after the other, the one of that time counts.

mod callers;
mod demangle;
mod elf;
mod instructions;
mod maps;
mod mark;
mod places;
mod resolver;

pub use callers::{CodeFiles, FoundAt, KERNEL_PAGE, LoadedCode};
pub use elf::{build_id, build_id_of};
pub use instructions::Instruction;
pub use maps::{Binary, Mapped, ProcessMaps};
pub use mark::{Argument, Operand, Register, WrittenArgument};
pub use places::{Function, Marker, Places};
pub use resolver::{CodePlace, UserSymbols};
