//! Twins of the kernels of the dot product.

use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};

use super::{for_blocks, per_item, read};
use crate::dot_cpu::{Lanes, dot_partials, sum_of_partials};
use crate::{Memory, TwinResult};

/// Atomic additions to one address per microsecond on a large GPU: ten million took 17.6 ms on an
/// H200.
const ATOMICS_PER_US: u64 = 570;

pub(super) fn partials_touched(args: &[KernelArg]) -> u64 {
    per_item::<8>(args).saturating_add(sum_touched(args) - 8)
}

pub(super) fn sum_touched(args: &[KernelArg]) -> u64 {
    8 * dot_partials(per_item::<1>(args) as usize) as u64 + 8
}

pub(super) fn atomic_touched(args: &[KernelArg]) -> u64 {
    per_item::<8>(args).saturating_add(8)
}

/// The additions to the one address are serialised.
pub(super) fn atomic_ns(args: &[KernelArg]) -> u64 {
    per_item::<1_000>(args) / ATOMICS_PER_US
}

/// Partial sums of the products, in the order of the kernel: (n, x, y, partials).
pub(super) fn dot_partials_f32(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> TwinResult {
    bind!(args => U64(n), Ptr(x), Ptr(y), Ptr(partials));
    if n == 0 {
        return Ok(());
    }
    let mut lanes = Lanes::new(n as usize);
    for_both(memory, n, x, y, |x, y| lanes.add(x, y))?;
    memory.write(partials, bytemuck::cast_slice(&lanes.partials()))
}

/// `*result` = the sum of the partial sums of n products: (n, partials, result).
pub(super) fn dot_sum_f64(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> TwinResult {
    bind!(args => U64(n), Ptr(partials), Ptr(result));
    let mut sums: Vec<f64> = Vec::new();
    if n > 0 {
        read(memory, partials, 0, dot_partials(n as usize), &mut sums)?;
    }
    memory.write(result, &sum_of_partials(&sums).to_le_bytes())
}

/// `*result += x[i] * y[i]` for `i < n`, in `f32`: (n, x, y, result). A GPU adds in any order, the
/// twin in order of the elements.
pub(super) fn dot_atomic_f32(
    memory: &mut dyn Memory,
    _: LaunchShape,
    args: &[KernelArg],
) -> TwinResult {
    bind!(args => U64(n), Ptr(x), Ptr(y), Ptr(result));
    if n == 0 {
        return Ok(());
    }
    let mut sum = [0.0f32];
    memory.read(result, bytemuck::cast_slice_mut(&mut sum))?;
    for_both(memory, n, x, y, |x, y| {
        sum[0] = x.iter().zip(y).fold(sum[0], |sum, (x, y)| sum + x * y);
    })?;
    memory.write(result, bytemuck::cast_slice(&sum))
}

/// Calls `work` with both vectors, block by block.
fn for_both(
    memory: &mut dyn Memory,
    n: u64,
    x: DevicePtr,
    y: DevicePtr,
    mut work: impl FnMut(&[f32], &[f32]),
) -> TwinResult {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for_blocks(n, 4, |first, items| {
        read(memory, x, first, items, &mut xs)?;
        read(memory, y, first, items, &mut ys)?;
        work(&xs, &ys);
        Ok(())
    })
}
