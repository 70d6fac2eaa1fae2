//! The CPU twins. The caller has checked the arguments against `params`.

mod args;
mod churn;
mod convert;
mod dot;
mod normalize;
mod pieces;

use args::{f32_of, ptr_of, u32_of, u64_of};
use pinlane_driver::ParamKind::{F32, Ptr, U32, U64};
use pinlane_driver::{DevicePtr, KernelArg, LaunchShape};

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

static ALL: &[Kernel] = &[
    Kernel {
        name: "pinlane_add_u32",
        params: &[U64, U32, Ptr],
        run: add_u32,
        bytes_touched: |args| u64_of(&args[0]).saturating_mul(8),
        fixed_ns: |_| 0,
    },
    Kernel {
        name: "pinlane_saxpy_f32",
        params: &[U64, F32, Ptr, Ptr],
        run: saxpy_f32,
        bytes_touched: |args| u64_of(&args[0]).saturating_mul(12),
        fixed_ns: |_| 0,
    },
    Kernel {
        name: "pinlane_copy_u8",
        params: &[U64, Ptr, Ptr],
        run: copy_u8,
        bytes_touched: |args| u64_of(&args[0]).saturating_mul(2),
        fixed_ns: |_| 0,
    },
    Kernel {
        name: "pinlane_spin",
        params: &[U64],
        run: |_, _, _| Ok(()),
        bytes_touched: |_| 0,
        fixed_ns: |args| u64_of(&args[0]),
    },
    churn::CHURN_U32,
    convert::F32_TO_BF16,
    convert::F32_TO_F16,
    convert::U8_TO_F32,
    dot::DOT_PARTIALS_F32,
    dot::DOT_SUM_F64,
    dot::DOT_ATOMIC_F32,
    normalize::NORMALIZE_U8_F32,
    normalize::NORMALIZE_U8_BF16,
    pieces::SCATTER,
    pieces::GATHER,
];

/// `data[i] += value` for `i < n`, wrapping: (n, value, data).
fn add_u32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let (n, value, data) = (u64_of(&args[0]), u32_of(&args[1]), ptr_of(&args[2]));
    for_blocks(n, 4, |at, bytes| {
        let mut block = vec![0; bytes];
        memory.read(data.offset(at), &mut block)?;
        for item in block.chunks_exact_mut(4) {
            let old = u32::from_le_bytes(item.try_into().expect("four bytes"));
            item.copy_from_slice(&old.wrapping_add(value).to_le_bytes());
        }
        memory.write(data.offset(at), &block)
    })
}

/// `y[i] = a * x[i] + y[i]` fused, for `i < n`: (n, a, x, y).
fn saxpy_f32(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let (n, a, x, y) = (
        u64_of(&args[0]),
        f32_of(&args[1]),
        ptr_of(&args[2]),
        ptr_of(&args[3]),
    );
    for_blocks(n, 4, |at, bytes| {
        let (mut xs, mut ys) = (vec![0; bytes], vec![0; bytes]);
        memory.read(x.offset(at), &mut xs)?;
        memory.read(y.offset(at), &mut ys)?;
        for (x, y) in xs.chunks_exact(4).zip(ys.chunks_exact_mut(4)) {
            let x = f32::from_le_bytes(x.try_into().expect("four bytes"));
            let old = f32::from_le_bytes((&*y).try_into().expect("four bytes"));
            y.copy_from_slice(&a.mul_add(x, old).to_le_bytes());
        }
        memory.write(y.offset(at), &ys)
    })
}

/// `target[i] = source[i]` for `i < n`: (n, source, target).
fn copy_u8(memory: &mut dyn Memory, _: LaunchShape, args: &[KernelArg]) -> TwinResult {
    let (n, source, target) = (u64_of(&args[0]), ptr_of(&args[1]), ptr_of(&args[2]));
    copy_blocks(memory, source, target, n)
}

fn copy_blocks(
    memory: &mut dyn Memory,
    source: DevicePtr,
    target: DevicePtr,
    bytes: u64,
) -> TwinResult {
    for_blocks(bytes, 1, |at, bytes| {
        let mut block = vec![0; bytes];
        memory.read(source.offset(at), &mut block)?;
        memory.write(target.offset(at), &block)
    })
}

/// Calls `work(offset, bytes)` for consecutive blocks of `n` items.
fn for_blocks(
    n: u64,
    item_bytes: usize,
    mut work: impl FnMut(usize, usize) -> TwinResult,
) -> TwinResult {
    let total = n as usize * item_bytes;
    let mut at = 0;
    while at < total {
        let bytes = BLOCK_BYTES.min(total - at);
        work(at, bytes)?;
        at += bytes;
    }
    Ok(())
}
