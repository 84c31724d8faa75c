//! The settings that are in use now. A reload replaces them while every session goes on.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};

use super::Settings;

/// The limits and times that are in use now.
pub(crate) struct LiveSettings {
    now: ArcSwap<Settings>,
    /// How long a device that confirms nothing is waited for: as long as a missing pong would take to end its session.
    /// Devices are told the interval of pings when they connect, so no reload changes this time.
    pub(crate) silence: Duration,
}

impl LiveSettings {
    /// Begins with the settings of the start.
    pub(crate) fn new(settings: Settings) -> Arc<Self> {
        let silence = settings.ping_interval() + Duration::from_secs(settings.pong_within_secs.into());
        Arc::new(Self { now: ArcSwap::from_pointee(settings), silence })
    }

    /// The settings that hold now. A reload may replace them between two calls, so a caller that needs two settings
    /// that belong together takes both from one guard. A call takes a few nanoseconds and no lock.
    pub(crate) fn now(&self) -> Guard<Arc<Settings>> {
        self.now.load()
    }

    /// Uses these settings from now on, also for sessions that are open.
    pub(crate) fn replace(&self, settings: Settings) {
        self.now.store(Arc::new(settings));
    }
}
