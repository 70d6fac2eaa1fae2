//! Kernels that the express lane launches, loaded when they are first needed.

use std::sync::Arc;

use pinlane_driver::{DevicePtr, FunctionHandle, KernelArg, LaunchShape, StreamHandle};

use super::side::Side;
use crate::Result;
use crate::device_core::DeviceCore;
use crate::kernel::Code;

/// Blocks that keep any GPU busy.
const BLOCKS: u32 = 1024;
const THREADS: u32 = 256;

/// The kernels of one device. Unloaded with the last slot that was used by one.
pub(crate) struct Toolbox {
    code: Code,
    /// Where copies into scratch memory go when more of them follow.
    side: Side,
    scatter: FunctionHandle,
    gather: FunctionHandle,
    to_bf16: FunctionHandle,
    to_f16: FunctionHandle,
    from_u8: FunctionHandle,
}

/// Pieces in a staged chunk, with the table that says where they belong.
#[derive(Clone, Copy)]
pub(crate) struct Staged {
    pub(crate) table: DevicePtr,
    pub(crate) data: DevicePtr,
    pub(crate) pieces: usize,
    pub(crate) bytes: usize,
}

impl Toolbox {
    pub(crate) fn load(link: &Arc<DeviceCore>) -> Result<Self> {
        let code = Code::load(link, pinlane_kernels::PTX)?;
        let function = |name| link.driver.module_function(code.handle(), name);
        Ok(Self {
            scatter: function("pinlane_scatter")?,
            gather: function("pinlane_gather")?,
            to_bf16: function("pinlane_f32_to_bf16")?,
            to_f16: function("pinlane_f32_to_f16")?,
            from_u8: function("pinlane_u8_to_f32")?,
            side: Side::open(link)?,
            code,
        })
    }

    pub(crate) fn side(&self) -> &Side {
        &self.side
    }

    /// Copy every staged piece to its place.
    ///
    /// # Safety
    /// Table, staged data and all places are valid, and used by nobody else, until it is done.
    pub(crate) unsafe fn scatter(
        &self,
        staged: Staged,
        stream: StreamHandle,
    ) -> pinlane_driver::Result<()> {
        // SAFETY: passed on.
        unsafe { self.move_pieces(self.scatter, staged, stream) }
    }

    /// Copy every piece from its place into the staged data.
    ///
    /// # Safety
    /// As for [`scatter`](Self::scatter).
    pub(crate) unsafe fn gather(
        &self,
        staged: Staged,
        stream: StreamHandle,
    ) -> pinlane_driver::Result<()> {
        // SAFETY: passed on.
        unsafe { self.move_pieces(self.gather, staged, stream) }
    }

    unsafe fn move_pieces(
        &self,
        kernel: FunctionHandle,
        staged: Staged,
        stream: StreamHandle,
    ) -> pinlane_driver::Result<()> {
        // Few pieces are split, so that all of the GPU has something to do.
        let splits = (BLOCKS as usize / staged.pieces.max(1)).clamp(1, 64);
        let args = [
            KernelArg::U64(staged.pieces as u64),
            KernelArg::U32(splits as u32),
            KernelArg::Ptr(staged.table),
            KernelArg::Ptr(staged.data),
            KernelArg::U64(staged.bytes as u64),
        ];
        // SAFETY: these are its parameters; the caller vouches for the memory.
        unsafe { self.run(kernel, &args, staged.pieces * splits, stream) }
    }

    /// `items` f32 at `source` as bf16 at `target`.
    ///
    /// # Safety
    /// Both are valid, and used by nobody else, until it is done.
    pub(crate) unsafe fn to_bf16(
        &self,
        items: usize,
        source: DevicePtr,
        target: DevicePtr,
        stream: StreamHandle,
    ) -> pinlane_driver::Result<()> {
        let args = narrow_args(items, source, target);
        // SAFETY: these are its parameters; the caller vouches for the memory.
        unsafe { self.run(self.to_bf16, &args, blocks_for(items), stream) }
    }

    /// `items` f32 at `source` as f16 at `target`.
    ///
    /// # Safety
    /// As for [`to_bf16`](Self::to_bf16).
    pub(crate) unsafe fn to_f16(
        &self,
        items: usize,
        source: DevicePtr,
        target: DevicePtr,
        stream: StreamHandle,
    ) -> pinlane_driver::Result<()> {
        let args = narrow_args(items, source, target);
        // SAFETY: these are its parameters; the caller vouches for the memory.
        unsafe { self.run(self.to_f16, &args, blocks_for(items), stream) }
    }

    /// `items` u8 at `source` as `x * scale + offset` in f32 at `target`.
    ///
    /// # Safety
    /// As for [`to_bf16`](Self::to_bf16).
    pub(crate) unsafe fn scale_u8(
        &self,
        items: usize,
        (scale, offset): (f32, f32),
        source: DevicePtr,
        target: DevicePtr,
        stream: StreamHandle,
    ) -> pinlane_driver::Result<()> {
        let args = [
            KernelArg::U64(items as u64),
            KernelArg::F32(scale),
            KernelArg::F32(offset),
            KernelArg::Ptr(source),
            KernelArg::Ptr(target),
        ];
        // SAFETY: these are its parameters; the caller vouches for the memory.
        unsafe { self.run(self.from_u8, &args, blocks_for(items), stream) }
    }

    unsafe fn run(
        &self,
        kernel: FunctionHandle,
        args: &[KernelArg],
        blocks: usize,
        stream: StreamHandle,
    ) -> pinlane_driver::Result<()> {
        let shape = LaunchShape {
            grid: [blocks.clamp(1, BLOCKS as usize) as u32, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: 0,
        };
        // SAFETY: passed on. The code is kept by the slot that the launch uses.
        unsafe { self.code.driver().launch(kernel, shape, args, stream) }
    }
}

fn narrow_args(items: usize, source: DevicePtr, target: DevicePtr) -> [KernelArg; 3] {
    [
        KernelArg::U64(items as u64),
        KernelArg::Ptr(source),
        KernelArg::Ptr(target),
    ]
}

fn blocks_for(items: usize) -> usize {
    items.div_ceil(4 * THREADS as usize)
}
