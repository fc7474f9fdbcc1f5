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

    /// What names the packet; none for what is not TCP.
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

/// A TCP segment: addresses, ports, sequence numbers and flags, which routers leave alone. Its
/// checksum is not among them: network cards fill it in after the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketKey {
    source: Address,
    destination: Address,
    source_port: u16,
    destination_port: u16,
    sequence: u32,
    acknowledged: u32,
    flags: u16,
}

/// Bytes of IPv4, or 16-bit groups of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Address {
    V4([u8; 4]),
    V6([u16; 8]),
}

impl Default for Address {
    fn default() -> Address {
        Address::V4([0; 4])
    }
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
            sequence: number("seq")? as u32,
            acknowledged: number("ack_seq")? as u32,
            flags: number("flags")? as u16,
        })
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
        let (sequence, acknowledged) = (self.sequence, self.acknowledged);
        write!(f, "{from} to {to}, seq {sequence}, ack {acknowledged}")
    }
}
