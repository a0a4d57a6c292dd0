//! Which hosts and addresses a model may have fetched: those of the public internet, and what the user adds.
//!
//! Everything here is pure. What is not known to be public is not: a range that nobody listed is refused in IPv6 and
//! listed in IPv4, where the public ranges are the rest.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hosts that may be fetched although they are not public; from the user's own configuration alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrivateHosts {
    everything: bool,
    hosts: Vec<String>,
}

impl PrivateHosts {
    /// None: the public internet alone.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Every host.
    #[must_use]
    pub fn all() -> Self {
        Self { everything: true, hosts: Vec::new() }
    }

    /// These hosts: names or addresses as a URL has them; `*.name` for all below a name.
    #[must_use]
    pub fn these<T: AsRef<str>>(hosts: impl IntoIterator<Item = T>) -> Self {
        Self { everything: false, hosts: hosts.into_iter().map(|host| plain(host.as_ref())).collect() }
    }

    /// The parts of a list of hosts, divided by commas or blanks.
    pub fn split(list: &str) -> impl Iterator<Item = &str> {
        list.split([',', ' ', '\t', '\n']).filter(|host| !host.is_empty())
    }

    /// Whether a list names at least one host, and nothing that [`these`](Self::these) would wait for in vain: no
    /// scheme, port, path or range of addresses.
    #[must_use]
    pub fn are_hosts(list: &str) -> bool {
        Self::split(list).next().is_some() && Self::split(list).all(is_host)
    }

    /// Whether the user allows this host whatever its addresses are.
    pub(super) fn hold(&self, host: &str) -> bool {
        let host = plain(host);
        self.everything
            || self.hosts.iter().any(|known| match known.strip_prefix("*.") {
                Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
                None => *known == host,
            })
    }
}

fn plain(host: &str) -> String {
    let host = host.trim().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    host.parse::<Ipv6Addr>().map_or(host, |address| address.to_string())
}

fn is_host(text: &str) -> bool {
    let host = plain(text);
    if host.contains(':') {
        return host.parse::<Ipv6Addr>().is_ok();
    }
    let name = host.strip_prefix("*.").unwrap_or(&host);
    let part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    name.split('.').all(part)
}

/// Names that never stand for a public host, whoever answers for them. A proxy resolves names where nobody here sees
/// it, so they are refused as names.
pub(super) fn is_private_name(host: &str) -> bool {
    let host = plain(host);
    let reserved = ["localhost", "local", "internal", "intranet", "lan", "home.arpa", "corp", "home"];
    !host.contains('.')
        || reserved
            .iter()
            .any(|name| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Why an address is not public; `None` when it is.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => "an unspecified address",
        (127, ..) => "a loopback address",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "a private address",
        (100, 64..=127, _) => "an address of a carrier's own network",
        // Where clouds keep the credentials of a machine.
        (169, 254, _) => "a link-local address",
        (192, 0, 0) | (192, 88, 99) => "an address of protocols",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "an address of documentation",
        (198, 18..=19, _) => "an address of network tests",
        (168, 63, 129) if address == Ipv4Addr::new(168, 63, 129, 16) => "an address of a cloud's own services",
        (224..=239, ..) => "a multicast address",
        (240..=255, ..) => "a reserved address",
        _ => return None,
    })
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = address.to_ipv4_mapped() {
        return not_public_v4(inner);
    }
    let [a, b, c, d, e, f, g, h] = address.segments();
    let tail = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        not_public_v4(Ipv4Addr::new(w, x, y, z))
    };
    match (a, b) {
        // The well-known prefix of NAT64 and 6to4 carry an IPv4 address, which is what is reached.
        (0x64, 0xff9b) if (c, d, e, f) == (0, 0, 0, 0) => tail(g, h),
        (0x2002, _) => tail(b, c),
        _ if address.is_loopback() => Some("a loopback address"),
        _ if address.is_unspecified() => Some("an unspecified address"),
        (0xff00..=0xffff, _) => Some("a multicast address"),
        (0xfe80..=0xfebf, _) => Some("a link-local address"),
        (0xfc00..=0xfdff, _) | (0xfec0..=0xfeff, _) => Some("a private address"),
        (0x2001, 0x0db8) | (0x3fff, 0..=0x0fff) => Some("an address of documentation"),
        (0x2001, 0..=0x01ff) => Some("an address of protocols"),
        (0x2000..=0x3fff, _) => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn r_442_only_public_addresses_are_public_in_whatever_clothes_they_come() {
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "168.63.129.16",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
            "5f00::1",
        ];
        for text in private {
            assert!(not_public(text.parse().unwrap()).is_some(), "{text} is not public");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "168.63.129.17",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
        ];
        for text in public {
            assert_eq!(not_public(text.parse().unwrap()), None, "{text} is public");
        }
    }

    #[test]
    fn hosts_that_the_user_allows_are_named_whole_or_by_what_is_above_them() {
        for (list, are) in [
            ("localhost, 10.0.0.7", true),
            ("*.corp.example [::1],::1", true),
            ("build_1.lan.", true),
            ("", false),
            (" , ", false),
            ("http://x/", false),
            ("127.0.0.1:80", false),
            ("[::1]:80", false),
            ("127.0.0.0/8", false),
            ("localhost, fe80::/10", false),
            ("a..b", false),
            ("*", false),
            ("me@host", false),
        ] {
            assert_eq!(PrivateHosts::are_hosts(list), are, "{list:?}");
        }
        assert!(PrivateHosts::these(["0:0:0:0:0:0:0:1"]).hold("[::1]"));
        let hosts = PrivateHosts::these(["Localhost", "*.corp.example", "[::1]", "10.0.0.7"]);
        for host in ["localhost", "LOCALHOST.", "a.corp.example", "[::1]", "::1", "10.0.0.7"] {
            assert!(hosts.hold(host), "{host}");
        }
        for host in ["corp.example", "evilcorp.example", "xlocalhost", "10.0.0.70", ""] {
            assert!(!hosts.hold(host), "{host}");
        }
        assert!(PrivateHosts::all().hold("anything") && !PrivateHosts::none().hold("localhost"));
    }

    #[test]
    fn names_that_are_nobodys_in_public_are_known() {
        for host in ["localhost", "a.localhost", "metadata.google.internal", "router", "printer.local.", "x.home.arpa"]
        {
            assert!(is_private_name(host), "{host}");
        }
        for host in ["example.com", "notlocal.com", "internal.example.com", "mylocalhost.org"] {
            assert!(!is_private_name(host), "{host}");
        }
    }
}
