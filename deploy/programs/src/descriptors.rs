//! File descriptors: how many this process may open, and what they are used for.
//!
//! ```text
//!   RLIMIT_NOFILE, raised to the hard limit ──┬─▶ RESERVE            stores, engines, the runtime
//!                                             ├─▶ up to a quarter    HTTP: backends, readers, unauthenticated
//!                                             └─▶ the rest           devices
//! ```
//!
//! Invariant: the connections that the gateway admits never add up to the limit. A store that cannot open a file stays
//! broken, while a device that is refused can connect again.

use anyhow::bail;
use feedgate_gateway::Settings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors are reserved: for 128 tables that the embedded stores keep open and the files that their
/// flushes open, or for the connections to the engines of a cluster; for listeners, and for connections that are
/// accepted only to be refused.
const RESERVE: u64 = 256;

/// The least limit of open files: with fewer, there would be hardly any room for devices.
const LIMIT_MIN: u64 = RESERVE + 64;

/// Raises the limit of open files as far as the system allows, and gives the limit.
pub(crate) fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            Ok(()) => return maximum.unwrap_or(u64::MAX),
            Err(error) => tracing::warn!(%error, "the limit of open files could not be raised to the hard limit"),
        }
    }
    current.unwrap_or(u64::MAX)
}

/// The settings, with the numbers of connections reduced to what fits into `limit` descriptors, on `ports` ports.
pub(crate) fn fit(limit: u64, ports: usize, settings: Settings) -> anyhow::Result<Settings> {
    if limit < LIMIT_MIN {
        bail!(
            "the limit of open files (RLIMIT_NOFILE) is {limit}, and at least {LIMIT_MIN} are needed: raise it with \
             `ulimit -n`, LimitNOFILE= of systemd or nofile of the container"
        );
    }
    let (ports, free) = (ports as u64, limit - RESERVE);
    let http = (free / 4 / ports).min(settings.http_connections.into());
    let devices = (free - http * ports).min(settings.connections.into());
    tracing::info!(limit, reserve = RESERVE, http, devices, "descriptors: how many there are, and for whom");
    // Neither number is larger than what the settings asked for, so the casts lose nothing.
    Ok(Settings { http_connections: http as u32, connections: devices as u32, ..settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(limit: u64, ports: usize) -> (u32, u32) {
        let asked = Settings { connections: 1_000_000, http_connections: 4096, ..Settings::default() };
        let fit = fit(limit, ports, asked).unwrap();
        (fit.http_connections, fit.connections)
    }

    #[test]
    fn what_is_admitted_and_the_reserve_fit_into_the_limit() {
        for limit in [320, 321, 600, 1024, 4096, 65_536, 1_048_576, u64::MAX] {
            for ports in [1, 2] {
                let (http, devices) = shares(limit, ports);
                assert!(u64::from(http) * ports as u64 + u64::from(devices) + RESERVE <= limit, "{limit}, {ports}");
                assert!(http >= 8 && devices >= 32, "{limit}, {ports}: {http}, {devices}");
            }
        }
        assert_eq!((shares(600, 1), shares(u64::MAX, 2)), ((86, 258), (4096, 1_000_000)));
    }

    #[test]
    fn a_limit_without_room_for_devices_is_refused_with_what_to_do() {
        let error = fit(319, 1, Settings::default()).unwrap_err().to_string();
        assert!(error.contains("is 319, and at least 320") && error.contains("ulimit -n"), "{error}");
    }

    #[test]
    fn the_limit_is_raised_to_the_hard_one() {
        let raised = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.current.unwrap_or(u64::MAX)), (now.maximum, raised));
    }
}
