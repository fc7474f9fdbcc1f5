//! An event's header: its id and its time, LTTng's two forms without a walk.

use super::bits::{IntLoad, Order, align_up};
use super::layout::{HeaderForm, QuickHeader, StreamLayout};
use super::walk::{Content, State, Stop};

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
    match &layout.header {
        Some(header) => content.skip(header, position, state),
        None => Ok(position),
    }
}

/// LTTng's headers where all parts begin with a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortHeader {
    is_compact: bool,
    big_endian: bool,
    pub time_bits: u32,
    align_mask: usize,
    time_align_mask: usize,
}

impl ShortHeader {
    /// The one of most traces.
    pub const LTTNG_COMPACT: ShortHeader = ShortHeader {
        is_compact: true,
        big_endian: false,
        time_bits: 27,
        align_mask: 0,
        time_align_mask: 0,
    };

    pub fn of(quick: &QuickHeader) -> Option<ShortHeader> {
        let mask = |align_bits: u32| match align_bits.is_multiple_of(8) {
            true => usize::try_from(align_bits / 8 - 1).ok(),
            false => None,
        };
        let (is_compact, time_bits, time_align_bits) = match quick.form {
            HeaderForm::Compact => (true, 27, 8),
            HeaderForm::Large { time_align_bits } => (false, 32, time_align_bits),
        };
        Some(ShortHeader {
            is_compact,
            big_endian: quick.big_endian,
            time_bits,
            align_mask: mask(quick.align_bits)?,
            time_align_mask: mask(time_align_bits)?,
        })
    }

    /// The id, the time's low bits and where the body begins; none when the header is a long one or
    /// reaches beyond the bytes.
    #[inline(always)]
    pub fn read(self, bytes: &[u8], at: usize) -> Option<(u32, u64, usize)> {
        let start = (at + self.align_mask) & !self.align_mask;
        if self.is_compact {
            let word = self.u32(bytes, start)?;
            let (id, time) = match self.big_endian {
                false => (word & 31, word >> 5),
                true => (word >> 27, word & 0x7ff_ffff),
            };
            return (id != 31).then_some((id, time.into(), start + 4));
        }
        let id = bytes.get(start..)?.first_chunk::<2>()?;
        let id = match self.big_endian {
            true => u16::from_be_bytes(*id),
            false => u16::from_le_bytes(*id),
        };
        let time_at = (start + 2 + self.time_align_mask) & !self.time_align_mask;
        (id != u16::MAX).then_some(())?;
        Some((id.into(), self.u32(bytes, time_at)?.into(), time_at + 4))
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
