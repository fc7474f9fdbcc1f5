//! Instructions of BPF, and labels to jump to (the kernel's
//! `Documentation/bpf/standardization/instruction-set.rst`).

/// Result of helpers and of each value.
pub(super) const R0: u8 = 0;
/// The other side of an operation, and a helper's first argument.
pub(super) const R1: u8 = 1;
pub(super) const R2: u8 = 2;
pub(super) const R3: u8 = 3;
/// The record: stays.
pub(super) const RECORD: u8 = 6;
/// The frame: stays.
pub(super) const FRAME: u8 = 7;

const CLASS_LDX: u8 = 0x01;
const CLASS_STX: u8 = 0x03;
const CLASS_JMP: u8 = 0x05;
const CLASS_JMP32: u8 = 0x06;
const CLASS_ALU64: u8 = 0x07;
const MODE_MEMORY: u8 = 0x60;
const BY_REGISTER: u8 = 0x08;

/// Operations of arithmetic, as the instruction set numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Neg = 0x80,
    Mod = 0x90,
    Xor = 0xa0,
    Mov = 0xb0,
    Arsh = 0xc0,
}

/// Conditions of jumps; without a sign unless they begin with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Jump {
    Equal = 0x10,
    Greater = 0x20,
    GreaterEqual = 0x30,
    NotEqual = 0x50,
    SignedGreater = 0x60,
    SignedGreaterEqual = 0x70,
    Less = 0xa0,
    LessEqual = 0xb0,
    SignedLess = 0xc0,
    SignedLessEqual = 0xd0,
}

const ALWAYS: u8 = 0x00;
const CALL: u8 = 0x80;

/// A place in the code that is known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Code that grows.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<u64>,
    /// Where each label is, once it is placed.
    places: Vec<Option<usize>>,
    /// Jumps, and where they lead.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// What comes next is where `label` leads.
    pub fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.code.len());
    }

    fn push(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        self.code.push(
            u64::from(opcode)
                | u64::from(to) << 8
                | u64::from(from) << 12
                | u64::from(offset as u16) << 16
                | u64::from(immediate as u32) << 32,
        );
    }

    /// `to = to OP from`, in 64 bits.
    pub fn alu(&mut self, op: Alu, to: u8, from: u8) {
        self.push(CLASS_ALU64 | BY_REGISTER | op as u8, to, from, 0, 0);
    }

    /// `to = to OP value`, in 64 bits; the value keeps its sign.
    pub fn alu_by(&mut self, op: Alu, to: u8, value: i32) {
        self.push(CLASS_ALU64 | op as u8, to, 0, 0, value);
    }

    /// `to = -to`
    pub fn negate(&mut self, to: u8) {
        self.alu_by(Alu::Neg, to, 0);
    }

    /// `to = value`, without the instruction of two words, which no place may cut in half.
    pub fn constant(&mut self, to: u8, value: u64) {
        if let Ok(short) = i32::try_from(value as i64) {
            return self.alu_by(Alu::Mov, to, short);
        }
        // The low half is added in two parts, which have no sign.
        let (high, low) = ((value >> 32) as i32, value as u32);
        self.alu_by(Alu::Mov, to, high);
        self.alu_by(Alu::Lsh, to, 16);
        self.alu_by(Alu::Or, to, (low >> 16) as i32);
        self.alu_by(Alu::Lsh, to, 16);
        self.alu_by(Alu::Or, to, (low & 0xffff) as i32);
    }

    /// `to = *(base + at)`, so many bytes without a sign.
    pub fn load(&mut self, to: u8, base: u8, at: i16, bytes: u8) {
        let size = size_bits(bytes);
        self.push(CLASS_LDX | MODE_MEMORY | size, to, base, at, 0);
    }

    /// `*(base + at) = from`, eight bytes.
    pub fn store(&mut self, base: u8, at: i16, from: u8) {
        self.push(CLASS_STX | MODE_MEMORY | size_bits(8), base, from, at, 0);
    }

    pub fn call(&mut self, helper: i32) {
        self.push(CLASS_JMP | CALL, 0, 0, 0, helper);
    }

    pub fn goto(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP | ALWAYS, 0, 0, 0, 0);
    }

    /// Jumps when `left` and `right` compare so.
    pub fn branch(&mut self, jump: Jump, left: u8, right: u8, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP | BY_REGISTER | jump as u8, left, right, 0, 0);
    }

    /// The same with a number, which keeps its sign.
    pub fn branch_by(&mut self, jump: Jump, left: u8, right: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP | jump as u8, left, 0, 0, right);
    }

    /// The same with the lower halves.
    pub fn branch_half(&mut self, jump: Jump, left: u8, right: u32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP32 | jump as u8, left, 0, 0, right as i32);
    }

    /// The code, with all jumps led to their places and without what nobody reaches, which the
    /// kernel refuses; none when a jump leads too far.
    pub fn finish(self) -> Option<Vec<u64>> {
        let length = self.code.len();
        let mut leads: Vec<Option<usize>> = vec![None; length];
        for (at, label) in &self.jumps {
            leads[*at] = Some(self.places[label.0]?);
        }
        let reached = self.reached(&leads);
        let mut moved = vec![0; length + 1];
        for at in 0..length {
            moved[at + 1] = moved[at] + usize::from(reached[at]);
        }
        let mut code = Vec::new();
        for at in (0..length).filter(|at| reached[*at]) {
            let mut instruction = self.code[at];
            if let Some(place) = leads[at] {
                let distance = moved[place] as i64 - moved[at] as i64 - 1;
                let distance = i16::try_from(distance).ok()?;
                instruction |= u64::from(distance as u16) << 16;
            }
            code.push(instruction);
        }
        Some(code)
    }

    fn reached(&self, leads: &[Option<usize>]) -> Vec<bool> {
        const GOTO: u8 = CLASS_JMP | ALWAYS;
        let mut reached = vec![false; self.code.len()];
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            // The end is no instruction.
            if at >= reached.len() || reached[at] {
                continue;
            }
            reached[at] = true;
            open.extend(leads[at]);
            if self.code[at] as u8 != GOTO {
                open.push(at + 1);
            }
        }
        reached
    }
}

fn size_bits(bytes: u8) -> u8 {
    match bytes {
        1 => 0x10,
        2 => 0x08,
        4 => 0x00,
        _ => 0x18,
    }
}
