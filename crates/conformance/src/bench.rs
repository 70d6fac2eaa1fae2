//! What a case is given.

use std::sync::Arc;

use pinlane_driver::{Driver, Platform, Result};

use crate::rig::Rig;

/// The device under test. A case opens it anew, so that no case sees what another left behind.
pub struct Bench<'p> {
    platform: &'p dyn Platform,
    ordinal: u32,
}

impl<'p> Bench<'p> {
    /// Test device `ordinal` of `platform`.
    #[must_use]
    pub fn new(platform: &'p dyn Platform, ordinal: u32) -> Self {
        Self { platform, ordinal }
    }

    /// The platform of the device.
    #[must_use]
    pub fn platform(&self) -> &'p dyn Platform {
        self.platform
    }

    /// Number of the device on its platform.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Open the device.
    pub fn open(&self) -> Result<Arc<dyn Driver>> {
        self.platform.open(self.ordinal)
    }

    /// Open the device, with a rig around it that frees all that the case makes.
    pub(crate) fn rig(&self) -> Result<Rig> {
        Ok(Rig::new(self.open()?))
    }
}
