//! The CPU twins. The caller has checked the arguments against `params`.

/// Binds the first arguments by type.
macro_rules! bind {
    ($args:ident => $($kind:ident($name:ident)),+) => {
        let [$(KernelArg::$kind($name),)+ ..] = *$args else {
            panic!("unexpected arguments: {:?}", $args);
        };
    };
}

mod benchmark_kernels;
mod convert;
mod dot;
mod normalize;
mod scatter_gather;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use pinlane_driver::{DevicePtr, KernelArg, LaunchShape, ParamKind};

pub use self::benchmark_kernels::{ROUND_TRIPS_ITEMS, SWEEP_BLOCKS};
use self::benchmark_kernels::{churn_u32, round_trips_u32, sweep_u32};
use self::convert::{f32_to_bf16, f32_to_f16, u8_to_f32};
use self::dot::{dot_atomic_f32, dot_partials_f32, dot_sum_f64};
use self::normalize::{normalize_u8_bf16, normalize_u8_f32};
use self::scatter_gather::{gather, scatter};
use crate::{Kernel, Memory, TwinResult};

/// Bytes that a twin works on at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// The built-in kernel with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Kernel> {
    builtin().iter().find(|kernel| kernel.name == name)
}

/// All built-in kernels.
#[must_use]
pub fn builtin() -> &'static [Kernel] {
    ALL
}

/// A table of kernels: the twin, whose name with a prefix is the kernel's, its parameters, the bytes
/// it touches, its fixed time, and the time in which it does not fill the device.
macro_rules! kernels {
    ($($run:ident($($param:ident),+): $bytes_touched:expr, $fixed_ns:expr, $tail_ns:expr;)+) => {
        &[$(Kernel {
            name: concat!("pinlane_", stringify!($run)),
            params: &[$(ParamKind::$param),+],
            run: $run,
            bytes_touched: $bytes_touched,
            fixed_ns: $fixed_ns,
            tail_ns: $tail_ns,
        }),+]
    };
}

static ALL: &[Kernel] = kernels! {
    add_u32(U64, U32, Ptr): per_item::<8>, none, none;
    saxpy_f32(U64, F32, Ptr, Ptr): per_item::<12>, none, none;
    copy_u8(U64, Ptr, Ptr): per_item::<2>, none, none;
    spin(U64): none, per_item::<1>, none;
    churn_u32(U64, U32, Ptr): per_item::<8>, benchmark_kernels::fixed_ns, none;
    sweep_u32(U64, U32, Ptr): benchmark_kernels::sweep_touched, none, none;
    round_trips_u32(U64, U32, Ptr): per_item::<8>, benchmark_kernels::round_trips_ns, benchmark_kernels::round_trips_tail_ns;
    f32_to_bf16(U64, Ptr, Ptr): per_item::<6>, none, none;
    f32_to_f16(U64, Ptr, Ptr): per_item::<6>, none, none;
    u8_to_f32(U64, F32, F32, Ptr, Ptr): per_item::<5>, none, none;
    dot_partials_f32(U64, Ptr, Ptr, Ptr): dot::partials_touched, none, none;
    dot_sum_f64(U64, Ptr, Ptr): dot::sum_touched, none, none;
    dot_atomic_f32(U64, Ptr, Ptr, Ptr): dot::atomic_touched, dot::atomic_ns, none;
    normalize_u8_f32(U64, U64, U32, Ptr, Ptr, Ptr): |args| normalize::touched(args, 5), none, none;
    normalize_u8_bf16(U64, U64, U32, Ptr, Ptr, Ptr): |args| normalize::touched(args, 3), none, none;
    scatter(U64, U32, Ptr, Ptr, U64): scatter_gather::touched, none, none;
    gather(U64, U32, Ptr, Ptr, U64): scatter_gather::touched, none, none;
};

fn none(_: &[KernelArg]) -> u64 {
    0
}

/// `N` for each item; the first argument is their number.
fn per_item<const N: u64>(args: &[KernelArg]) -> u64 {
    bind!(args => U64(n));
    n.saturating_mul(N)
}

/// Only takes time: (nanoseconds).
fn spin(_: &mut dyn Memory, _: LaunchShape, _: &[KernelArg]) -> TwinResult {
    Ok(())
}

/// `data[i] += value` for `i < n`, wrapping: (n, value, data).
fn add_u32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    bind!(args => U64(n), U32(value), Ptr(data));
    replace_u32(memory, n, data, |old| old.wrapping_add(value))
}

/// Replaces `n` numbers in place.
fn replace_u32(
    memory: &mut dyn Memory,
    n: u64,
    data: DevicePtr,
    new: impl Fn(u32) -> u32,
) -> TwinResult {
    let mut block = Vec::new();
    for_blocks(n, 4, |first, items| {
        read(memory, data, first, items, &mut block)?;
        block.iter_mut().for_each(|number| *number = new(*number));
        write(memory, data, first, &block)
    })
}

/// `y[i] = a * x[i] + y[i]` fused, for `i < n`: (n, a, x, y).
fn saxpy_f32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    bind!(args => U64(n), F32(a), Ptr(x), Ptr(y));
    let (mut xs, mut ys) = (Vec::<f32>::new(), Vec::new());
    for_blocks(n, 4, |first, items| {
        read(memory, x, first, items, &mut xs)?;
        read(memory, y, first, items, &mut ys)?;
        for (x, y) in xs.iter().zip(&mut ys) {
            *y = a.mul_add(*x, *y);
        }
        write(memory, y, first, &ys)
    })
}

/// `target[i] = source[i]` for `i < n`: (n, source, target).
fn copy_u8(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    bind!(args => U64(n), Ptr(source), Ptr(target));
    copy_blocks(memory, source, target, n, &mut Vec::new())
}

/// Copies bytes through `block`.
fn copy_blocks(
    memory: &mut dyn Memory,
    source: DevicePtr,
    target: DevicePtr,
    bytes: u64,
    block: &mut Vec<u8>,
) -> TwinResult {
    for_blocks(bytes, 1, |first, bytes| {
        read(memory, source, first, bytes, block)?;
        write(memory, target, first, block)
    })
}

/// Calls `work(first item, items)` for consecutive blocks of `n` items.
fn for_blocks(
    n: u64,
    item_bytes: usize,
    mut work: impl FnMut(usize, usize) -> TwinResult,
) -> TwinResult {
    let (n, block_items) = (n as usize, BLOCK_BYTES / item_bytes);
    let mut blocks = (0..n).step_by(block_items);
    blocks.try_for_each(|first| work(first, block_items.min(n - first)))
}

/// Reads items of an array into `block`. Callers reuse it, so that not every block is allocated and
/// zeroed.
fn read<T: Pod>(
    memory: &mut dyn Memory,
    array: DevicePtr,
    first: usize,
    items: usize,
    block: &mut Vec<T>,
) -> TwinResult {
    block.resize(items, T::zeroed());
    memory.read(array.offset(first * size_of::<T>()), cast_slice_mut(block))
}

/// Writes items of an array.
fn write<T: Pod>(
    memory: &mut dyn Memory,
    array: DevicePtr,
    first: usize,
    block: &[T],
) -> TwinResult {
    memory.write(array.offset(first * size_of::<T>()), cast_slice(block))
}
