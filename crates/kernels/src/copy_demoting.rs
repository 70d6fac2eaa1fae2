//! Copies that end in the shared cache, for a device to read.
//!
//! Data that a core has written stays in its own cache, and a device reads it from there at less
//! than half the speed of the link. Some CPUs can demote lines to the shared cache: faster than
//! memory, and without memory traffic.

use std::sync::OnceLock;

/// Whether this CPU can demote cache lines.
#[must_use]
pub fn can_demote() -> bool {
    static CAN_DEMOTE: OnceLock<bool> = OnceLock::new();
    *CAN_DEMOTE.get_or_init(detect)
}

/// Copies and demotes the target to the shared cache. A plain copy on CPUs that cannot demote.
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
        // SAFETY: the caller keeps the contract, and the CPU has the instructions.
        return unsafe { x86::copy(source, target, bytes) };
    }
    // SAFETY: the caller keeps the contract.
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

    use crate::vector_instructions::LINE_BYTES;

    /// Four lines at a time keep several loads in flight.
    const STEP_BYTES: usize = 4 * LINE_BYTES;

    /// Lines are demoted a little later than written: at once would wait for the write.
    const LAG_BYTES: usize = 2 * STEP_BYTES;

    /// # Safety
    /// As for `copy_demoting_raw`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
        let steps = bytes / STEP_BYTES;
        for step in 0..steps {
            let at = step * STEP_BYTES;
            // SAFETY: the step and the bytes `LAG_BYTES` before it are inside both.
            unsafe {
                copy_step(source.add(at), target.add(at));
                if at >= LAG_BYTES {
                    demote(target.add(at - LAG_BYTES), STEP_BYTES);
                }
            }
        }
        let tail = steps * STEP_BYTES;
        // SAFETY: the rest is inside both.
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
        // SAFETY: the caller guarantees four lines; any alignment is allowed.
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
        for at in (0..bytes).step_by(LINE_BYTES) {
            // SAFETY: a hint that changes no contents. Written as bytes, since the assembler may not
            // know the instruction.
            unsafe {
                asm!(
                    ".byte 0x0f, 0x1c, 0x00", // cldemote [rax]
                    in("rax") start.add(at),
                    options(nostack, preserves_flags)
                );
            }
        }
    }
}
