//! Packets that crossed between hosts, found in the traces of both, and what they say of the hosts'
//! clocks.
//!
//! # Design constraints
//! - Never a false pair: a packet whose headers occur twice on one host is left out: a segment that
//!   was sent again or acknowledges nothing new, a datagram that looks like another one. Their
//!   order is no help, as datagrams get lost.
//! - Memory is bounded: so many different packets are kept, and what is left out is counted.

mod offset;
mod packet;

use std::collections::HashMap;

use event::{ClassId, Error, ErrorKind, Result};
use trace::{EventView, Trace};

pub use offset::{ClockOffset, NoOffset};
pub use packet::PacketKey;

use kernel_state::bind::host_of;
use offset::Bound;
use packet::PacketClass;
pub(crate) use packet::Seen;

/// Packets that are kept at most: some 100 bytes each.
const PACKETS_MAX: usize = 2_000_000;

/// A bridge hands a packet on within this time; what takes longer was sent again.
const HANDED_ON_NS_MAX: i64 = 1_000_000;

/// A host, by its place among those of the trace.
pub(crate) type HostId = usize;

/// Gathers the packets of a trace.
#[derive(Debug)]
pub(crate) struct Packets {
    hosts: Vec<String>,
    /// By class.
    host_of: Vec<HostId>,
    classes: HashMap<ClassId, PacketClass>,
    packets: HashMap<PacketKey, Sights>,
    left_out: u64,
}

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Sights {
    sent: Option<Sight>,
    received: Option<Sight>,
    /// Another one with the same headers was seen.
    ambiguous: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sight {
    host: HostId,
    buffer: u64,
    at_ns: i64,
}

/// A packet that both hosts saw, each on its own clock in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Crossing {
    pub key: PacketKey,
    pub from: HostId,
    pub to: HostId,
    pub sent_ns: i64,
    pub received_ns: i64,
}

/// Two hosts and what crossed between them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub a: HostId,
    pub b: HostId,
    /// From a to b, and from b to a.
    pub packets: [u64; 2],
    /// B's clock minus A's.
    pub offset: std::result::Result<ClockOffset, NoOffset>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hosts {
    pub names: Vec<String>,
    pub links: Vec<Link>,
    /// In the order of their sending, on the senders' clocks.
    pub crossings: Vec<Crossing>,
    by_key: HashMap<PacketKey, usize>,
    /// Packets that one host alone saw.
    pub alone: u64,
    /// Packets whose headers occur more than once.
    pub ambiguous: u64,
    /// Packets that there was no room for.
    pub left_out: u64,
}

impl Packets {
    /// # Errors
    /// The trace is of one host, or shows no headers of packets.
    pub fn new(trace: &Trace) -> Result<Packets> {
        let mut hosts: Vec<String> = Vec::new();
        let (mut host_of_class, mut classes) = (Vec::new(), HashMap::new());
        let mut headless = false;
        for class in trace.classes() {
            let name = host_of(trace, class.id).unwrap_or_default();
            let known = hosts.iter().position(|other| other == name);
            let host = known.unwrap_or_else(|| {
                hosts.push(name.to_owned());
                hosts.len() - 1
            });
            host_of_class.push(host);
            match PacketClass::bind(class) {
                Some(packet) => drop(classes.insert(class.id, packet)),
                None => headless |= packet::seen(&class.name).is_some(),
            }
        }
        check(&hosts, !classes.is_empty(), headless)?;
        Ok(Packets {
            hosts,
            host_of: host_of_class,
            classes,
            packets: HashMap::new(),
            left_out: 0,
        })
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The host that recorded events of `class`.
    pub fn host_of(&self, class: ClassId) -> HostId {
        self.host_of.get(class.0 as usize).copied().unwrap_or(0)
    }

    /// Takes in an event of the instant `now_ns` of its host's clock, and gives its packet; without
    /// its headers when it is none of those that are matched.
    pub fn event(
        &mut self,
        event: &EventView<'_>,
        now_ns: i64,
    ) -> Option<(Seen, Option<PacketKey>)> {
        let class = *self.classes.get(&event.class())?;
        let Some(key) = class.key(event) else {
            return Some((class.seen, None));
        };
        if self.packets.len() >= PACKETS_MAX && !self.packets.contains_key(&key) {
            self.left_out += 1;
            return Some((class.seen, None));
        }
        let sight = Sight {
            host: self.host_of(event.class()),
            buffer: class.buffer(event),
            at_ns: now_ns,
        };
        self.packets.entry(key).or_default().add(class.seen, sight);
        Some((class.seen, Some(key)))
    }

    /// What crossed, and how far apart the clocks are.
    pub fn finish(&self) -> Hosts {
        let mut found = Hosts {
            names: self.hosts.clone(),
            left_out: self.left_out,
            ..Hosts::default()
        };
        for (key, sights) in &self.packets {
            match sights.crossing(*key) {
                _ if sights.ambiguous => found.ambiguous += 1,
                Some(crossing) => found.crossings.push(crossing),
                None => found.alone += 1,
            }
        }
        found
            .crossings
            .sort_unstable_by_key(|one| (one.sent_ns, one.received_ns, one.from));
        let places = found.crossings.iter().enumerate();
        found.by_key = places.map(|(place, one)| (one.key, place)).collect();
        found.links = links(&found.crossings, self.hosts.len());
        found
    }
}

/// Refuses what no packet can be found in.
fn check(hosts: &[String], has_headers: bool, headless: bool) -> Result<()> {
    let refuse = |what: &str, found: String, fix: &str| {
        Err(Error::new(ErrorKind::Unsupported, what)
            .found(found)
            .fix(fix))
    };
    if !has_headers {
        let found = match headless {
            true => "their events have no network_header, as the kernel itself records them",
            false => "no event net_dev_queue or net_if_receive_skb",
        };
        return refuse(
            "no packet can be recognised on another host",
            found.to_owned(),
            "record both hosts with LTTng 2.10 or later: \
             lttng enable-event -k net_dev_queue,net_if_receive_skb",
        );
    }
    if hosts.len() < 2 {
        let host = hosts.first().map_or("", String::as_str);
        return refuse(
            "packets cross between two hosts",
            format!("one host, '{host}'"),
            "name the traces of both: rtscope report hosts TRACE-A TRACE-B",
        );
    }
    Ok(())
}

impl Sight {
    /// Whether `later` is the same packet on its way through another device of the same host.
    fn hands_on(&self, later: &Sight) -> bool {
        let same = (self.host, self.buffer) == (later.host, later.buffer);
        same && later.at_ns.saturating_sub(self.at_ns) <= HANDED_ON_NS_MAX
    }
}

impl Sights {
    fn add(&mut self, seen: Seen, sight: Sight) {
        let place = match seen {
            Seen::Sent => &mut self.sent,
            Seen::Received => &mut self.received,
        };
        match place {
            None => *place = Some(sight),
            // A bridge or a virtual device handed it on. The first sending and the last arrival
            // bound the clocks, too.
            Some(other) if other.hands_on(&sight) => {
                if seen == Seen::Received {
                    *other = sight;
                }
            }
            Some(_) => self.ambiguous = true,
        }
    }

    fn crossing(&self, key: PacketKey) -> Option<Crossing> {
        let (sent, received) = (self.sent?, self.received?);
        (sent.host != received.host).then_some(Crossing {
            key,
            from: sent.host,
            to: received.host,
            sent_ns: sent.at_ns,
            received_ns: received.at_ns,
        })
    }
}

/// What each two hosts' packets say.
fn links(crossings: &[Crossing], hosts: usize) -> Vec<Link> {
    let pairs = (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| (a, b)));
    let link = |(a, b): (HostId, HostId)| {
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for one in crossings {
            let (sent_ns, received_ns) = (one.sent_ns, one.received_ns);
            match (one.from, one.to) {
                way if way == (a, b) => upper.push(Bound {
                    at_ns: sent_ns,
                    offset_ns: received_ns.saturating_sub(sent_ns),
                }),
                way if way == (b, a) => lower.push(Bound {
                    at_ns: received_ns,
                    offset_ns: sent_ns.saturating_sub(received_ns),
                }),
                _ => {}
            }
        }
        let packets = [upper.len() as u64, lower.len() as u64];
        (packets != [0, 0]).then(|| Link {
            a,
            b,
            packets,
            offset: offset::between(upper, lower),
        })
    };
    pairs.filter_map(link).collect()
}

impl Hosts {
    /// The packet of these headers.
    pub fn crossing(&self, key: &PacketKey) -> Option<&Crossing> {
        self.crossings.get(*self.by_key.get(key)?)
    }

    /// How long a packet was on its way, and how far off that may be, in nanoseconds; none where
    /// the clocks are not known well enough.
    pub fn delay_ns(&self, one: &Crossing) -> Option<(i64, i64)> {
        let raw_ns = one.received_ns.saturating_sub(one.sent_ns);
        let (a, b) = (one.from.min(one.to), one.from.max(one.to));
        let link = self.links.iter().find(|link| (link.a, link.b) == (a, b))?;
        let offset = link.offset.as_ref().ok()?;
        let delay_ns = match one.from == a {
            true => raw_ns.saturating_sub(offset.at(one.sent_ns)),
            false => raw_ns.saturating_add(offset.at(one.received_ns)),
        };
        Some((delay_ns, offset.error_ns))
    }
}
