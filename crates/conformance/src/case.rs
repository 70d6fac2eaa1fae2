//! A case, and the device that it tests.

use std::sync::Arc;

use pinlane_driver::{Driver, Platform, Result};

use crate::Outcome;
use crate::rig::Rig;

/// Something that a driver must do.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Topic and claim, such as `streams/wait-event-orders-across-streams`.
    pub name: &'static str,
    /// The check.
    pub run: fn(&TestDevice<'_>) -> Outcome,
    /// Misuses the driver on purpose, which must refuse it. A driver that checks its use reports the
    /// misuse of these cases, and nothing for all others.
    pub misuse: bool,
}

/// The device under test. Every case opens it again, so that no case sees what another left.
pub struct TestDevice<'p> {
    /// The platform of the device.
    pub platform: &'p dyn Platform,
    /// The index of the device on its platform.
    pub ordinal: u32,
}

impl TestDevice<'_> {
    /// Opens the device.
    pub fn open(&self) -> Result<Arc<dyn Driver>> {
        self.platform.open(self.ordinal)
    }

    /// Opens the device with a rig, which frees everything that the case creates.
    pub(crate) fn rig(&self) -> Result<Rig> {
        Ok(Rig::new(self.open()?))
    }

    /// Runs a case on a rig, unless the device lacks what it needs.
    pub(crate) fn on_rig(
        &self,
        needs: impl FnOnce(&Rig) -> Outcome,
        case: impl FnOnce(&Rig) -> Outcome,
    ) -> Outcome {
        let rig = self.rig()?;
        needs(&rig)?;
        case(&rig)?;
        rig.close()
    }
}

/// Lists the cases of a topic. Each gets a [`Rig`], or with `@test` the [`TestDevice`]. `needs`
/// names what all of them need, `misuse` that all of them misuse the driver.
macro_rules! cases {
    (@list $needs:expr, $misuse:literal; $($(@$with:ident)? $name:literal => $run:expr,)*) => {
        pub(super) const CASES: &[$crate::Case] = &[$($crate::Case {
            name: $name,
            run: $crate::case::cases!(@run $needs, $($with)? $run),
            misuse: $misuse,
        }),*];
    };
    (@run $needs:expr, test $run:expr) => { $run };
    (@run $needs:expr, $run:expr) => { |test| test.on_rig($needs, $run) };
    (misuse; needs $needs:path; $($cases:tt)*) => {
        $crate::case::cases! { @list $needs, true; $($cases)* }
    };
    (needs $needs:path; $($cases:tt)*) => {
        $crate::case::cases! { @list $needs, false; $($cases)* }
    };
    ($($cases:tt)*) => { $crate::case::cases! { @list |_| Ok(()), false; $($cases)* } };
}

pub(crate) use cases;
