//! Between any two kinds of floating-point numbers, as they lie in files.

use super::conversion::Stores;
use super::route::Route;
use crate::Instructions;

/// A kind of floating-point number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatKind {
    /// 16 bits, 5 of them exponent.
    F16,
    /// 16 bits, 8 of them exponent: the upper half of an `f32`.
    Bf16,
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

impl FloatKind {
    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Every number of the source in another kind: little-endian bytes, at any address.
///
/// Rounded once, to nearest, ties to even; too large a number becomes infinity; denormals are kept;
/// a NaN keeps its sign and the top of its payload and becomes quiet. Numbers of the same kind are
/// copied as they are.
///
/// ```
/// use pinlane_kernels::convert::{FloatKind, floats};
///
/// let source = [1.5_f64, -0.25].map(f64::to_le_bytes);
/// let mut target = [0; 4];
/// floats(FloatKind::F64, FloatKind::Bf16, source.as_flattened(), &mut target);
/// assert_eq!(target, [0xc0, 0x3f, 0x80, 0xbe]);
/// ```
///
/// # Panics
/// When source or target is no whole number of numbers, or the two do not hold equally many.
#[track_caller]
pub fn floats(from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
    Instructions::best().floats(from, to, source, target);
}

/// [`floats`] past the caches: the same bits, visible to other threads and to devices as after the
/// plain one.
///
/// # Panics
/// As [`floats`].
#[track_caller]
pub fn floats_streaming(from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
    Instructions::best().floats_streaming(from, to, source, target);
}

impl Instructions {
    /// [`floats`] with these instructions.
    ///
    /// # Panics
    /// As [`floats`].
    #[track_caller]
    pub fn floats(self, from: FloatKind, to: FloatKind, source: &[u8], target: &mut [u8]) {
        check(from, to, source, target);
        Route::new(self, Stores::Cached).run(from, to, source, target);
    }

    /// [`floats_streaming`] with these instructions.
    ///
    /// # Panics
    /// As [`floats`].
    #[track_caller]
    pub fn floats_streaming(
        self,
        from: FloatKind,
        to: FloatKind,
        source: &[u8],
        target: &mut [u8],
    ) {
        check(from, to, source, target);
        Route::new(self, Stores::Streaming).run(from, to, source, target);
    }
}

#[track_caller]
fn check(from: FloatKind, to: FloatKind, source: &[u8], target: &[u8]) {
    for (what, kind, bytes) in [("source", from, source.len()), ("target", to, target.len())] {
        assert!(
            bytes.is_multiple_of(kind.bytes()),
            "{what} of {bytes} bytes is no whole number of {kind:?}"
        );
    }
    assert_eq!(
        source.len() / from.bytes(),
        target.len() / to.bytes(),
        "source and target differ in length"
    );
}
