//! A machine for the instructions that filters become, as strict as the kernel where it matters: no
//! load outside of its memory or beside its alignment, no jump back, nothing that is never reached.

pub const FRAME_BYTES: usize = 144;

const RECORD: u64 = 1 << 40;
const FRAME: u64 = 2 << 40;

pub struct Machine<'a> {
    pub record: &'a [u8],
    pub frame: [u8; FRAME_BYTES],
    pub cpu: u32,
    pub tid: i32,
    pub procname: &'a [u8],
}

struct Instruction {
    opcode: u8,
    to: usize,
    from: usize,
    offset: i16,
    value: i32,
}

fn decode(word: u64) -> Instruction {
    Instruction {
        opcode: word as u8,
        to: (word >> 8 & 15) as usize,
        from: (word >> 12 & 15) as usize,
        offset: (word >> 16) as i16,
        value: (word >> 32) as i32,
    }
}

impl Machine<'_> {
    pub fn run(&mut self, code: &[u64]) -> u64 {
        let mut registers: [Option<u64>; 11] = [None; 11];
        (registers[1], registers[2]) = (Some(RECORD), Some(FRAME));
        let mut at = 0;
        while at < code.len() {
            let word = decode(code[at]);
            at += 1;
            match word.opcode & 7 {
                1 => registers[word.to] = Some(self.load(&word, set(registers[word.from]))),
                3 => self.store(&word, set(registers[word.to]), set(registers[word.from])),
                7 => {
                    let by = match word.opcode & 8 {
                        0 => i64::from(word.value) as u64,
                        _ => set(registers[word.from]),
                    };
                    registers[word.to] = Some(alu(word.opcode, registers[word.to], by));
                }
                5 if word.opcode == 0x85 => {
                    let result = self.call(word.value, &registers);
                    registers[0] = Some(result);
                    registers[1..6].fill(None);
                }
                5 | 6 if takes(&word, &registers) => {
                    assert!(word.offset >= 0, "it jumps back");
                    at += word.offset as usize;
                }
                5 | 6 => {}
                other => panic!("no such class: {other}"),
            }
        }
        assert_eq!(at, code.len(), "it jumps beyond its end");
        set(registers[0])
    }

    fn bytes(&self, address: u64, size: usize) -> &[u8] {
        let (memory, base) = match address >= FRAME {
            true => (&self.frame[..], FRAME),
            false => (self.record, RECORD),
        };
        let at = (address - base) as usize;
        assert!(at.is_multiple_of(size), "{at} is not aligned to {size}");
        assert!(base == FRAME || at >= 8, "the first bytes are hidden");
        &memory[at..at + size]
    }

    fn load(&self, word: &Instruction, base: u64) -> u64 {
        let size = size(word.opcode);
        let bytes = self.bytes(base.wrapping_add_signed(word.offset.into()), size);
        let mut whole = [0; 8];
        whole[..size].copy_from_slice(bytes);
        u64::from_le_bytes(whole)
    }

    fn store(&mut self, word: &Instruction, base: u64, value: u64) {
        assert_eq!(size(word.opcode), 8);
        let at = (base - FRAME) as usize + word.offset as usize;
        self.frame[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn call(&mut self, helper: i32, registers: &[Option<u64>; 11]) -> u64 {
        let place = |register: usize| (set(registers[register]) - FRAME) as usize;
        match helper {
            8 => self.cpu.into(),
            14 => 0xabcd << 32 | u64::from(self.tid as u32),
            16 => {
                let (at, size) = (place(1), set(registers[2]) as usize);
                self.frame[at..at + size].fill(0);
                self.frame[at..at + self.procname.len()].copy_from_slice(self.procname);
                0
            }
            115 => {
                let (at, size) = (place(1), set(registers[2]) as usize);
                let from = (set(registers[3]) - RECORD) as usize;
                let text = self.record[from..].iter().take_while(|byte| **byte != 0);
                let text: Vec<u8> = text.copied().take(size - 1).collect();
                // What is behind it stays as it was.
                self.frame[at..at + text.len()].copy_from_slice(&text);
                self.frame[at + text.len()] = 0;
                text.len() as u64 + 1
            }
            other => panic!("no such helper: {other}"),
        }
    }
}

fn set(register: Option<u64>) -> u64 {
    register.expect("a register that was written")
}

fn size(opcode: u8) -> usize {
    match opcode & 0x18 {
        0x10 => 1,
        0x08 => 2,
        0x00 => 4,
        _ => 8,
    }
}

fn alu(opcode: u8, to: Option<u64>, by: u64) -> u64 {
    if opcode & 0xf0 == 0xb0 {
        return by;
    }
    let to = set(to);
    match opcode & 0xf0 {
        0x00 => to.wrapping_add(by),
        0x10 => to.wrapping_sub(by),
        0x20 => to.wrapping_mul(by),
        0x30 => to.checked_div(by).expect("the code asks before it divides"),
        0x40 => to | by,
        0x50 => to & by,
        0x60 => to << shift(by),
        0x70 => to >> shift(by),
        0x80 => to.wrapping_neg(),
        0x90 => to.checked_rem(by).expect("the code asks before it divides"),
        0xa0 => to ^ by,
        0xc0 => ((to as i64) >> shift(by)) as u64,
        other => panic!("no such operation: {other:#x}"),
    }
}

fn shift(by: u64) -> u32 {
    assert!(by < 64, "the code asks before it shifts");
    by as u32
}

fn takes(word: &Instruction, registers: &[Option<u64>; 11]) -> bool {
    if word.opcode == 0x05 {
        return true;
    }
    let left = set(registers[word.to]);
    let right = match word.opcode & 8 {
        0 => i64::from(word.value) as u64,
        _ => set(registers[word.from]),
    };
    if word.opcode & 7 == 6 {
        let (left, right) = (left as u32, right as u32);
        return match word.opcode & 0xf0 {
            0x10 => left == right,
            0x50 => left != right,
            other => panic!("no such condition: {other:#x}"),
        };
    }
    match word.opcode & 0xf0 {
        0x10 => left == right,
        0x20 => left > right,
        0x30 => left >= right,
        0x50 => left != right,
        0x60 => left as i64 > right as i64,
        0x70 => left as i64 >= right as i64,
        0xa0 => left < right,
        0xb0 => left <= right,
        0xc0 => (left as i64) < right as i64,
        0xd0 => left as i64 <= right as i64,
        other => panic!("no such condition: {other:#x}"),
    }
}
