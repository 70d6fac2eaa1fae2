//! Copies that bypass the caches, for a target that this CPU does not read soon.

use crate::Instructions;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::vector_instructions::{LINE_BYTES, Level};

/// Copies with stores that bypass the caches if the CPU has them, else plainly.
///
/// A plain copy reads each line of the target before it writes it, and evicts others from the
/// caches. The bytes are visible to other threads and to devices as after a plain copy.
///
/// ```
/// let source: Vec<u8> = (0..200).collect();
/// let mut target = vec![0; 200];
/// pinlane_kernels::copy_streaming(&source, &mut target);
/// assert_eq!(target, source);
/// ```
///
/// # Panics
/// If the lengths differ.
pub fn copy_streaming(source: &[u8], target: &mut [u8]) {
    Instructions::best().copy_streaming(source, target);
}

/// [`copy_streaming`] for memory that must not be borrowed as a slice.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and they do not overlap.
pub unsafe fn copy_streaming_raw(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller keeps the contract.
    unsafe { Instructions::best().copy_streaming_raw(source, target, bytes) }
}

impl Instructions {
    /// [`copy_streaming`] with these instructions.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy_streaming(self, source: &[u8], target: &mut [u8]) {
        let (from, to) = (source.len(), target.len());
        assert_eq!(from, to, "source and target differ in length");
        // SAFETY: two slices of this length, one of them exclusive, so they do not overlap.
        unsafe { self.copy_streaming_raw(source.as_ptr(), target.as_mut_ptr(), source.len()) }
    }

    /// [`copy_streaming_raw`] with these instructions.
    ///
    /// # Safety
    /// As for [`copy_streaming_raw`].
    pub unsafe fn copy_streaming_raw(self, source: *const u8, target: *mut u8, bytes: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let stream_lines = match self.level() {
                Level::Portable => None,
                Level::Avx2 => Some(stream_lines_avx2 as unsafe fn(*const u8, *mut u8, usize)),
                Level::Avx512 => Some(stream_lines_avx512 as _),
            };
            if let Some(stream_lines) = stream_lines {
                // SAFETY: the caller keeps the contract, and a value of `Instructions` proves that
                // the CPU has them.
                return unsafe { copy_by_lines(source, target, bytes, stream_lines) };
            }
        }
        // SAFETY: the caller keeps the contract.
        unsafe { target.copy_from_nonoverlapping(source, bytes) }
    }
}

/// Copies whole lines of the target with `stream_lines`, and the ends plainly.
///
/// # Safety
/// As for [`copy_streaming_raw`]; `stream_lines` may be called on this CPU.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn copy_by_lines(
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    stream_lines: unsafe fn(*const u8, *mut u8, usize),
) {
    let head_bytes = target.align_offset(LINE_BYTES).min(bytes);
    let lines = (bytes - head_bytes) / LINE_BYTES;
    let tail = head_bytes + lines * LINE_BYTES;
    // SAFETY: head, lines and tail are the `bytes` bytes that the caller guarantees. If there are
    // lines, the head ends at a multiple of `LINE_BYTES`. The fence precedes any other access to the
    // target.
    unsafe {
        target.copy_from_nonoverlapping(source, head_bytes);
        if lines > 0 {
            stream_lines(source.add(head_bytes), target.add(head_bytes), lines);
            std::arch::x86_64::_mm_sfence();
        }
        target
            .add(tail)
            .copy_from_nonoverlapping(source.add(tail), bytes - tail);
    }
}

/// # Safety
/// `source` is valid for reads and `target` for writes of this many lines, they do not overlap, and
/// `target` is aligned to `LINE_BYTES`. The target is not accessed before this thread's next
/// `sfence`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
unsafe fn stream_lines_avx2(source: *const u8, target: *mut u8, lines: usize) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};
    for line in 0..lines {
        // SAFETY: the caller guarantees this line on both sides and its alignment.
        unsafe {
            let (source, target) = (source.add(line * LINE_BYTES), target.add(line * LINE_BYTES));
            let low = _mm256_loadu_si256(source.cast());
            let high = _mm256_loadu_si256(source.add(32).cast());
            _mm256_stream_si256(target.cast(), low);
            _mm256_stream_si256(target.add(32).cast(), high);
        }
    }
}

/// # Safety
/// As for `stream_lines_avx2`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f")]
unsafe fn stream_lines_avx512(source: *const u8, target: *mut u8, lines: usize) {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_stream_si512};
    // Four loads before the first store keep more of them in flight.
    const STEP: usize = 4;
    let steps = lines / STEP;
    for step in 0..steps {
        // SAFETY: the caller guarantees these lines on both sides and their alignment.
        unsafe {
            let (source, target) = (
                source.add(step * STEP * LINE_BYTES),
                target.add(step * STEP * LINE_BYTES),
            );
            let values: [_; STEP] = std::array::from_fn(|line| {
                _mm512_loadu_si512(source.add(line * LINE_BYTES).cast())
            });
            for (line, value) in values.into_iter().enumerate() {
                _mm512_stream_si512(target.add(line * LINE_BYTES).cast(), value);
            }
        }
    }
    for line in steps * STEP..lines {
        // SAFETY: as above.
        unsafe {
            let (source, target) = (source.add(line * LINE_BYTES), target.add(line * LINE_BYTES));
            _mm512_stream_si512(target.cast(), _mm512_loadu_si512(source.cast()));
        }
    }
}
