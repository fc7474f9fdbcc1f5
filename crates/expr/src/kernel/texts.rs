//! Texts: bytes of the record, compared where they lie.

use std::collections::{BTreeSet, HashMap};

use super::asm::{Alu, FRAME, Jump, Label, R0, R1, R2, R3, RECORD};
use super::coder::{Coded, Coder, KEY_TEXT_BYTES, Place, Refusal, TEXT_BYTES, Ways, refuse};
use crate::pattern::{GlobPart, Matcher};
use crate::program::{Test, TextLoad};

/// Helpers of the kernel (`include/uapi/linux/bpf.h`).
const GET_CURRENT_COMM: i32 = 16;
const PROBE_READ_KERNEL_STR: i32 = 115;

/// Bytes of a task's name.
const COMM_BYTES: u32 = 16;
/// Patterns look into no longer text: each byte of it is instructions.
const PATTERN_BYTES_MAX: u32 = 32;

/// Bytes that can be looked at.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    base: u8,
    at: i16,
    size: u32,
    /// Longer texts were cut.
    is_cut: bool,
}

const NO_TEXT: Refusal = Refusal {
    what: "this field is no text that it can read",
    fix: "take another field of the event",
};

impl Coder<'_> {
    /// Makes a text something to look at; goes to `missing` when it cannot be read.
    fn bytes(&mut self, text: &TextLoad, missing: Label) -> Coded<Bytes> {
        let place = match text {
            TextLoad::Field(field) => self.layout.places[usize::from(field.0)],
            TextLoad::Procname => {
                self.assembler.alu(Alu::Mov, R1, FRAME);
                let at = self.frame.looked_at;
                self.assembler.alu_by(Alu::Add, R1, i32::from(at));
                self.assembler.constant(R2, u64::from(COMM_BYTES));
                self.assembler.call(GET_CURRENT_COMM);
                return Ok(Bytes {
                    base: FRAME,
                    at,
                    size: COMM_BYTES,
                    is_cut: false,
                });
            }
            TextLoad::Const(_) | TextLoad::Nested(_) => return Err(NO_TEXT),
        };
        if let (Place::Text { at, size }, false) = (place, self.layout.in_frame) {
            return Ok(Bytes {
                base: RECORD,
                at: i16::try_from(at).map_err(|_| NO_TEXT)?,
                size,
                is_cut: false,
            });
        }
        let at = self.frame.looked_at;
        self.read_text(place, at, TEXT_BYTES as u32, missing)?;
        Ok(Bytes {
            base: FRAME,
            at,
            size: TEXT_BYTES as u32,
            is_cut: true,
        })
    }

    /// Copies a text of the record to `to` in the frame, with a zero byte behind it.
    fn read_text(&mut self, place: Place, to: i16, size: u32, missing: Label) -> Coded<()> {
        let asm = &mut self.assembler;
        match place {
            _ if self.layout.in_frame => return Err(NO_TEXT),
            Place::Text { at, .. } => {
                asm.alu(Alu::Mov, R3, RECORD);
                asm.alu_by(Alu::Add, R3, at as i32);
            }
            Place::Dynamic { at, relative } => {
                let word = i16::try_from(at).map_err(|_| NO_TEXT)?;
                asm.load(R0, RECORD, word, 4);
                asm.alu_by(Alu::And, R0, 0xffff);
                if relative {
                    asm.alu_by(Alu::Add, R0, i32::from(word) + 4);
                }
                asm.alu(Alu::Mov, R3, RECORD);
                asm.alu(Alu::Add, R3, R0);
            }
            _ => return Err(NO_TEXT),
        }
        asm.alu(Alu::Mov, R1, FRAME);
        asm.alu_by(Alu::Add, R1, i32::from(to));
        asm.constant(R2, u64::from(size));
        asm.call(PROBE_READ_KERNEL_STR);
        asm.branch_by(Jump::SignedLess, R0, 0, missing);
        Ok(())
    }

    /// Writes the text of a key into the frame.
    pub(super) fn copy_text(&mut self, text: &TextLoad, missing: Label) -> Coded<()> {
        let size = KEY_TEXT_BYTES as u32;
        match text {
            TextLoad::Procname => {
                self.assembler.alu(Alu::Mov, R1, FRAME);
                let at = i32::from(self.frame.text);
                self.assembler.alu_by(Alu::Add, R1, at);
                self.assembler.constant(R2, u64::from(size));
                self.assembler.call(GET_CURRENT_COMM);
                Ok(())
            }
            TextLoad::Field(field) => {
                let place = self.layout.places[usize::from(field.0)];
                // What is shorter has no byte after it that could be copied, too.
                let size = match place {
                    Place::Text { size: own, .. } if own < size => return Err(NO_TEXT),
                    _ => size,
                };
                self.read_text(place, self.frame.text, size, missing)
            }
            _ => Err(NO_TEXT),
        }
    }

    pub(super) fn equal(
        &mut self,
        text: &TextLoad,
        wanted: &[u8],
        is_wanted: bool,
        ways: Ways,
    ) -> Coded<()> {
        let bytes = self.bytes(text, ways.no)?;
        let ways = ways.when(is_wanted);
        let size = bytes.size as usize;
        if bytes.is_cut && wanted.len() + 1 >= size {
            return refuse(
                "the text in double quotes is too long",
                "give the begin of it and a star, as in name == \"abc*\"",
            );
        }
        if wanted.contains(&0) || wanted.len() > size {
            return self.condition(&Test::Const(false), ways);
        }
        let mut whole = wanted.to_vec();
        if whole.len() < size {
            whole.push(0);
        }
        self.run_of(bytes, 0, &whole, ways.no)?;
        self.assembler.goto(ways.yes);
        Ok(())
    }

    /// Goes to `no` unless these bytes lie there; in pieces as large as their place allows.
    fn run_of(&mut self, bytes: Bytes, from: usize, run: &[u8], no: Label) -> Coded<()> {
        let mut done = 0;
        while done < run.len() {
            let at = i32::from(bytes.at) + (from + done) as i32;
            let left = run.len() - done;
            let piece = [4, 2, 1]
                .into_iter()
                .find(|piece| *piece <= left && at % *piece as i32 == 0)
                .unwrap_or(1);
            let mut value = [0; 4];
            value[..piece].copy_from_slice(&run[done..done + piece]);
            let offset = i16::try_from(at).map_err(|_| NO_TEXT)?;
            self.assembler.load(R0, bytes.base, offset, piece as u8);
            let value = u32::from_le_bytes(value);
            self.assembler.branch_half(Jump::NotEqual, R0, value, no);
            done += piece;
        }
        Ok(())
    }

    pub(super) fn matches(
        &mut self,
        text: &TextLoad,
        matcher: &Matcher,
        is_wanted: bool,
        ways: Ways,
    ) -> Coded<()> {
        let Some(parts) = matcher.glob_parts() else {
            return refuse(
                "it has a regular expression",
                "write a shell pattern, as in comm =* \"jack*\"",
            );
        };
        let bytes = self.bytes(text, ways.no)?;
        let ways = ways.when(is_wanted);
        let stars = parts.iter().filter(|part| **part == GlobPart::Any).count();
        let is_prefix = stars == 1 && parts.last() == Some(&GlobPart::Any);
        let too_long = match bytes.is_cut {
            true => (stars > 0 && !is_prefix) || parts.len() + 1 >= TEXT_BYTES,
            false => bytes.size > PATTERN_BYTES_MAX && !is_prefix,
        };
        if too_long {
            return refuse(
                "of a text whose length varies it sees the begin alone",
                "end the pattern with its only star, as in name == \"abc*\", or give all of it",
            );
        }
        Search::new(parts, bytes, ways).code(self)
    }
}

/// A shell pattern against each place of a text: blocks of code, each for a run of the pattern at a
/// place.
struct Search {
    /// What stands between the stars.
    runs: Vec<Vec<GlobPart>>,
    bytes: Bytes,
    ways: Ways,
    /// By place and run.
    blocks: HashMap<(usize, usize), Label>,
    /// Blocks that are asked for and not written yet. Each leads to later ones: no jump leads back.
    open: BTreeSet<(usize, usize)>,
}

impl Search {
    fn new(parts: Vec<GlobPart>, bytes: Bytes, ways: Ways) -> Search {
        let runs = parts.split(|part| *part == GlobPart::Any);
        Search {
            runs: runs.map(<[GlobPart]>::to_vec).collect(),
            bytes,
            ways,
            blocks: HashMap::new(),
            open: BTreeSet::new(),
        }
    }

    fn code(mut self, coder: &mut Coder<'_>) -> Coded<()> {
        let first = self.block(coder, 0, 0);
        coder.assembler.goto(first);
        while let Some((at, run)) = self.open.pop_first() {
            let label = self.blocks[&(at, run)];
            coder.assembler.place(label);
            self.write(coder, run, at)?;
        }
        Ok(())
    }

    /// The block that looks for a run from a place on.
    fn block(&mut self, coder: &mut Coder<'_>, run: usize, at: usize) -> Label {
        let open = &mut self.open;
        *self.blocks.entry((at, run)).or_insert_with(|| {
            open.insert((at, run));
            coder.assembler.label()
        })
    }

    fn write(&mut self, coder: &mut Coder<'_>, run: usize, at: usize) -> Coded<()> {
        let parts = self.runs[run].clone();
        let is_last = run + 1 == self.runs.len();
        // A star is the last part: whatever follows is fine.
        if is_last && run > 0 && parts.is_empty() {
            coder.assembler.goto(self.ways.yes);
            return Ok(());
        }
        let not_here = coder.assembler.label();
        for (place, part) in parts.iter().enumerate() {
            self.part(coder, part, at + place, not_here)?;
        }
        let after = at + parts.len();
        if is_last {
            self.ends(coder, after, not_here)?;
            coder.assembler.goto(self.ways.yes);
        } else {
            let next = self.block(coder, run + 1, after);
            coder.assembler.goto(next);
        }
        coder.assembler.place(not_here);
        // Only a run behind a star may begin later.
        if run == 0 || at >= self.bytes.size as usize {
            coder.assembler.goto(self.ways.no);
            return Ok(());
        }
        self.load(coder, at)?;
        coder.assembler.branch_by(Jump::Equal, R0, 0, self.ways.no);
        let later = self.block(coder, run, at + 1);
        coder.assembler.goto(later);
        Ok(())
    }

    fn load(&self, coder: &mut Coder<'_>, at: usize) -> Coded<()> {
        let offset = i16::try_from(i32::from(self.bytes.at) + at as i32).map_err(|_| NO_TEXT)?;
        coder.assembler.load(R0, self.bytes.base, offset, 1);
        Ok(())
    }

    /// Goes to `no` unless the byte there is one of those that the part takes.
    fn part(&self, coder: &mut Coder<'_>, part: &GlobPart, at: usize, no: Label) -> Coded<()> {
        if at >= self.bytes.size as usize {
            coder.assembler.goto(no);
            return Ok(());
        }
        self.load(coder, at)?;
        let asm = &mut coder.assembler;
        asm.branch_by(Jump::Equal, R0, 0, no);
        match part {
            GlobPart::Byte(byte) => asm.branch_by(Jump::NotEqual, R0, i32::from(*byte), no),
            GlobPart::One | GlobPart::Any => {}
            GlobPart::Set { negated, ranges } => {
                let inside = asm.label();
                let taken = asm.label();
                for (first, last) in ranges {
                    let next = asm.label();
                    asm.branch_by(Jump::Less, R0, i32::from(*first), next);
                    asm.branch_by(Jump::LessEqual, R0, i32::from(*last), inside);
                    asm.place(next);
                }
                asm.goto(if *negated { taken } else { no });
                asm.place(inside);
                asm.goto(if *negated { no } else { taken });
                asm.place(taken);
            }
        }
        Ok(())
    }

    /// Goes to `no` unless the text ends there.
    fn ends(&self, coder: &mut Coder<'_>, at: usize, no: Label) -> Coded<()> {
        if at >= self.bytes.size as usize {
            return Ok(());
        }
        self.load(coder, at)?;
        coder.assembler.branch_by(Jump::NotEqual, R0, 0, no);
        Ok(())
    }
}
