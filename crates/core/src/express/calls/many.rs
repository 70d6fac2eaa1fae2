//! Copies of many pieces, gathered into few large ones.

use bytemuck::Pod;
use pinlane_driver::CopyOp;

use super::super::dock::{to_device, to_host};
use super::super::route::{Leg, Route};
use super::freight::Freight;
use crate::memory::{DeviceSlice, DeviceSliceMut, Touch};
use crate::transfer::same_len;
use crate::{Result, Stream};

impl Stream {
    /// Copy many pieces of ordinary memory to as many places on the device, as few copies: thousands
    /// of small ones cost little more than one large one.
    ///
    /// Returns as soon as all sources may be reused; the bytes arrive in stream order. On an error
    /// the contents of the targets are unspecified.
    ///
    /// ```
    /// # fn main() -> pinlane::Result<()> {
    /// # let device = pinlane::Device::sim("pcie3-x16")?;
    /// let stream = device.stream()?;
    /// let rows: Vec<Vec<u32>> = (0..1000).map(|row| vec![row; 7]).collect();
    /// let mut table = device.alloc::<u32>(1000 * 8)?; // each row padded to 8
    /// let places = table.whole_mut().chunks(8).map(|place| place.range(..7));
    /// stream.upload_many(rows.iter().map(Vec::as_slice).zip(places))?;
    /// # assert_eq!(stream.copy_to_vec(&table)?[8 * 999 + 6], 999);
    /// # Ok(())
    /// # }
    /// ```
    pub fn upload_many<'a, T: Pod>(
        &self,
        pieces: impl IntoIterator<Item = (&'a [T], DeviceSliceMut<'a, T>)>,
    ) -> Result<()> {
        let express = self.express();
        express.rouse();
        let pieces = pieces.into_iter();
        let mut freight = Freight::of(pieces.size_hint().0);
        for (source, target) in pieces {
            same_len(source.len(), target.len())?;
            freight.add(source.as_ptr().cast_mut().cast(), target.span());
        }
        let (route, touches) = freight.seal(true);
        if route.wire_bytes() == 0 {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        match express.board(&express.ring)? {
            Some(slot) => express.upload(slot, self.plain_trip(&route, &touches)),
            None => self.driver_copies(&touches, &route, |leg| {
                to_device(leg.host, leg.device, leg.bytes)
            }),
        }
    }

    /// Copy many pieces of device memory into as many places in ordinary memory, as few copies, and
    /// return when they are there. On an error the contents of the targets are unspecified.
    pub fn download_many<'a, T: Pod>(
        &self,
        pieces: impl IntoIterator<Item = (DeviceSlice<'a, T>, &'a mut [T])>,
    ) -> Result<()> {
        let express = self.express();
        express.rouse();
        let pieces = pieces.into_iter();
        let mut freight = Freight::of(pieces.size_hint().0);
        for (source, target) in pieces {
            same_len(source.len(), target.len())?;
            freight.add(target.as_mut_ptr().cast(), source.span());
        }
        let (route, touches) = freight.seal(false);
        if route.wire_bytes() == 0 {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        match express.board(&express.ring)? {
            Some(slot) => express.download(slot, self.plain_trip(&route, &touches)),
            None => self.driver_copies(&touches, &route, |leg| {
                to_host(leg.device, leg.host, leg.bytes)
            }),
        }
    }

    /// One copy of the driver's for each piece, for want of pinned memory.
    fn driver_copies(
        &self,
        touches: &[Touch<'_>],
        route: &Route,
        copy: impl Fn(&Leg) -> CopyOp,
    ) -> Result<()> {
        route.each().try_for_each(|leg| {
            self.submit_borrowed_and_drain(touches, |driver, stream| {
                // SAFETY: both ends of a leg hold its bytes, and are borrowed until the copy is
                // done, since this returns only then.
                unsafe { driver.copy_async(copy(leg), stream) }
            })
        })
    }
}
