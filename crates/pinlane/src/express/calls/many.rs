//! Copies of many pieces, gathered into few large ones.

use std::collections::HashMap;
use std::ops::Range;

use bytemuck::Pod;

use super::super::route::Route;
use crate::core::Extent;
use crate::memory::{DeviceRegion, DeviceSlice, DeviceSliceMut, Touch};
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
    /// # let sim = pinlane_sim::Sim::new(pinlane_model::Profile::builtin("pcie3-x16").unwrap());
    /// # let device = pinlane::Device::open(&sim, 0)?;
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
        self.express().rouse();
        let pieces: Vec<_> = pieces.into_iter().collect();
        for (source, target) in &pieces {
            same_len(source.len(), target.len())?;
        }
        let touches = touches(true, pieces.iter().map(|(_, target)| target.span()));
        let route = Route::many(pieces.iter().map(|(source, target)| {
            let host = source.as_ptr().cast_mut().cast();
            (host, target.device_ptr(), size_of_val(*source))
        }));
        if route.wire_bytes() == 0 {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        let express = self.express();
        let Some(slot) = express.board(&express.ring)? else {
            for (source, target) in pieces {
                self.driver_copy_to_device(source, target)?;
            }
            return Ok(());
        };
        express.upload(slot, self.plain_trip(&route, &touches))
    }

    /// Copy many pieces of device memory into as many places in ordinary memory, as few copies, and
    /// return when they are there. On an error the contents of the targets are unspecified.
    pub fn download_many<'a, T: Pod>(
        &self,
        pieces: impl IntoIterator<Item = (DeviceSlice<'a, T>, &'a mut [T])>,
    ) -> Result<()> {
        self.express().rouse();
        let mut pieces: Vec<_> = pieces.into_iter().collect();
        for (source, target) in &pieces {
            same_len(source.len(), target.len())?;
        }
        let touches = touches(false, pieces.iter().map(|(source, _)| source.span()));
        let route = Route::many(pieces.iter_mut().map(|(source, target)| {
            let bytes = size_of_val(*target);
            (target.as_mut_ptr().cast(), source.device_ptr(), bytes)
        }));
        if route.wire_bytes() == 0 {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        let express = self.express();
        let Some(slot) = express.board(&express.ring)? else {
            for (source, target) in pieces {
                self.driver_copy_to_host(source, target)?;
            }
            return Ok(());
        };
        express.download(slot, self.plain_trip(&route, &touches))
    }
}

/// One touch for each device buffer, whatever the number of pieces in it.
fn touches<'a>(
    writes: bool,
    pieces: impl Iterator<Item = (&'a DeviceRegion, Range<usize>)>,
) -> Vec<Touch<'a>> {
    let mut regions: Vec<(&'a DeviceRegion, Vec<Range<usize>>)> = Vec::new();
    let mut known: HashMap<*const DeviceRegion, usize> = HashMap::new();
    let mut last = 0;
    for (region, bytes) in pieces {
        // Most pieces lie in the same buffer as the one before.
        let same = regions
            .get(last)
            .is_some_and(|(one, _)| std::ptr::eq(*one, region));
        if !same {
            last = *known.entry(std::ptr::from_ref(region)).or_insert_with(|| {
                regions.push((region, Vec::new()));
                regions.len() - 1
            });
        }
        regions[last].1.push(bytes);
    }
    let touch = |(region, ranges)| Touch {
        region,
        extent: Extent::many(ranges),
        writes,
    };
    regions.into_iter().map(touch).collect()
}
