//! The head of a trace.dat: what the file says of itself before any event.
//!
//! The layouts are those of trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use event::{Error, ErrorKind, Result};

use super::input::Input;
use super::tables::Head;
use super::{in_order, sections};
use crate::bytes::Order;

/// What every trace.dat begins with.
pub(crate) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
/// The version that introduced sections.
const SECTIONS_SINCE: u32 = 7;

/// Reads the head of the file behind `input`.
pub(super) fn read(mut input: Input<'_>) -> Result<Head> {
    input.literal(MAGIC, "mark of a trace.dat")?;
    let version = input.text("version")?;
    let version: u32 = version.parse().map_err(|_| input.corrupt("version"))?;
    if !(6..=7).contains(&version) {
        let error = Error::new(ErrorKind::Unsupported, "unknown version of a trace.dat");
        return Err(error
            .found(version.to_string())
            .fix("trace-cmd convert --file-version 7 -i FILE -o NEW"));
    }
    let order = match input.u8("byte order")? {
        0 => Order::Little,
        _ => Order::Big,
    };
    input.set_order(order);
    // The width of a long in user space; the kernel's stands in header_page.
    input.u8("width of a long")?;
    let mut head = Head {
        version,
        order,
        page_bytes: input.u32("size of a page")?,
        ..Head::default()
    };
    if version >= SECTIONS_SINCE {
        sections::read(&mut input, &mut head)?;
    } else {
        in_order::read(&mut input, &mut head)?;
    }
    Ok(head)
}
