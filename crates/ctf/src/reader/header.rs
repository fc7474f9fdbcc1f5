//! An event's header: its id and its time, LTTng's two forms without a walk.

use super::bits::{IntLoad, Order, align_up};
use super::layout::{ExtendedHeader, HeaderForm, QuickHeader, StreamLayout};
use super::walk::{Content, State, Stop, extended};

/// Reads the header at `position`; the id and the clock go into the state. Returns its end.
#[inline]
pub(crate) fn read(
    layout: &StreamLayout,
    content: &Content<'_>,
    position: u64,
    state: &mut State,
) -> Result<u64, Stop> {
    match &layout.quick_header {
        Some(quick) => quick_header(layout, quick, content, position, state),
        None => walk_header(layout, content, position, state),
    }
}

#[inline]
fn quick_header(
    layout: &StreamLayout,
    quick: &QuickHeader,
    content: &Content<'_>,
    position: u64,
    state: &mut State,
) -> Result<u64, Stop> {
    let order = Order::of(quick.big_endian);
    let number = |size_bits, at| {
        let load = IntLoad {
            size_bits,
            signed: false,
            order,
        };
        content.int(load, at)
    };
    let start = align_up(position, quick.align_bits);
    let id_bits = match quick.form {
        HeaderForm::Compact => {
            let bits = number(32, start)?;
            let (id, time) = match quick.big_endian {
                false => (bits & 31, bits >> 5),
                true => (bits >> 27, bits & 0x7ff_ffff),
            };
            if id != 31 {
                state.event_id = id;
                state.advance_clock(27, time);
                return Ok(start + 32);
            }
            5
        }
        HeaderForm::Large { time_align_bits } => {
            let id = number(16, start)?;
            if id != 65535 {
                let at = align_up(start + 16, time_align_bits);
                state.event_id = id;
                state.advance_clock(32, number(32, at)?);
                return Ok(at + 32);
            }
            16
        }
    };
    let Some(extended) = quick.extended else {
        return walk_header(layout, content, position, state);
    };
    let id_at = align_up(start + id_bits, extended.align_bits);
    let time_at = align_up(id_at + 32, extended.time_align_bits);
    state.event_id = number(32, id_at)?;
    state.advance_clock(64, number(64, time_at)?);
    Ok(time_at + 64)
}

#[inline(never)]
fn walk_header(
    layout: &StreamLayout,
    content: &Content<'_>,
    position: u64,
    state: &mut State,
) -> Result<u64, Stop> {
    state.event_id = layout.unsaid_id;
    match &layout.header {
        Some(header) => content.skip(header, position, state),
        None => Ok(position),
    }
}

/// LTTng's headers where all parts begin with a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteHeader {
    is_compact: bool,
    big_endian: bool,
    align_mask: usize,
    time_align_mask: usize,
    /// What follows the greatest id.
    long: Option<LongForm>,
}

/// An id of 32 bits and the whole time, behind the short id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LongForm {
    align_mask: usize,
    time_align_mask: usize,
}

/// What a header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub id: u32,
    /// The clock of the stream.
    pub ticks: u64,
    /// The byte where the body begins.
    pub body_at: usize,
}

impl ByteHeader {
    pub fn of(quick: &QuickHeader) -> Option<ByteHeader> {
        let mask = |align_bits: u32| match align_bits.is_multiple_of(8) {
            true => usize::try_from(align_bits / 8 - 1).ok(),
            false => None,
        };
        let (is_compact, time_align_bits) = match quick.form {
            HeaderForm::Compact => (true, 8),
            HeaderForm::Large { time_align_bits } => (false, time_align_bits),
        };
        let long = |extended: &ExtendedHeader| {
            Some(LongForm {
                align_mask: mask(extended.align_bits)?,
                time_align_mask: mask(extended.time_align_bits)?,
            })
        };
        Some(ByteHeader {
            is_compact,
            big_endian: quick.big_endian,
            align_mask: mask(quick.align_bits)?,
            time_align_mask: mask(time_align_bits)?,
            long: quick.extended.as_ref().and_then(long),
        })
    }

    /// The one of most traces. Who reads many events asks for it once and has code of its own for
    /// it, in which all of this is constant.
    pub const USUAL: ByteHeader = ByteHeader {
        is_compact: true,
        big_endian: false,
        align_mask: 0,
        time_align_mask: 0,
        long: Some(LongForm {
            align_mask: 0,
            time_align_mask: 0,
        }),
    };

    /// Reads the header at byte `at`, before which the clock was at `clock`; none when it has
    /// another form or reaches beyond the bytes.
    #[inline(always)]
    pub fn read(self, bytes: &[u8], at: usize, clock: u64) -> Option<Said> {
        let start = aligned(at, self.align_mask);
        if self.is_compact {
            let word = self.u32(bytes, start)?;
            let (id, time) = match self.big_endian {
                false => (word & 31, word >> 5),
                true => (word >> 27, word & 0x7ff_ffff),
            };
            if id == 31 {
                return self.read_long(bytes, start + 1);
            }
            return Some(Said {
                id,
                ticks: extended(clock, 27, time.into()),
                body_at: start + 4,
            });
        }
        let id = *bytes.get(start..)?.first_chunk::<2>()?;
        let id = match self.big_endian {
            true => u16::from_be_bytes(id),
            false => u16::from_le_bytes(id),
        };
        if id == u16::MAX {
            return self.read_long(bytes, start + 2);
        }
        let time_at = aligned(start + 2, self.time_align_mask);
        let time = self.u32(bytes, time_at)?;
        Some(Said {
            id: id.into(),
            ticks: extended(clock, 32, time.into()),
            body_at: time_at + 4,
        })
    }

    #[inline(always)]
    fn read_long(self, bytes: &[u8], at: usize) -> Option<Said> {
        let long = self.long?;
        let id_at = aligned(at, long.align_mask);
        let time_at = aligned(id_at + 4, long.time_align_mask);
        let ticks = *bytes.get(time_at..)?.first_chunk::<8>()?;
        Some(Said {
            id: self.u32(bytes, id_at)?,
            ticks: match self.big_endian {
                true => u64::from_be_bytes(ticks),
                false => u64::from_le_bytes(ticks),
            },
            body_at: time_at + 8,
        })
    }

    #[inline(always)]
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self.big_endian {
            true => u32::from_be_bytes(word),
            false => u32::from_le_bytes(word),
        })
    }
}

#[inline(always)]
fn aligned(at: usize, mask: usize) -> usize {
    (at + mask) & !mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Schema;

    /// TSDL of a trace with LTTng's header in one of its forms.
    fn lttng(byte_order: &str, (id_bits, time_bits): (u32, u32), align_bits: u32) -> Schema {
        let last = (1u64 << id_bits) - 2;
        let long = last + 1;
        let time_align_bits = if id_bits == 5 { 1 } else { align_bits };
        let text = format!(
            "/* CTF 1.8 */
             trace {{ major = 1; minor = 8; byte_order = {byte_order}; }};
             clock {{ name = c; freq = 1000000000; }};
             stream {{
               event.header := struct {{
                 enum : integer {{ size = {id_bits}; align = {time_align_bits}; }}
                   {{ compact = 0 ... {last}, extended = {long} }} id;
                 variant <id> {{
                   struct {{
                     integer {{
                       size = {time_bits}; align = {time_align_bits}; map = clock.c.value;
                     }} timestamp;
                   }} compact;
                   struct {{
                     integer {{ size = 32; align = {align_bits}; }} id;
                     integer {{ size = 64; align = {align_bits}; map = clock.c.value; }} timestamp;
                   }} extended;
                 }} v;
               }} align(8);
             }};"
        );
        Schema::parse(&text).unwrap()
    }

    /// Bytes of no meaning, of which each second run says that the id is a long one.
    fn bytes(byte_order: &str, seed: u8) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..40u8).map(|n| n.wrapping_mul(37) ^ seed).collect();
        if seed % 2 == 1 {
            bytes[..4].fill(0xff);
        }
        if byte_order == "le" && seed % 4 == 3 {
            bytes[1] = 0xf0;
        }
        bytes
    }

    #[test]
    fn a_header_on_whole_bytes_says_what_a_walk_over_its_types_finds() {
        for byte_order in ["le", "be"] {
            for (form, align_bits) in [((5, 27), 8), ((5, 27), 32), ((16, 32), 8), ((16, 32), 64)] {
                let schema = lttng(byte_order, form, align_bits);
                let layout = &schema.streams[&0];
                let quick = ByteHeader::of(layout.quick_header.as_ref().unwrap()).unwrap();
                for seed in 0..=255 {
                    let bytes = bytes(byte_order, seed);
                    let end_bits = bytes.len() as u64 * 8;
                    let content = Content {
                        bytes: &bytes,
                        end_bits,
                    };
                    let clock = 0x1234_5678_9abc_def0;
                    let mut state = State {
                        clock,
                        ..State::new(&schema)
                    };
                    state.refuel(end_bits);
                    let end = walk_header(layout, &content, 0, &mut state).unwrap();
                    let said = quick.read(&bytes, 0, clock).unwrap();
                    let found = (u64::from(said.id), said.ticks, said.body_at as u64 * 8);
                    assert_eq!(found, (state.event_id, state.clock, end), "{form:?} {seed}");
                    assert!(quick.read(&bytes[..said.body_at - 1], 0, clock).is_none());
                }
            }
        }
    }
}
