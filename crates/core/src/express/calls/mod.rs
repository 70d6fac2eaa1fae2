//! The express lane's calls, as methods of [`Stream`].

mod convert;
mod freight;
mod many;
mod one;

pub use convert::{Conversion, F32ToBf16, F32ToF16, U8ToF32};

use std::sync::Arc;

use pinlane_driver::{ErrorKind, PointerKind};

use super::dock::Dock;
use super::haul::Haul;
use super::route::Route;
use super::{Express, Trip};
use crate::memory::Touch;
use crate::{Error, Result, Stream};

impl Stream {
    fn express(&self) -> Arc<Express> {
        self.shared().express()
    }

    /// Whether the driver can copy a slice directly, being page-locked from end to end.
    fn is_page_locked(&self, slice: &[u8]) -> bool {
        let (Some(first), Some(last)) = (slice.first(), slice.last()) else {
            return false;
        };
        [first, last].into_iter().all(|end| {
            let address = std::ptr::from_ref(end).expose_provenance() as u64;
            match self.driver().pointer_kind(address) {
                Ok(kind) => matches!(kind, PointerKind::Pinned | PointerKind::Registered),
                Err(error) => {
                    self.shared().core.keep_stray(error);
                    false
                }
            }
        })
    }

    /// Whether the driver would not take the memory as it is, being page-locked in part. Staged it
    /// can be copied all the same.
    fn is_locked_in_part(copied: &Result<()>) -> bool {
        matches!(copied, Err(Error::Driver(error)) if error.kind == ErrorKind::InvalidValue)
    }

    fn trip<'a>(
        &'a self,
        route: &'a Route,
        touches: &'a [Touch<'a>],
        haul: Haul,
        dock: Dock,
    ) -> Trip<'a> {
        Trip {
            stream: self,
            touches,
            route,
            haul,
            dock,
        }
    }

    /// A copy of the bytes as they are.
    fn plain_trip<'a>(&'a self, route: &'a Route, touches: &'a [Touch<'a>]) -> Trip<'a> {
        self.trip(route, touches, Haul::Copy, Dock::Copy)
    }

    /// Nothing to copy: only see that the memory may be used here.
    fn copy_nothing(&self, touches: &[Touch<'_>]) -> Result<()> {
        touches
            .iter()
            .try_for_each(|touch| touch.region.may_be_used_by(self.shared()))
    }
}
