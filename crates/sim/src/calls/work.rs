//! Calls that submit copies, fills, kernels and callbacks; modules and their kernels.

use pinlane_driver::{
    CopyOp, DevicePtr, ErrorKind, FunctionHandle, HostCallback, KernelArg, LaunchShape,
    ModuleHandle, ParamKind, Place, Result, StreamHandle,
};

use super::DeviceCall;
use crate::module::Module;
use crate::operation::{Endpoint, Launch, Piece, Work};
use crate::slab::Id;
use crate::state::Function;
use crate::stream::StreamPoint;

/// Most threads of a block, as on every CUDA device.
const BLOCK_THREADS_MAX: u64 = 1024;

impl DeviceCall<'_> {
    /// Queues copies as one operation. Returns the point that the caller must wait for, if `wait`
    /// is set or a target is pageable.
    ///
    /// # Safety
    /// As for the driver's copy calls, for each of the copies.
    pub(crate) unsafe fn copy(
        &mut self,
        copies: &[CopyOp],
        stream: StreamHandle,
        wait: bool,
    ) -> Result<Vec<StreamPoint>> {
        let stream = self.stream(stream)?;
        self.may_fail()?;
        // SAFETY: passed on to the caller.
        let Some(transfer) = (unsafe { self.plan(copies)? }) else {
            return Ok(Vec::new());
        };
        let is_staged = |piece: &Piece| matches!(piece.source, Endpoint::Staged(_));
        // The driver copies a pageable source to its own buffer, in the calling thread.
        let staging_ns = match transfer.pieces.iter().any(is_staged) {
            true => transfer.alone_ns,
            false => 0,
        };
        let is_awaited = wait || transfer.pieces.iter().any(|it| it.target.is_pageable());
        self.trace.add(transfer.bytes);
        let sequence = self.submit(stream, Work::Transfer(transfer));
        self.spend(staging_ns);
        let point = StreamPoint { stream, sequence };
        Ok(is_awaited.then_some(point).into_iter().collect())
    }

    /// # Safety
    /// As for the driver's `memset_async`.
    pub(crate) unsafe fn memset_async(
        &mut self,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        let stream = self.stream(stream)?;
        self.may_fail()?;
        if bytes > 0 {
            // SAFETY: passed on to the caller.
            let target = unsafe { self.resolve(Place::Device(ptr), bytes, true)? };
            let work = Work::Memset {
                target,
                value,
                bytes,
            };
            self.submit(stream, work);
        }
        Ok(())
    }

    /// Takes the callback, unless the call fails.
    pub(crate) fn host_callback(
        &mut self,
        stream: StreamHandle,
        callback: &mut Option<HostCallback>,
    ) -> Result<()> {
        let stream = self.stream(stream)?;
        self.may_fail()?;
        if let Some(callback) = callback.take() {
            self.callbacks.pending += 1;
            self.submit(stream, Work::Callback(callback));
        }
        Ok(())
    }

    pub(crate) fn module_load(&mut self, ptx: &str) -> Result<ModuleHandle> {
        let parsed = Module::parse(self.device, ptx);
        let module = parsed.map_err(|why| self.error(ErrorKind::InvalidPtx, why))?;
        let id = self.modules.insert(module);
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { ModuleHandle::from_raw(id.handle()) })
    }

    pub(crate) fn module_unload(&mut self, module: ModuleHandle) -> Result<()> {
        let id = self.module(module)?;
        if let Some(module) = self.modules.remove(id) {
            for (_, function) in module.functions {
                self.functions.remove(function);
            }
        }
        Ok(())
    }

    pub(crate) fn module_function(
        &mut self,
        module: ModuleHandle,
        wanted: &str,
    ) -> Result<FunctionHandle> {
        let (id, device) = (self.module(module)?, self.device);
        let module = self.state.modules.get_mut(id).expect("a checked handle");
        let known = module.functions.iter().find(|(known, _)| known == wanted);
        let function: Id = match known {
            Some((_, function)) => *function,
            None => {
                let twin = module.twin(wanted, &self.state.config.kernels);
                let kernel = twin.map_err(|(kind, detail)| self.error(kind, detail))?;
                let function = self.functions.insert(Function { device, kernel });
                let module = self.modules.get_mut(id).expect("a checked handle");
                module.functions.push((wanted.to_owned(), function));
                function
            }
        };
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { FunctionHandle::from_raw(function.handle()) })
    }

    /// # Safety
    /// As for the driver's `launch`.
    pub(crate) unsafe fn launch(
        &mut self,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        let kernel = self.kernel(function)?;
        let stream = self.stream(stream)?;
        check_launch(kernel.params, shape, args).map_err(|detail| self.invalid(detail))?;
        self.may_fail()?;
        let launch = Launch {
            kernel,
            shape,
            args: args.to_vec(),
            moment: self.moment(),
        };
        self.submit(stream, Work::Kernel(Box::new(launch)));
        Ok(())
    }
}

/// Checks that shape and arguments fit the kernel; says why they do not.
fn check_launch(
    params: &[ParamKind],
    shape: LaunchShape,
    args: &[KernelArg],
) -> std::result::Result<(), String> {
    let LaunchShape { grid, block, .. } = shape;
    let threads: u64 = block.into_iter().map(u64::from).product();
    if grid.contains(&0) || threads == 0 || threads > BLOCK_THREADS_MAX {
        return Err(format!("invalid shape: grid {grid:?} of blocks {block:?}"));
    }
    if params.len() != args.len() {
        let (given, expected) = (args.len(), params.len());
        return Err(format!("{given} arguments for {expected} parameters"));
    }
    for (index, (param, kind)) in params
        .iter()
        .zip(args.iter().map(KernelArg::kind))
        .enumerate()
    {
        if kind != *param {
            return Err(format!("argument {index} is {kind:?}, expected {param:?}"));
        }
    }
    Ok(())
}
