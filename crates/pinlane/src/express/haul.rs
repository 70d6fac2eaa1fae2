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
        let host_bytes = self.host_bytes(wire_bytes);
        // SAFETY: what the caller vouches for; any bits are a valid element.
        unsafe {
            match (self, stores) {
                (Self::Copy, Stores::Cached) => source.copy_to_nonoverlapping(target, wire_bytes),
                (Self::Copy, Stores::Streaming) => copy_streaming_raw(source, target, wire_bytes),
                (Self::Copy, Stores::Demoted) => copy_demoting_raw(source, target, wire_bytes),
                (Self::ToBf16, _) => convert::f32_to_bf16(
                    std::slice::from_raw_parts(source.cast(), host_bytes / 4),
                    std::slice::from_raw_parts_mut(target.cast(), wire_bytes / 2),
                ),
                (Self::ToF16, _) => convert::f32_to_f16(
                    std::slice::from_raw_parts(source.cast(), host_bytes / 4),
                    std::slice::from_raw_parts_mut(target.cast(), wire_bytes / 2),
                ),
                (Self::FromU8 { scale, offset }, _) => convert::u8_to_f32(
                    std::slice::from_raw_parts(source, wire_bytes),
                    scale,
                    offset,
                    std::slice::from_raw_parts_mut(target.cast(), host_bytes / 4),
                ),
            }
        }
    }
}
