//! Copies for a reader on the other side of the shared cache.
//!
//! What a core writes stays in its own cache, from where a device fetches it at less than half the
//! speed of its link. Some CPUs can be told to hand lines on to the shared cache, where the device
//! finds them: faster than through memory, and without the memory traffic.

use std::sync::OnceLock;

/// Whether this CPU can hand lines on.
#[must_use]
pub fn can_demote() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(detect)
}

/// Copy, and hand the lines of the target on to the shared cache. Where the CPU cannot, a plain copy.
///
/// ```
/// let (source, mut target) = ([7u8; 1000], [0u8; 1000]);
/// // SAFETY: two arrays of this length.
/// unsafe { pinlane_kernels::copy_demoting_raw(source.as_ptr(), target.as_mut_ptr(), 1000) };
/// assert_eq!(target, source);
/// ```
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and they do not overlap.
pub unsafe fn copy_demoting_raw(source: *const u8, target: *mut u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if can_demote() {
        // SAFETY: what the caller vouches for; the CPU has the instructions.
        return unsafe { x86::copy(source, target, bytes) };
    }
    // SAFETY: what the caller vouches for.
    unsafe { target.copy_from_nonoverlapping(source, bytes) }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn detect() -> bool {
    false
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn detect() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const CLDEMOTE: u32 = 1 << 25;
    let leaves = __cpuid(0).eax;
    leaves >= 7 && __cpuid_count(7, 0).ecx & CLDEMOTE != 0 && is_x86_feature_detected!("avx512f")
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512};

    use crate::LINE_BYTES;

    /// Four lines at a time keep several loads under way.
    const STEP_BYTES: usize = 4 * LINE_BYTES;

    /// Lines are handed on a little after they were written: at once would wait for the write.
    const LAG_BYTES: usize = 2 * STEP_BYTES;

    /// # Safety
    /// As for `copy_demoting_raw`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
        let steps = bytes / STEP_BYTES;
        for step in 0..steps {
            let at = step * STEP_BYTES;
            // SAFETY: the step is inside of both, and what lies `LAG_BYTES` before it, too.
            unsafe {
                copy_step(source.add(at), target.add(at));
                if at >= LAG_BYTES {
                    demote(target.add(at - LAG_BYTES), STEP_BYTES);
                }
            }
        }
        let tail = steps * STEP_BYTES;
        // SAFETY: what is left, inside of both.
        unsafe {
            let (source, target) = (source.add(tail), target.add(tail));
            target.copy_from_nonoverlapping(source, bytes - tail);
            let lagging = tail.min(LAG_BYTES);
            demote(target.sub(lagging), lagging + bytes - tail);
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn copy_step(source: *const u8, target: *mut u8) {
        // SAFETY: the caller vouches for four lines; any alignment is allowed.
        unsafe {
            let lines: [_; 4] = std::array::from_fn(|line| {
                _mm512_loadu_si512(source.add(line * LINE_BYTES).cast())
            });
            for (line, value) in lines.into_iter().enumerate() {
                _mm512_storeu_si512(target.add(line * LINE_BYTES).cast(), value);
            }
        }
    }

    #[inline]
    unsafe fn demote(start: *mut u8, bytes: usize) {
        let mut at = 0;
        while at < bytes {
            // SAFETY: a hint about a line of ours, which changes no contents. The assembler may
            // not know its name.
            unsafe {
                asm!(
                    ".byte 0x0f, 0x1c, 0x00", // cldemote [rax]
                    in("rax") start.add(at),
                    options(nostack, preserves_flags)
                );
            }
            at += LINE_BYTES;
        }
    }
}
