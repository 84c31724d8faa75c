//! The settings that this process uses: those of all layers together.

use std::path::Path;

use anyhow::{anyhow, bail};

use crate::cli::{Place, Serve};
use crate::layers::{self, Given};
use crate::settings::Settings;

/// The settings that a client shares with its server, such as where the data are.
pub(crate) fn settings(place: &Place) -> anyhow::Result<Settings> {
    effective(place.config.as_deref(), place.given())
}

/// The settings of a server that these flags start.
pub(crate) fn server_settings(serve: &Serve) -> anyhow::Result<Settings> {
    effective(serve.place.config.as_deref(), serve.given())
}

/// The settings of all layers together, with the flags as the topmost layer; fails with all that is wrong with them.
pub(crate) fn effective(config: Option<&Path>, flags: Vec<Given>) -> anyhow::Result<Settings> {
    let mut environment = Vec::new();
    for (name, value) in std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))) {
        match value.into_string() {
            Ok(value) => environment.push((name, value)),
            // The value is not repeated: it may hold a password.
            Err(_) if layers::is_setting(&name) => bail!("{name} must be UTF-8"),
            Err(_) => {}
        }
    }
    layers::settings(config, environment.into_iter(), flags).map_err(|problems| wrong(&problems))
}

/// The error of a command whose settings have these problems.
pub(crate) fn wrong(problems: &[String]) -> anyhow::Error {
    anyhow!("the settings are wrong\n  {}", problems.join("\n  "))
}
