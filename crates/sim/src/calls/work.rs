//! Calls that submit copies, fills, kernels and callbacks; modules and their kernels.

use pinlane_driver::{
    Call, CopyOp, DevicePtr, FunctionHandle, HostCallback, KernelArg, LaunchShape, ModuleHandle,
    ParamKind, Result, StreamHandle,
};

use super::invalid;
use crate::module::Module;
use crate::operation::{Launch, StreamPoint, Work};
use crate::slab::Id;
use crate::state::{Function, State};

/// Most threads of a block, as on every CUDA device.
const BLOCK_THREADS_MAX: u64 = 1024;

impl State {
    /// Queues copies as one operation. Returns the point that the caller must wait for, if `wait`
    /// is set or a target is pageable.
    ///
    /// # Safety
    /// As for the driver's copy calls, for each of the copies.
    pub(crate) unsafe fn copy(
        &mut self,
        device: usize,
        call: Call,
        copies: &[CopyOp],
        stream: StreamHandle,
        wait: bool,
    ) -> Result<Vec<StreamPoint>> {
        let stream = self.stream(device, stream, call)?;
        self.may_fail(call)?;
        // SAFETY: passed on to the caller.
        let Some(plan) = (unsafe { self.plan(device, call, copies)? }) else {
            return Ok(Vec::new());
        };
        let staging_ns = if plan.pageable_source {
            plan.transfer.alone_ns
        } else {
            0
        };
        let wait = wait || plan.pageable_target;
        self.trace.add(plan.transfer.bytes);
        let sequence = self.submit(stream, call, Work::Transfer(plan.transfer));
        // The driver copies a pageable source to its own buffer, in the calling thread.
        self.spend(staging_ns);
        Ok(wait
            .then_some(StreamPoint { stream, sequence })
            .into_iter()
            .collect())
    }

    /// # Safety
    /// As for the driver's `memset_async`.
    pub(crate) unsafe fn memset(
        &mut self,
        device: usize,
        ptr: DevicePtr,
        value: u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<()> {
        let call = Call::Memset;
        let stream = self.stream(device, stream, call)?;
        self.may_fail(call)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: passed on to the caller.
        let target = unsafe { self.plan_fill(device, call, ptr.0, bytes)? };
        let work = Work::Memset {
            target,
            value,
            bytes,
        };
        self.submit(stream, call, work);
        Ok(())
    }

    /// Takes the callback, unless the call fails.
    pub(crate) fn host_callback(
        &mut self,
        device: usize,
        stream: StreamHandle,
        callback: &mut Option<HostCallback>,
    ) -> Result<()> {
        let call = Call::HostCallback;
        let stream = self.stream(device, stream, call)?;
        self.may_fail(call)?;
        if let Some(callback) = callback.take() {
            self.callbacks.pending += 1;
            self.submit(stream, call, Work::Callback(callback));
        }
        Ok(())
    }

    pub(crate) fn module_load(&mut self, device: usize, ptx: &str) -> Result<ModuleHandle> {
        let module = Module::parse(device, ptx)?;
        let id = self.modules.insert(module);
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { ModuleHandle::from_raw(id.handle()) })
    }

    pub(crate) fn module_unload(&mut self, device: usize, module: ModuleHandle) -> Result<()> {
        let id = self.module(device, module, Call::ModuleUnload)?;
        if let Some(module) = self.modules.remove(id) {
            for (_, function) in module.functions {
                self.functions.remove(function);
            }
        }
        Ok(())
    }

    pub(crate) fn module_function(
        &mut self,
        device: usize,
        module: ModuleHandle,
        wanted: &str,
    ) -> Result<FunctionHandle> {
        let id = self.module(device, module, Call::ModuleFunction)?;
        let module = self.modules.get_mut(id).expect("a checked handle");
        let known = module.functions.iter().find(|(known, _)| known == wanted);
        if let Some((_, function)) = known {
            // SAFETY: the handle of a live object; the simulator checks every handle it gets.
            return Ok(unsafe { FunctionHandle::from_raw(function.handle()) });
        }
        let kernel = module.twin(wanted, &self.config.kernels)?;
        let function: Id = self.functions.insert(Function { device, kernel });
        module.functions.push((wanted.to_owned(), function));
        // SAFETY: the handle of a live object; the simulator checks every handle it gets.
        Ok(unsafe { FunctionHandle::from_raw(function.handle()) })
    }

    pub(crate) fn launch(
        &mut self,
        device: usize,
        function: FunctionHandle,
        shape: LaunchShape,
        args: &[KernelArg],
        stream: StreamHandle,
    ) -> Result<()> {
        let call = Call::Launch;
        let kernel = self.kernel(device, function, call)?;
        let stream = self.stream(device, stream, call)?;
        check_launch(kernel.params, shape, args)?;
        self.may_fail(call)?;
        let launch = Launch {
            kernel,
            shape,
            args: args.to_vec(),
            moment: self.moment(),
        };
        self.submit(stream, call, Work::Kernel(Box::new(launch)));
        Ok(())
    }
}

/// Checks that shape and arguments fit the kernel.
fn check_launch(params: &[ParamKind], shape: LaunchShape, args: &[KernelArg]) -> Result<()> {
    let refused = |detail: String| Err(invalid(Call::Launch, detail));
    let threads: u64 = shape.block.iter().map(|&n| u64::from(n)).product();
    if shape.grid.contains(&0) || threads == 0 || threads > BLOCK_THREADS_MAX {
        return refused(format!(
            "invalid shape: grid {:?} of blocks {:?}",
            shape.grid, shape.block
        ));
    }
    if params.len() != args.len() {
        let (given, expected) = (args.len(), params.len());
        return refused(format!("{given} arguments for {expected} parameters"));
    }
    for (index, (param, arg)) in params.iter().zip(args).enumerate() {
        if arg.kind() != *param {
            let kind = arg.kind();
            return refused(format!("argument {index} is {kind:?}, expected {param:?}"));
        }
    }
    Ok(())
}
