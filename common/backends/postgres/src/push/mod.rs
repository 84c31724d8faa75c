//! Push notifications: the devices that push services reach, and the notices for them.

pub(crate) mod devices;
pub(crate) mod notices;
