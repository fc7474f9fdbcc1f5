//! A packet by its headers: what makes it the same one on both hosts.

use event::{EventClass, FieldId, Value};
use trace::EventView;

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It was given to a network device.
    Sent,
    /// A network device gave it to the kernel.
    Received,
}

/// An event class that shows packets with their headers, as LTTng records them since 2.10.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketClass {
    pub seen: Seen,
    buffer: FieldId,
    header: FieldId,
}

impl PacketClass {
    pub fn bind(class: &EventClass) -> Option<PacketClass> {
        Some(PacketClass {
            seen: seen(&class.name)?,
            buffer: class.field("skbaddr")?,
            header: class.field("network_header")?,
        })
    }

    /// The kernel's buffer of the packet: one packet that passes several devices keeps it.
    pub fn buffer(&self, event: &EventView<'_>) -> u64 {
        event.u64(self.buffer)
    }

    /// What names the packet; none for what is neither TCP nor UDP.
    pub fn key(&self, event: &EventView<'_>) -> Option<PacketKey> {
        PacketKey::read(&event.value(self.header))
    }
}

/// Whether events of this name show packets at all, be it without headers.
pub(super) fn seen(name: &str) -> Option<Seen> {
    Some(match name {
        "net_dev_queue" => Seen::Sent,
        "net_if_receive_skb" | "netif_receive_skb" => Seen::Received,
        _ => return None,
    })
}

/// A TCP segment or a UDP datagram: addresses, ports and what else its headers tell it by, which
/// routers leave alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketKey {
    source: Address,
    destination: Address,
    source_port: u16,
    destination_port: u16,
    transport: Transport,
}

/// What tells one packet of a flow from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Transport {
    /// The checksum is not among it: network cards fill it in after the event.
    Tcp {
        sequence: u32,
        acknowledged: u32,
        flags: u16,
    },
    /// A datagram with its length in bytes and IPv4's identification, which Linux counts up for
    /// each connected socket.
    Numbered { bytes: u16, identification: u16 },
    /// One without: sockets that are not connected have zero there, and IPv6 has none. Its checksum
    /// is that of its content unless a network card fills it in, and then that of the sender is
    /// found on no other host.
    Summed { bytes: u16, checksum: u16 },
}

/// Bytes of IPv4, or 16-bit groups of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Address {
    V4([u8; 4]),
    V6([u16; 8]),
}

impl PacketKey {
    fn read(header: &Value<'_>) -> Option<PacketKey> {
        let header = chosen(header)?;
        let transport = chosen(header.member("transport_header")?)?;
        let number = |name: &str| transport.member(name)?.as_u64();
        Some(PacketKey {
            source: Address::read(header.member("saddr")?)?,
            destination: Address::read(header.member("daddr")?)?,
            source_port: number("source_port")? as u16,
            destination_port: number("dest_port")? as u16,
            transport: Transport::read(header, transport)?,
        })
    }
}

impl Transport {
    fn read(header: &Value<'_>, transport: &Value<'_>) -> Option<Transport> {
        let number = |name: &str| transport.member(name)?.as_u64();
        if let Some(sequence) = number("seq") {
            return Some(Transport::Tcp {
                sequence: sequence as u32,
                acknowledged: number("ack_seq")? as u32,
                flags: number("flags")? as u16,
            });
        }
        let (bytes, checksum) = (number("len")? as u16, number("check")? as u16);
        let identification = header.member("id").and_then(Value::as_u64).unwrap_or(0);
        Some(match identification as u16 {
            0 => Transport::Summed { bytes, checksum },
            identification => Transport::Numbered {
                bytes,
                identification,
            },
        })
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Transport::Tcp {
                sequence,
                acknowledged,
                ..
            } => write!(f, "seq {sequence}, ack {acknowledged}"),
            Transport::Numbered {
                bytes,
                identification,
            } => write!(f, "UDP of {bytes} bytes, id {identification}"),
            Transport::Summed { bytes, checksum } => {
                write!(f, "UDP of {bytes} bytes, checksum {checksum:#06x}")
            }
        }
    }
}

/// What a variant holds.
fn chosen<'v, 'a>(variant: &'v Value<'a>) -> Option<&'v Value<'a>> {
    match variant {
        Value::Struct(members) => members.first().map(|(_, value)| value),
        _ => None,
    }
}

impl Address {
    fn read(value: &Value<'_>) -> Option<Address> {
        let parts = value.as_array()?;
        let part = |place: usize| parts.get(place).and_then(Value::as_u64).unwrap_or(0);
        match parts.len() {
            4 => Some(Address::V4(std::array::from_fn(|place| part(place) as u8))),
            8 => Some(Address::V6(std::array::from_fn(|place| part(place) as u16))),
            _ => None,
        }
    }

    fn with_port(self, port: u16) -> String {
        match self {
            Address::V4(bytes) => format!("{}:{port}", std::net::Ipv4Addr::from(bytes)),
            Address::V6(groups) => format!("[{}]:{port}", std::net::Ipv6Addr::from(groups)),
        }
    }
}

impl std::fmt::Display for PacketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = self.source.with_port(self.source_port);
        let to = self.destination.with_port(self.destination_port);
        write!(f, "{from} to {to}, {}", self.transport)
    }
}
