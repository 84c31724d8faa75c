//! Listeners that were opened for this process: by systemd, or by the process before this one at a hand-over.
//!
//! ```text
//!   LISTEN_PID=<this process>  LISTEN_FDS=2  LISTEN_FDNAMES=listen:admin_listen   (sd_listen_fds(3))
//!   descriptor 3 ─▶ the setting of its name ───┐ where its address fits
//!   descriptor 4 ─▶ the setting of its address ┴─▶ taken in place of a bind; a setting without one is bound
//! ```
//!
//! Invariant: a listener that is given and fits no setting stops the start; otherwise its connections would wait for
//! ever. Only after a hand-over such a listener is closed instead, since the settings may have changed.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, anyhow, bail, ensure};
use listenfd::ListenFd;
use socket2::SockRef;

use crate::passed::{BEGAN, Began, FIRST};

/// The settings that a given listener may be for; its name may be one of these.
const SETTINGS: [&str; 3] = ["listen", "admin_listen", "health_listen"];

/// The listeners that were given to this process and have not been claimed yet.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    given: Vec<Given>,
    /// When the previous process stopped accepting connections, if this process took over from it.
    pub(crate) handed_over: Option<Began>,
}

/// One listener that was given.
#[derive(Debug)]
struct Given {
    name: String,
    address: SocketAddr,
    listener: TcpListener,
}

impl Inherited {
    /// Takes the listeners that were given to this process. Call this before the process opens anything, so that the
    /// numbers of the descriptors still mean these listeners.
    ///
    /// # Errors
    /// Names the variable or the descriptor that is wrong.
    pub(crate) fn take() -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let Some(names) = names(variable, std::process::id())? else { return Ok(Self::default()) };
        let handed_over = variable(BEGAN).and_then(|began| began.parse().ok());
        let mut descriptors = ListenFd::from_env();
        let given = names.into_iter().enumerate().map(|(at, name)| {
            let number = FIRST + at as i32;
            let wrong = || format!("LISTEN_FDS: descriptor {number} ({name}) is no listener of TCP that can be taken");
            let listener = descriptors.take_tcp_listener(at).with_context(wrong)?.with_context(wrong)?;
            let socket = SockRef::from(&listener);
            ensure!(socket.is_listener().with_context(wrong)?, "{}: it does not listen", wrong());
            let address = listener.local_addr().with_context(wrong)?;
            Ok(Given { name: name.clone(), address, listener })
        });
        Ok(Self { given: given.collect::<anyhow::Result<_>>()?, handed_over })
    }

    /// Gives the listener for a setting that says `address`, if there is one.
    pub(crate) fn claim(&mut self, setting: &str, address: SocketAddr) -> Option<TcpListener> {
        let given: Vec<(&str, SocketAddr)> =
            self.given.iter().map(|given| (given.name.as_str(), given.address)).collect();
        let at = fitting(&given, setting, address)?;
        Some(self.given.remove(at).listener)
    }

    /// Ends the claims. `wanted` are the settings with what they say.
    ///
    /// # Errors
    /// Names a listener that fits no setting, unless a previous process gave it: then the listener is closed.
    pub(crate) fn end(self, wanted: &[(&str, SocketAddr)]) -> anyhow::Result<()> {
        let Some(left) = self.given.first() else { return Ok(()) };
        let wanted: Vec<String> = wanted.iter().map(|(setting, address)| format!("{setting} is {address}")).collect();
        let wanted = wanted.join(", ");
        if self.handed_over.is_none() {
            bail!(
                "the socket {} at {} was given (LISTEN_FDS) and fits no setting: {wanted}; give both the same address",
                left.name,
                left.address
            );
        }
        for left in self.given {
            tracing::warn!(address = %left.address, "a port of the process before is closed: {wanted}");
        }
        Ok(())
    }
}

/// The names of the listeners that were given to the process with this id; `None` if none were given to it.
fn names(variable: impl Fn(&str) -> Option<String>, pid: u32) -> anyhow::Result<Option<Vec<String>>> {
    // A child of the process for which the listeners were meant may still see the variables.
    let Some(to) = variable("LISTEN_PID") else { return Ok(None) };
    let to: u32 = to.parse().map_err(|_| anyhow!("LISTEN_PID is the id of a process, not {to:?}"))?;
    let Some(count) = variable("LISTEN_FDS").filter(|_| to == pid) else { return Ok(None) };
    let count = count.parse().ok().filter(|count| *count <= SETTINGS.len());
    let count =
        count.with_context(|| format!("LISTEN_FDS is how many listeners are given, 0 to {}", SETTINGS.len()))?;
    let Some(names) = variable("LISTEN_FDNAMES") else { return Ok(Some(vec!["unknown".to_owned(); count])) };
    let names: Vec<String> = names.split(':').map(str::to_owned).collect();
    ensure!(
        count == 0 || names.len() == count,
        "LISTEN_FDNAMES has {} names, and LISTEN_FDS says {count}",
        names.len()
    );
    Ok(Some(names.into_iter().take(count).collect()))
}

/// Which of the given listeners, each with its name and its address, is for a setting that says `address`: the one with
/// the name of the setting, or else one whose name is no setting. The addresses must be the same; port 0 is any port.
fn fitting(given: &[(&str, SocketAddr)], setting: &str, address: SocketAddr) -> Option<usize> {
    let fits = |at: SocketAddr| at.ip() == address.ip() && (address.port() == 0 || at.port() == address.port());
    let named = given.iter().position(|(name, at)| *name == setting && fits(*at));
    named.or_else(|| given.iter().position(|(name, at)| !SETTINGS.contains(name) && fits(*at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that a process with the id 7 is given by these variables, or what is wrong with them.
    fn given(variables: &[(&str, &str)]) -> Result<Option<Vec<String>>, String> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        names(variable, 7).map_err(|error| error.to_string())
    }

    #[test]
    fn listeners_are_for_the_process_that_is_named_and_for_no_other() {
        let names = |names: &[&str]| Ok(Some(names.iter().map(|name| name.to_string()).collect::<Vec<_>>()));
        assert_eq!(given(&[]), Ok(None));
        assert_eq!(given(&[("LISTEN_FDS", "1")]), Ok(None));
        assert_eq!(given(&[("LISTEN_PID", "8"), ("LISTEN_FDS", "x")]), Ok(None));
        assert_eq!(given(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "1")]), names(&["unknown"]));
        let both = [("LISTEN_PID", "7"), ("LISTEN_FDS", "2"), ("LISTEN_FDNAMES", "listen:a.socket")];
        assert_eq!(given(&both), names(&["listen", "a.socket"]));
        assert_eq!(given(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "0"), ("LISTEN_FDNAMES", "")]), names(&[]));
    }

    #[test]
    fn variables_that_contradict_each_other_are_named() {
        let wrong = |variables: &[(&str, &str)]| given(variables).unwrap_err();
        assert!(wrong(&[("LISTEN_PID", "me")]).contains("LISTEN_PID"));
        for count in ["x", "-1", "4", ""] {
            assert!(wrong(&[("LISTEN_PID", "7"), ("LISTEN_FDS", count)]).contains("LISTEN_FDS is how many"), "{count}");
        }
        let two = wrong(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "1"), ("LISTEN_FDNAMES", "a:b")]);
        assert!(two.contains("has 2 names, and LISTEN_FDS says 1"), "{two}");
    }

    #[test]
    fn a_listener_is_for_the_setting_of_its_name_or_of_its_address_and_its_address_must_fit() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let given = [
            ("feedgate.socket", at("127.0.0.1:80")),
            ("listen", at("127.0.0.1:81")),
            ("admin_listen", at("127.0.0.1:82")),
        ];
        let fits = |setting, address| fitting(&given, setting, at(address));
        assert_eq!(fits("listen", "127.0.0.1:81"), Some(1));
        assert_eq!(fits("listen", "127.0.0.1:80"), Some(0), "what is named after a unit goes by its address");
        assert_eq!(fits("listen", "127.0.0.1:82"), None, "it is named for another setting");
        assert_eq!(fits("listen", "0.0.0.0:81"), None, "it would be reached from elsewhere than the setting says");
        assert_eq!((fits("listen", "127.0.0.1:0"), fits("admin_listen", "127.0.0.1:0")), (Some(1), Some(2)));
        assert_eq!(fits("health_listen", "127.0.0.1:0"), Some(0));
    }
}
