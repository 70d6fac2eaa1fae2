//! What a lane does with the bytes of a slice: copy them, or convert them on the way.

use pinlane_kernels::{convert, copy_demoting_raw, copy_streaming_raw};

/// From host memory onto the wire, or from the wire into host memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Haul {
    /// As they are.
    Copy,
    /// f32 in host memory, bf16 on the wire.
    ToBf16,
    /// f32 in host memory, f16 on the wire.
    ToF16,
    /// u8 on the wire, f32 in host memory: `x * scale + offset`.
    FromU8 { scale: f32, offset: f32 },
}

/// How copies are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stores {
    /// Through the caches: right where the bytes are read again soon, and fit.
    Cached,
    /// Past the caches: spares reading what is overwritten.
    Streaming,
    /// Into the cache that all cores and the device share. The most work for the CPU, the least for
    /// memory.
    Demoted,
}

impl Haul {
    /// Host bytes for so many on the wire.
    pub(crate) fn host_bytes(self, wire_bytes: usize) -> usize {
        match self {
            Self::Copy => wire_bytes,
            Self::ToBf16 | Self::ToF16 => wire_bytes * 2,
            Self::FromU8 { .. } => wire_bytes * 4,
        }
    }

    /// Move `wire_bytes` from `source` to `target`. For [`Copy`](Self::Copy) and
    /// [`FromU8`](Self::FromU8) either may be host memory; f32 is always on the host.
    ///
    /// # Safety
    /// Both hold what the haul says for so many bytes on the wire, aligned to their elements, do
    /// not overlap, and nobody else writes the source or touches the target meanwhile.
    pub(crate) unsafe fn carry(
        self,
        source: *const u8,
        target: *mut u8,
        wire_bytes: usize,
        stores: Stores,
    ) {
        // SAFETY: what the caller vouches for.
        unsafe {
            match (self, stores) {
                (Self::Copy, Stores::Cached) => source.copy_to_nonoverlapping(target, wire_bytes),
                (Self::Copy, Stores::Streaming) => copy_streaming_raw(source, target, wire_bytes),
                (Self::Copy, Stores::Demoted) => copy_demoting_raw(source, target, wire_bytes),
                _ => self.convert(source, target, wire_bytes, stores),
            }
        }
    }

    /// # Safety
    /// As for [`carry`](Self::carry).
    unsafe fn convert(self, source: *const u8, target: *mut u8, wire_bytes: usize, stores: Stores) {
        let (items, streaming) = (self.items(wire_bytes), stores == Stores::Streaming);
        // SAFETY: the caller vouches for so many elements at both ends; any bits are valid.
        unsafe {
            match self {
                Self::Copy => source.copy_to_nonoverlapping(target, wire_bytes),
                Self::ToBf16 | Self::ToF16 => {
                    let source = std::slice::from_raw_parts(source.cast(), items);
                    let target = std::slice::from_raw_parts_mut(target.cast(), items);
                    match (self, streaming) {
                        (Self::ToBf16, false) => convert::f32_to_bf16(source, target),
                        (Self::ToBf16, true) => convert::f32_to_bf16_streaming(source, target),
                        (_, false) => convert::f32_to_f16(source, target),
                        (_, true) => convert::f32_to_f16_streaming(source, target),
                    }
                }
                Self::FromU8 { scale, offset } => {
                    let source = std::slice::from_raw_parts(source, items);
                    let target = std::slice::from_raw_parts_mut(target.cast(), items);
                    match streaming {
                        false => convert::u8_to_f32(source, scale, offset, target),
                        true => convert::u8_to_f32_streaming(source, scale, offset, target),
                    }
                }
            }
        }
    }

    /// Elements for so many bytes on the wire.
    fn items(self, wire_bytes: usize) -> usize {
        match self {
            Self::Copy | Self::FromU8 { .. } => wire_bytes,
            Self::ToBf16 | Self::ToF16 => wire_bytes / 2,
        }
    }
}
