//! Addresses of sockets: as a text, and as LTTng takes them apart.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use ctf::writer::PayloadWriter;

use super::bytes::{escape, until_zero};

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;

/// A `struct sockaddr` of as many bytes as could be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketAddress<'b>(pub &'b [u8]);

impl SocketAddress<'_> {
    fn family(&self) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(..2)?.try_into().ok()?))
    }

    /// The internet address in it.
    fn internet(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes(self.0.get(2..4)?.try_into().ok()?);
        match self.family()? {
            AF_INET => {
                let octets: [u8; 4] = self.0.get(4..8)?.try_into().ok()?;
                Some(SocketAddrV4::new(Ipv4Addr::from(octets), port).into())
            }
            AF_INET6 => {
                let octets: [u8; 16] = self.0.get(8..24)?.try_into().ok()?;
                Some(SocketAddrV6::new(Ipv6Addr::from(octets), port, 0, 0).into())
            }
            _ => None,
        }
    }

    /// `127.0.0.1:80`, `[::1]:80`, `unix:/path`, `unix:@abstract`; empty where none could be read.
    pub fn text(&self) -> String {
        if let Some(internet) = self.internet() {
            return internet.to_string();
        }
        match self.family() {
            None => String::new(),
            Some(AF_UNIX) => format!("unix:{}", unix_path(&self.0[2..])),
            Some(AF_NETLINK) => match self.0.get(4..8).and_then(|id| id.try_into().ok()) {
                Some(id) => format!("netlink:{}", u32::from_le_bytes(id)),
                None => "netlink".to_owned(),
            },
            Some(other) => format!("family {other}"),
        }
    }

    /// LTTng's fields: family, port, and the octets and words of the address.
    pub fn write(&self, out: &mut PayloadWriter) {
        out.u16(self.family().unwrap_or(0));
        let port = self.internet().map_or(0, |internet| internet.port());
        out.raw(&port.to_be_bytes());
        let (v4, v6) = match self.internet() {
            Some(SocketAddr::V4(address)) => (address.ip().octets().to_vec(), Vec::new()),
            Some(SocketAddr::V6(address)) => (Vec::new(), address.ip().octets().to_vec()),
            None => (Vec::new(), Vec::new()),
        };
        out.u32(v4.len() as u32).raw(&v4);
        out.u32(v6.len() as u32 / 2).raw(&v6);
    }
}

/// The path of a socket in the file system, or, behind an `@`, in the kernel's own names.
fn unix_path(bytes: &[u8]) -> String {
    let (sign, path) = match bytes.split_first() {
        Some((0, name)) if !name.is_empty() => ("@", name),
        _ => ("", until_zero(bytes)),
    };
    let mut text = sign.to_owned();
    escape(path, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_as_people_write_it() {
        let check = |bytes: &[u8], expect: &str| assert_eq!(SocketAddress(bytes).text(), expect);
        check(
            &[2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            "127.0.0.1:80",
        );
        let mut six = vec![10, 0, 0x1f, 0x90, 0, 0, 0, 0];
        six.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
        check(&six, "[::1]:8080");
        check(&six[..20], "family 10");
        check(b"\x01\0/run/x\0rest", "unix:/run/x");
        check(b"\x01\0\0name", "unix:@name");
        check(b"\x01\0", "unix:");
        check(&[16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], "netlink:7");
        check(&[], "");
        check(&[2], "");
        check(&[40, 0, 1, 2], "family 40");
    }

    #[test]
    fn an_address_has_lttngs_fields() {
        let mut out = PayloadWriter::new();
        SocketAddress(&[2, 0, 0, 80, 127, 0, 0, 1]).write(&mut out);
        assert_eq!(
            out.bytes(),
            [2, 0, 0, 80, 4, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0]
        );
        let mut out = PayloadWriter::new();
        SocketAddress(&[]).write(&mut out);
        assert_eq!(out.bytes(), [0; 12]);
    }
}
