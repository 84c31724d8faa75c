//! Which node of a cluster has which slots: the answer to `CLUSTER SLOTS`, as a value. Pure.

use std::collections::BTreeSet;

use redis::{ConnectionAddr, Value};

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;

/// The address of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// The address of a server that is reached by TCP; `None` for any other.
    pub(super) fn of(address: &ConnectionAddr) -> Option<Self> {
        match address {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self { host: host.clone(), port: *port })
            }
            _ => None,
        }
    }

    /// `host:port` as a redirection names it. A node that does not know its own host leaves the host empty: then the
    /// host is that of the node that was asked.
    pub(super) fn named(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Self::told(host, port.parse().ok()?, asked)
    }

    fn told(host: &str, port: u16, asked: &Self) -> Option<Self> {
        let host = if matches!(host, "" | "?") { asked.host.clone() } else { host.to_owned() };
        (port > 0).then_some(Self { host, port })
    }
}

/// The view that one node has of the cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    /// First slot, last slot, master; in order.
    ranges: Vec<(u16, u16, Address)>,
    replicas: BTreeSet<Address>,
}

impl Slots {
    /// Reads the answer of the node at `asked`; `None` if the answer is no view, or an empty view.
    pub(super) fn read(answer: &Value, asked: &Address) -> Option<Self> {
        let mut slots = Self::default();
        for range in items(answer)? {
            let [Value::Int(first), Value::Int(last), nodes @ ..] = items(range)? else { return None };
            let mut nodes = nodes.iter().map(|node| address(node, asked));
            let master = nodes.next()??;
            slots.ranges.push((u16::try_from(*first).ok()?, u16::try_from(*last).ok()?, master));
            slots.replicas.extend(nodes.flatten());
        }
        slots.ranges.sort();
        (!slots.ranges.is_empty()).then_some(slots)
    }

    /// The master of a slot.
    pub(super) fn master(&self, slot: u16) -> Option<&Address> {
        let range = self.ranges.partition_point(|(_, last, _)| *last < slot);
        self.ranges.get(range).filter(|(first, ..)| *first <= slot).map(|(.., master)| master)
    }

    /// The addresses of all masters, each once.
    pub(super) fn masters(&self) -> BTreeSet<&Address> {
        self.ranges.iter().map(|(.., master)| master).collect()
    }

    /// The addresses of all masters and replicas, each once.
    pub(super) fn nodes(&self) -> BTreeSet<&Address> {
        self.masters().into_iter().chain(&self.replicas).collect()
    }

    /// Whether both views have the same masters.
    fn agrees_with(&self, other: &Self) -> bool {
        self.ranges == other.ranges
    }
}

/// The view that most nodes have, and how many they are. A node that was cut off from the others is outvoted.
pub(super) fn most_common(views: &[Slots]) -> Option<(&Slots, usize)> {
    let voters = |view: &Slots| views.iter().filter(|other| other.agrees_with(view)).count();
    views.iter().map(|view| (view, voters(view))).max_by_key(|(_, voters)| *voters)
}

/// The slot of a key, or of the hash tag of the key if it has one.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let open = key.iter().position(|&byte| byte == b'{').map(|at| at + 1);
    let tag = open.and_then(|from| {
        let length = key[from..].iter().position(|&byte| byte == b'}')?;
        (length > 0).then(|| &key[from..from + length])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM, as the specification of Redis Cluster asks for. Tags are short.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| (crc << 1) ^ (if crc >> 15 == 1 { 0x1021 } else { 0 }))
    })
}

fn address(node: &Value, asked: &Address) -> Option<Address> {
    let [host, Value::Int(port), ..] = items(node)? else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::Nil => "",
        _ => return None,
    };
    Address::told(host, u16::try_from(*port).ok()?, asked)
}

fn items(value: &Value) -> Option<&[Value]> {
    if let Value::Array(items) = value { Some(items) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    fn host(name: &str) -> Value {
        Value::BulkString(name.as_bytes().to_vec())
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    fn view(ranges: Vec<Value>) -> Slots {
        Slots::read(&Value::Array(ranges), &at("asked", 1)).unwrap()
    }

    #[test]
    fn a_slot_lies_at_the_master_of_its_range_and_one_of_no_range_nowhere() {
        let slots = view(vec![
            range(100, 199, vec![node(host("b"), 2), node(host("c"), 3)]),
            range(0, 99, vec![node(Value::Nil, 7000)]),
            range(300, 300, vec![node(host(""), 7001)]),
        ]);
        let master = |slot| slots.master(slot).map(|address| (&*address.host, address.port));
        assert_eq!([0, 99].map(master), [Some(("asked", 7000)); 2]);
        assert_eq!([100, 199].map(master), [Some(("b", 2)); 2]);
        assert_eq!(master(300), Some(("asked", 7001)));
        assert_eq!([200, 299, 301, 16_383].map(master), [None; 4]);
        assert_eq!(slots.nodes().len(), 4, "replicas too");
    }

    #[test]
    fn what_is_no_view_or_an_empty_one_is_none() {
        let asked = at("asked", 1);
        for answer in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![range(0, 99_999, vec![node(host("b"), 2)])]),
            Value::Array(vec![range(0, 9, vec![node(host("b"), 0)])]),
            Value::Array(vec![range(0, 9, vec![])]),
        ] {
            assert!(Slots::read(&answer, &asked).is_none(), "{answer:?}");
        }
    }

    #[test]
    fn a_node_that_was_cut_off_is_outvoted_whatever_replicas_the_others_name() {
        let old = view(vec![range(0, 99, vec![node(host("old"), 1)])]);
        let new = view(vec![range(0, 99, vec![node(host("new"), 1)])]);
        let new_with_replica = view(vec![range(0, 99, vec![node(host("new"), 1), node(host("old"), 1)])]);
        let views = [old, new, new_with_replica];
        let (most, voters) = most_common(&views).unwrap();
        assert_eq!((most.master(0), voters), (Some(&at("new", 1)), 2));
    }

    #[test]
    fn keys_lie_where_redis_puts_them() {
        // As `CLUSTER KEYSLOT` says.
        for (key, slot) in [("123456789", 12_739), ("{b001}", 4_856), ("{b001}:5:0", 4_856), ("foo{}{bar}", 8_363)] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar"), crc16(b"foo{bar") % SLOTS);
    }

    #[test]
    fn a_redirection_names_a_node_and_one_without_a_host_the_one_that_was_asked() {
        let asked = at("asked", 1);
        assert_eq!(Address::named("10.0.0.1:7000", &asked), Some(at("10.0.0.1", 7000)));
        assert_eq!(Address::named("::1:7000", &asked), Some(at("::1", 7000)));
        assert_eq!(Address::named(":7000", &asked), Some(at("asked", 7000)));
        assert_eq!(Address::named("nonsense", &asked), None);
    }
}
