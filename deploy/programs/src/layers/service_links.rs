//! Recognizes the variables that Kubernetes puts into every container for each Service of the namespace.
//!
//! A Service named `feedgate` or `feedgate-gateway` has variables that start like ours: Kubernetes writes the name in
//! upper case with `_` for `-`. They are not settings, and a start must not fail because of them.
//!
//! ```text
//!   FEEDGATE_SERVICE_HOST=10.0.0.11            FEEDGATE_PORT=tcp://10.0.0.11:8080
//!   FEEDGATE_SERVICE_PORT=8080                 FEEDGATE_PORT_8080_TCP=tcp://10.0.0.11:8080
//!   FEEDGATE_SERVICE_PORT_HTTP=8080            FEEDGATE_PORT_8080_TCP_PROTO=tcp  …_PORT=8080  …_ADDR=10.0.0.11
//! ```
//!
//! The value is looked at too, so a misspelt setting such as `FEEDGATE_PORT=8080` is still an error.
//! Source: the Kubernetes documentation of Services, "Environment variables".

use std::net::IpAddr;

/// The protocols that a port of a Service may have.
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];

/// Whether Kubernetes may give a variable of this name and value for some Service.
pub(super) fn is_service_link(name: &str, value: &str) -> bool {
    if name.ends_with("_SERVICE_HOST") {
        return is_host(value);
    }
    if let Some((_, port)) = name.split_once("_SERVICE_PORT") {
        return (port.is_empty() || port.starts_with('_')) && is_port(value);
    }
    // Every `_PORT` of the name is tried, since a Service may itself be called `x-port`.
    name.match_indices("_PORT").any(|(at, port)| is_port_link(&name[at + port.len()..], value))
}

/// Whether `rest` may follow `_PORT` in a name: nothing, or `_<number>_<protocol>`, or that with a last word.
fn is_port_link(rest: &str, value: &str) -> bool {
    if rest.is_empty() {
        return is_url(value);
    }
    let words: Vec<&str> = rest.split('_').collect();
    let ["", number, protocol, last @ ..] = words.as_slice() else { return false };
    let named = is_port(number) && PROTOCOLS.contains(&protocol.to_lowercase().as_str());
    named
        && match last {
            [] => is_url(value),
            ["PROTO"] => PROTOCOLS.contains(&value),
            ["PORT"] => is_port(value),
            ["ADDR"] => is_host(value),
            _ => false,
        }
}

/// Whether the value is a URL such as `tcp://10.0.0.11:8080`.
fn is_url(value: &str) -> bool {
    value.split_once("://").is_some_and(|(protocol, _)| PROTOCOLS.contains(&protocol))
}

fn is_port(value: &str) -> bool {
    value.parse::<u16>().is_ok()
}

/// Whether the value is an IP address: Kubernetes gives the address of the Service, never its name.
fn is_host(value: &str) -> bool {
    value.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_gives_for_a_service_is_known() {
        for (name, value) in [
            ("FEEDGATE_SERVICE_HOST", "10.0.0.11"),
            ("FEEDGATE_SERVICE_HOST", "fd00::11"),
            ("FEEDGATE_SERVICE_PORT", "8080"),
            ("FEEDGATE_SERVICE_PORT_HTTP_ADMIN", "8081"),
            ("FEEDGATE_PORT", "tcp://10.0.0.11:8080"),
            ("FEEDGATE_PORT", "udp://[fd00::11]:8080"),
            ("FEEDGATE_PORT_8080_TCP", "tcp://10.0.0.11:8080"),
            ("FEEDGATE_PORT_8080_TCP_PROTO", "tcp"),
            ("FEEDGATE_PORT_8080_TCP_PORT", "8080"),
            ("FEEDGATE_PORT_8080_TCP_ADDR", "10.0.0.11"),
            ("FEEDGATE_GATEWAY_SERVICE_HOST", "10.0.0.11"),
            ("FEEDGATE_GATEWAY_PORT_8080_TCP", "tcp://10.0.0.11:8080"),
            ("FEEDGATE_AIR_PORT_PORT_53_UDP_PROTO", "udp"),
        ] {
            assert!(is_service_link(name, value), "{name}={value}");
        }
    }

    #[test]
    fn a_misspelt_setting_is_no_service_link() {
        for (name, value) in [
            ("FEEDGATE_PORT", "8080"),
            ("FEEDGATE_PORT", "http://10.0.0.11:8080"),
            ("FEEDGATE_LISTEN_PORT", "8080"),
            ("FEEDGATE_SERVICE_HOST", "feedgate.example"),
            ("FEEDGATE_SERVICE_PORTS", "8080"),
            ("FEEDGATE_PORT_X_TCP", "tcp://10.0.0.11:8080"),
            ("FEEDGATE_PORT_8080_TCP_NAME", "http"),
            ("FEEDGATE_LISTN", "10.0.0.11"),
        ] {
            assert!(!is_service_link(name, value), "{name}={value}");
        }
    }
}
