//! Floating point numbers of 16, 32, 64 and 128 bits.

use super::bits::{IntLoad, Order};

/// The number at bit `start`; one of 128 bits is rounded to 64.
pub(crate) fn read(bytes: &[u8], load: IntLoad, start: u64) -> Option<f64> {
    let half = |offset| {
        let load = IntLoad {
            size_bits: 64,
            ..load
        };
        load.read(bytes, start.checked_add(offset)?)
    };
    Some(match load.size_bits {
        16 => f16(load.read(bytes, start)? as u16),
        32 => f64::from(f32::from_bits(load.read(bytes, start)? as u32)),
        64 => f64::from_bits(load.read(bytes, start)?),
        _ => {
            let (first, second) = (half(0)?, half(64)?);
            match load.order {
                Order::Big => f128(first, second),
                _ => f128(second, first),
            }
        }
    })
}

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
fn f16(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1.0 + fraction) * 2f64.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// IEEE 754 binary128: 15 bits of exponent, 112 of fraction.
fn f128(high: u64, low: u64) -> f64 {
    let all_fraction = u128::from(high & 0xffff_ffff_ffff) << 64 | u128::from(low);
    let fraction = all_fraction as f64 / 2f64.powi(112);
    let magnitude = match high >> 48 & 0x7fff {
        // The smallest of them are far below what 64 bits can hold.
        0 => 0.0,
        0x7fff if all_fraction == 0 => f64::INFINITY,
        0x7fff => f64::NAN,
        exponent => (1.0 + fraction) * 2f64.powi(exponent as i32 - 16_383),
    };
    if high >> 63 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_unusual_size_keep_their_value() {
        let check = |bits: u16, expect: f64| assert_eq!(f16(bits), expect, "{bits:#x}");
        check(0x3c00, 1.0);
        check(0xc000, -2.0);
        check(0x7bff, 65504.0);
        check(0x0001, 2f64.powi(-24));
        check(0x7c00, f64::INFINITY);
        assert!(f16(0x7c01).is_nan());
        let check = |high, low, expect: f64| assert_eq!(f128(high, low), expect, "{high:#x}");
        check(0x3fff_0000_0000_0000, 0, 1.0);
        check(0xc000_8000_0000_0000, 0, -3.0);
        check(0x3ffd_5555_5555_5555, 0x5555_5555_5555_5555, 1.0 / 3.0);
        check(0x7fff_0000_0000_0000, 0, f64::INFINITY);
        check(0x7000_0000_0000_0000, 0, f64::INFINITY);
    }
}
