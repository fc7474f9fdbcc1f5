//! Network interfaces and block devices.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::net::Ipv4Addr;
use std::ptr;

/// Bits of the minor number in the kernel's own device numbers.
const MINOR_BITS: u32 = 20;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Its name.
    pub name: String,
    /// Its first address; 0.0.0.0 when it has none.
    pub address: Ipv4Addr,
}

/// A disk, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its number, as the kernel's events have it.
    pub number: u32,
    /// Its name.
    pub name: String,
}

/// The interfaces of our network namespace, by name.
pub(super) fn network_interfaces() -> Vec<NetworkInterface> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut found: BTreeMap<String, Ipv4Addr> =
        names.map(|name| (name, Ipv4Addr::UNSPECIFIED)).collect();
    for (name, address) in addresses() {
        let known = found.entry(name).or_insert(Ipv4Addr::UNSPECIFIED);
        if known.is_unspecified() {
            *known = address;
        }
    }
    let interface = |(name, address)| NetworkInterface { name, address };
    found.into_iter().map(interface).collect()
}

/// Names of interfaces with each of their addresses.
fn addresses() -> Vec<(String, Ipv4Addr)> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the call fills the pointer, or fails and leaves it.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: entries of the list live until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: an address is null or as long as its family says; a name ends with a zero byte.
        let address = unsafe { entry.ifa_addr.as_ref() };
        if address.is_some_and(|address| i32::from(address.sa_family) == libc::AF_INET) {
            // SAFETY: as above; the allocation may be aligned for nothing larger than bytes.
            let (name, internet) = unsafe {
                let internet = entry.ifa_addr.cast::<libc::sockaddr_in>();
                (CStr::from_ptr(entry.ifa_name), internet.read_unaligned())
            };
            let octets = internet.sin_addr.s_addr.to_ne_bytes();
            found.push((name.to_string_lossy().into_owned(), Ipv4Addr::from(octets)));
        }
    }
    // SAFETY: it came from `getifaddrs` and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// The block devices, by name.
pub(super) fn block_devices() -> Vec<BlockDevice> {
    let entries = fs::read_dir("/sys/class/block").into_iter().flatten();
    let device = |entry: fs::DirEntry| {
        let number = fs::read_to_string(entry.path().join("dev")).ok()?;
        Some(BlockDevice {
            number: device_number(&number)?,
            name: entry.file_name().to_string_lossy().into_owned(),
        })
    };
    let mut found: Vec<_> = entries.flatten().filter_map(device).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// From `MAJOR:MINOR`.
fn device_number(text: &str) -> Option<u32> {
    let (major, minor) = text.trim().split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (minor < 1 << MINOR_BITS && major < 1 << (32 - MINOR_BITS))
        .then_some(major << MINOR_BITS | minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_the_number_that_the_kernels_events_have() {
        let check = |text, expect| assert_eq!(device_number(text), expect, "{text}");
        // LTTng 2.13 wrote this of a virtual machine's `vda`.
        check("254:0\n", Some(266_338_304));
        check("8:1", Some(8 << 20 | 1));
        check("8", None);
        check("5000:1", None);
        check("8:1048576", None);
    }

    #[test]
    fn the_loopback_has_its_address() {
        let found = network_interfaces();
        let loopback = found.iter().find(|interface| interface.name == "lo");
        // A network namespace without addresses is one too.
        if let Some(loopback) = loopback.filter(|found| !found.address.is_unspecified()) {
            assert_eq!(loopback.address, Ipv4Addr::LOCALHOST);
        }
    }
}
