//! Copies of many pieces, gathered into few large ones.

use std::collections::HashMap;
use std::ops::Range;

use bytemuck::Pod;

use super::pieces::PieceList;
use crate::driver_copy::{Direction, enqueue, same_len};
use crate::memory::{DeviceRegion, DeviceSlice, DeviceSliceMut, Touch};
use crate::transfer_protocol::Extent;
use crate::{Result, Stream, helper_threads};

/// Capacity for more pieces than this is not reserved in advance: size hints may be wrong.
const RESERVED_PIECES_AT_MOST: usize = 1 << 16;

impl Stream {
    /// Copies many pieces of ordinary memory to as many places on the device, in few copies:
    /// thousands of small pieces cost little more than one large one.
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
        let pieces = pieces.into_iter().map(|(source, target)| {
            same_len(source.len(), target.len())?;
            Ok((source.as_ptr().cast_mut().cast(), target.span()))
        });
        self.copy_many(pieces, Direction::Upload)
    }

    /// Copies many pieces of device memory into as many places in ordinary memory, in few copies,
    /// and returns when they have arrived. On an error the contents of the targets are unspecified.
    pub fn download_many<'a, T: Pod>(
        &self,
        pieces: impl IntoIterator<Item = (DeviceSlice<'a, T>, &'a mut [T])>,
    ) -> Result<()> {
        let pieces = pieces.into_iter().map(|(source, target)| {
            same_len(source.len(), target.len())?;
            Ok((target.as_mut_ptr().cast(), source.span()))
        });
        self.copy_many(pieces, Direction::Download)
    }

    fn copy_many<'a>(
        &self,
        pieces: impl Iterator<Item = Result<(*mut u8, (&'a DeviceRegion, Range<usize>))>>,
        direction: Direction,
    ) -> Result<()> {
        let express = self.express();
        if express.config.lanes > 1 {
            helper_threads::wake();
        }
        let mut collector = PieceCollector::with_capacity(pieces.size_hint().0);
        for piece in pieces {
            let (host, device) = piece?;
            collector.push(host, device);
        }
        let (pieces, touches) = collector.finish(direction == Direction::Upload);
        if pieces.staged_bytes == 0 {
            return self.copy_nothing(&touches);
        }
        self.refuse_capture()?;
        if let Some(slot) = express.claim_first_slot(&express.ring)? {
            return express.run(slot, self.staged(direction, &pieces, &touches));
        }
        // No memory can be pinned: one driver copy for each piece.
        pieces.list.iter().try_for_each(|piece| {
            let copy = direction.copy(piece.host, piece.device, piece.bytes);
            // SAFETY: both ends of a piece hold its bytes, and are borrowed until the copy is done,
            // since this returns only then.
            self.submit_borrowed_and_drain(&touches, unsafe { enqueue(copy) })
        })
    }
}

/// Collects pieces and the device buffers that they touch, in one pass: the link is idle until
/// thousands of them are read.
struct PieceCollector<'a> {
    pieces: PieceList,
    regions: Vec<(&'a DeviceRegion, Vec<Range<usize>>)>,
    /// Index of each region in `regions`.
    known: HashMap<*const DeviceRegion, usize>,
    last: usize,
    capacity: usize,
}

impl<'a> PieceCollector<'a> {
    fn with_capacity(pieces: usize) -> Self {
        let capacity = pieces.min(RESERVED_PIECES_AT_MOST);
        Self {
            pieces: PieceList::with_capacity(capacity),
            regions: Vec::new(),
            known: HashMap::new(),
            last: 0,
            capacity,
        }
    }

    /// Adds host memory, and the bytes of a device buffer that belong to it.
    fn push(&mut self, host: *mut u8, (region, bytes): (&'a DeviceRegion, Range<usize>)) {
        let device = region.ptr().offset(bytes.start);
        self.pieces.push(host, device, bytes.len());
        // Most pieces lie in the same buffer as the one before.
        let same = self.regions.get(self.last);
        if !same.is_some_and(|(last, _)| std::ptr::eq(*last, region)) {
            let regions = &mut self.regions;
            let known = self.known.entry(std::ptr::from_ref(region));
            self.last = *known.or_insert_with(|| {
                let capacity = if regions.is_empty() { self.capacity } else { 0 };
                regions.push((region, Vec::with_capacity(capacity)));
                regions.len() - 1
            });
        }
        self.regions[self.last].1.push(bytes);
    }

    /// The pieces, and one touch for each device buffer, however many pieces lie in it.
    fn finish(self, writes: bool) -> (PieceList, Vec<Touch<'a>>) {
        let touch = |(region, ranges)| Touch {
            region,
            extent: Extent::many(ranges),
            writes,
        };
        (self.pieces, self.regions.into_iter().map(touch).collect())
    }
}
