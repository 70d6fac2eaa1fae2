//! What lies where: pieces of host memory, their places on the device, and the bytes between.
//!
//! All pieces of a copy are laid out one behind the other on the "wire", which is then cut into
//! chunks. A copy of one slice is a route of one leg.

use std::ops::Range;

use pinlane_driver::DevicePtr;

use super::plan;

/// One piece.
#[derive(Clone, Copy)]
pub(crate) struct Leg {
    /// Its host memory. Read only when it is the source.
    pub(crate) host: *mut u8,
    pub(crate) device: DevicePtr,
    /// Where it begins on the wire.
    pub(crate) at: usize,
    /// Its length on the wire.
    pub(crate) bytes: usize,
}

// SAFETY: a leg is only an address; who reads and writes there is settled by the copy it belongs to.
unsafe impl Send for Leg {}
// SAFETY: as above.
unsafe impl Sync for Leg {}

impl Leg {
    fn end(&self) -> usize {
        self.at + self.bytes
    }
}

/// Part of a leg.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) leg: &'a Leg,
    /// Where it begins in the leg.
    pub(crate) skip: usize,
    pub(crate) bytes: usize,
}

impl Part<'_> {
    /// Where it begins on the wire.
    pub(crate) fn at(&self) -> usize {
        self.leg.at + self.skip
    }
}

/// All pieces, in the order of the wire.
pub(crate) struct Route {
    legs: Vec<Leg>,
    wire_bytes: usize,
}

/// What passes through one slot of the ring.
pub(crate) struct Chunk {
    pub(crate) wire: Range<usize>,
    /// Legs that lie in it, wholly or in part.
    pub(crate) legs: Range<usize>,
}

/// Kernels move 16 bytes at a time where staged and final address have the same remainder.
pub(crate) const LANE_BYTES: usize = 16;

impl Route {
    /// A single slice.
    pub(crate) fn one(host: *mut u8, device: DevicePtr, wire_bytes: usize) -> Self {
        Self {
            legs: vec![Leg {
                host,
                device,
                at: 0,
                bytes: wire_bytes,
            }],
            wire_bytes,
        }
    }

    /// No piece yet, and room for so many.
    pub(crate) fn of(expected: usize) -> Self {
        Self {
            legs: Vec::with_capacity(expected),
            wire_bytes: 0,
        }
    }

    /// One more piece, laid so that kernels can move it in large words. What is contiguous on the
    /// device is so on the wire.
    pub(crate) fn add(&mut self, host: *mut u8, device: DevicePtr, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let (end, lane) = (self.wire_bytes, device.0 as usize % LANE_BYTES);
        let at = end + (lane + LANE_BYTES - end % LANE_BYTES) % LANE_BYTES;
        self.legs.push(Leg {
            host,
            device,
            at,
            bytes,
        });
        self.wire_bytes = at + bytes;
    }

    /// All pieces.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Leg> {
        self.legs.iter()
    }

    /// How many pieces.
    pub(crate) fn legs(&self) -> usize {
        self.legs.len()
    }

    /// The first piece.
    pub(crate) fn first(&self) -> &Leg {
        &self.legs[0]
    }

    pub(crate) fn wire_bytes(&self) -> usize {
        self.wire_bytes
    }

    /// Cut into chunks of at most `chunk_bytes` and `legs_at_most` legs.
    pub(crate) fn chunks(&self, chunk_bytes: usize, legs_at_most: usize) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for wire in plan::chunks(self.wire_bytes, chunk_bytes, self.legs.len() > 1) {
            let mut legs = self.legs_in(&wire);
            let mut start = wire.start;
            while legs.len() > legs_at_most {
                let cut = legs.start + legs_at_most;
                let end = self.legs[cut].at;
                chunks.push(Chunk {
                    wire: start..end,
                    legs: legs.start..cut,
                });
                (start, legs.start) = (end, cut);
            }
            if !legs.is_empty() {
                chunks.push(Chunk {
                    wire: start..wire.end,
                    legs,
                });
            }
        }
        chunks
    }

    fn legs_in(&self, wire: &Range<usize>) -> Range<usize> {
        let start = self.legs.partition_point(|leg| leg.end() <= wire.start);
        let end = self.legs.partition_point(|leg| leg.at < wire.end);
        start..end.max(start)
    }

    /// What lies in `wire`, which is inside of `chunk`.
    pub(crate) fn parts<'a>(
        &'a self,
        chunk: &Chunk,
        wire: Range<usize>,
    ) -> impl Iterator<Item = Part<'a>> {
        let legs = &self.legs[chunk.legs.clone()];
        let first = legs.partition_point(|leg| leg.end() <= wire.start);
        legs[first..]
            .iter()
            .take_while(move |leg| leg.at < wire.end)
            .map(move |leg| {
                let start = wire.start.max(leg.at);
                Part {
                    leg,
                    skip: start - leg.at,
                    bytes: wire.end.min(leg.end()) - start,
                }
            })
    }

    /// The same for all of `chunk`, with neighbours on the device merged.
    pub(crate) fn runs(&self, chunk: &Chunk) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for part in self.parts(chunk, chunk.wire.clone()) {
            let (at, device) = (part.at(), part.leg.device.offset(part.skip));
            match runs.last_mut() {
                Some(last)
                    if last.at + last.bytes == at && last.device.offset(last.bytes) == device =>
                {
                    last.bytes += part.bytes;
                }
                _ => runs.push(Run {
                    at,
                    device,
                    bytes: part.bytes,
                }),
            }
        }
        runs
    }
}

/// Bytes that lie side by side on the wire and on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) at: usize,
    pub(crate) device: DevicePtr,
    pub(crate) bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &[usize], gap: usize) -> Route {
        let (mut route, mut device) = (Route::of(sizes.len()), 0x1000);
        for &bytes in sizes {
            let host = std::ptr::without_provenance_mut(8);
            route.add(host, DevicePtr(device as u64), bytes);
            device += bytes + gap;
        }
        route
    }

    #[test]
    fn every_byte_is_in_one_part_of_one_slice() {
        let count = if cfg!(miri) { 60 } else { 500 };
        let sizes: Vec<usize> = (0..count).map(|i| (i * 7919) % 3000).collect();
        let route = pieces(&sizes, 3);
        let (mut seen, mut last) = (0, 0);
        for chunk in route.chunks(64 << 10, 40) {
            assert!(chunk.wire.start >= last && chunk.legs.len() <= 40);
            assert!(chunk.wire.len() <= 64 << 10);
            last = chunk.wire.end;
            let slice_bytes = 10_000;
            let mut start = chunk.wire.start;
            while start < chunk.wire.end {
                let end = chunk.wire.end.min(start + slice_bytes);
                seen += route
                    .parts(&chunk, start..end)
                    .map(|part| part.bytes)
                    .sum::<usize>();
                start = end;
            }
        }
        assert_eq!(seen, sizes.iter().sum::<usize>());
    }

    #[test]
    fn neighbours_are_merged_and_strangers_are_not() {
        let route = pieces(&[100, 50, 7, 4096], 0);
        let chunks = route.chunks(1 << 20, 100);
        assert_eq!(chunks.len(), 1);
        assert_eq!(route.runs(&chunks[0]).len(), 1);
        let route = pieces(&[100, 50, 7, 4096], 1);
        let chunks = route.chunks(1 << 20, 100);
        assert_eq!(route.runs(&chunks[0]).len(), 4);
    }

    #[test]
    fn pieces_have_the_lane_of_their_place() {
        let route = pieces(&[33, 1, 15, 16, 17, 100], 5);
        for leg in &route.legs {
            assert_eq!(leg.at % LANE_BYTES, leg.device.0 as usize % LANE_BYTES);
        }
    }
}
