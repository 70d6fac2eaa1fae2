//! Twins of the kernels of the dot product.

use pinlane_driver::ParamKind::{Ptr, U64};
use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};

use super::BLOCK_BYTES;
use super::args::{ptr_of, u64_of};
use crate::dot::{Lanes, dot_partials, sum_of_partials};
use crate::{Kernel, Memory, TwinResult};

/// Atomic additions to one address per microsecond on a large GPU: ten million took 17.6 ms on an
/// H200.
const ATOMICS_PER_US: u64 = 570;

pub(super) const DOT_PARTIALS_F32: Kernel = Kernel {
    name: "pinlane_dot_partials_f32",
    params: &[U64, Ptr, Ptr, Ptr],
    run: dot_partials_f32,
    bytes_touched: |args| {
        let n = u64_of(&args[0]);
        n.saturating_mul(8).saturating_add(partials_bytes(n))
    },
    fixed_ns: |_| 0,
};

pub(super) const DOT_SUM_F64: Kernel = Kernel {
    name: "pinlane_dot_sum_f64",
    params: &[U64, Ptr, Ptr],
    run: dot_sum_f64,
    bytes_touched: |args| partials_bytes(u64_of(&args[0])) + 8,
    fixed_ns: |_| 0,
};

/// The additions to the one address are serialised.
pub(super) const DOT_ATOMIC_F32: Kernel = Kernel {
    name: "pinlane_dot_atomic_f32",
    params: &[U64, Ptr, Ptr, Ptr],
    run: dot_atomic_f32,
    bytes_touched: |args| u64_of(&args[0]).saturating_mul(8).saturating_add(8),
    fixed_ns: |args| u64_of(&args[0]).saturating_mul(1_000) / ATOMICS_PER_US,
};

fn partials_bytes(n: u64) -> u64 {
    8 * dot_partials(n as usize) as u64
}

/// Partial sums of the products, in the order of the kernel: (n, x, y, partials).
fn dot_partials_f32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let n = u64_of(&args[0]);
    let (x, y, partials) = (ptr_of(&args[1]), ptr_of(&args[2]), ptr_of(&args[3]));
    if n == 0 {
        return Ok(());
    }
    let mut lanes = Lanes::new(n as usize);
    for_both(memory, n, x, y, |x, y| lanes.add(x, y))?;
    memory.write(partials, bytemuck::cast_slice(&lanes.partials()))
}

/// `*result` = the sum of the partial sums of n products: (n, partials, result).
fn dot_sum_f64(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let n = u64_of(&args[0]);
    let (partials, result) = (ptr_of(&args[1]), ptr_of(&args[2]));
    let mut sums = vec![0.0; dot_partials(n as usize)];
    if !sums.is_empty() {
        memory.read(partials, bytemuck::cast_slice_mut(&mut sums))?;
    }
    memory.write(result, &sum_of_partials(&sums).to_le_bytes())
}

/// `*result += x[i] * y[i]` for `i < n`, in `f32`: (n, x, y, result). A GPU adds in any order, the
/// twin in order of the elements.
fn dot_atomic_f32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let n = u64_of(&args[0]);
    let (x, y, result) = (ptr_of(&args[1]), ptr_of(&args[2]), ptr_of(&args[3]));
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
    let mut at = 0;
    while at < n as usize {
        let items = (BLOCK_BYTES / 4).min(n as usize - at);
        xs.resize(items, 0.0);
        ys.resize(items, 0.0);
        memory.read(x.offset(4 * at), bytemuck::cast_slice_mut(&mut xs))?;
        memory.read(y.offset(4 * at), bytemuck::cast_slice_mut(&mut ys))?;
        work(&xs, &ys);
        at += items;
    }
    Ok(())
}
