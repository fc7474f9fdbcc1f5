//! Kernel stacks, by address and by name.

/// One return address of a kernel stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The address.
    pub address: u64,
    /// `function+0xoffset`, or empty when unknown.
    pub symbol: String,
}

impl Frame {
    /// The function without the offset, or none when unknown.
    pub fn function(&self) -> Option<&str> {
        let name = self
            .symbol
            .split_once('+')
            .map_or(self.symbol.as_str(), |(name, _)| name);
        (!name.is_empty()).then_some(name)
    }
}

/// A kernel stack, innermost frame first.
pub type Stack = Vec<Frame>;

/// Names the function of each frame.
pub(super) fn symbolise(stack: &mut Stack, name: &impl Fn(u64) -> String) {
    for frame in stack {
        frame.symbol = name(frame.address);
    }
}

/// A stack of bare addresses, not yet named.
pub fn unnamed(addresses: &[u64]) -> Stack {
    let frame = |address: &u64| Frame {
        address: *address,
        symbol: String::new(),
    };
    addresses.iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_names_its_function_without_the_offset() {
        let check = |symbol: &str, expect: Option<&str>| {
            let frame = Frame {
                address: 1,
                symbol: symbol.into(),
            };
            assert_eq!(frame.function(), expect);
        };
        check("do_work+0x1f", Some("do_work"));
        check("do_work", Some("do_work"));
        check("", None);
    }
}
