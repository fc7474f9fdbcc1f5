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
