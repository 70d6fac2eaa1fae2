//! The driver's calls, by what they act on, and their costs.

mod memory;
mod stream;
mod work;

use std::ops::{Deref, DerefMut};

use pinlane_driver::{
    Call, Error, ErrorKind, EventHandle, FunctionHandle, ModuleHandle, Result, StreamHandle,
};
use pinlane_kernels::Kernel;
use pinlane_model::CallCosts;

use crate::checks::FindingKind;
use crate::faults::FaultKind;
use crate::module::Module;
use crate::operation::Work;
use crate::slab::{Id, Slab};
use crate::state::{Function, State};
use crate::stream::{Event, Stream};

pub(crate) use stream::PRIORITIES;

/// CUDA's code for a failed call into the operating system.
const OPERATING_SYSTEM: u32 = 304;

/// A call on one device, with the state of the machine.
pub(crate) struct DeviceCall<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) device: usize,
    pub(crate) call: Call,
}

impl Deref for DeviceCall<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state
    }
}

impl DerefMut for DeviceCall<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state
    }
}

impl DeviceCall<'_> {
    /// The error of the call.
    pub(crate) fn error(&self, kind: ErrorKind, detail: impl Into<String>) -> Error {
        Error::new(kind, self.call.name()).with_detail(detail)
    }

    /// The error of the call with an invalid argument.
    pub(crate) fn invalid(&self, detail: impl Into<String>) -> Error {
        self.error(ErrorKind::InvalidValue, detail)
    }

    /// Reports misuse by the call.
    pub(crate) fn report_misuse(&mut self, kind: FindingKind, detail: impl Into<String>) {
        self.state.report(kind, self.call.name(), detail);
    }

    /// May inject a failure of a submission, or of creating a stream or event.
    fn may_fail(&mut self) -> Result<()> {
        if !self.injector.hit(FaultKind::FailedSubmit) {
            return Ok(());
        }
        let code = OPERATING_SYSTEM;
        Err(self.error(ErrorKind::Other { code }, "(injected)"))
    }

    /// Submits work to a stream; returns its sequence number.
    fn submit(&mut self, stream: Id, work: Work) -> u64 {
        self.state.submit(stream, self.call, work)
    }

    /// The stream of a handle.
    pub(crate) fn stream(&self, handle: StreamHandle) -> Result<Id> {
        let is_valid = |it: &Stream| it.device == self.device && !it.destroyed;
        self.lookup(&self.streams, handle.raw(), is_valid, "stream")
    }

    /// The event of a handle.
    fn event(&self, handle: EventHandle) -> Result<Id> {
        let is_valid = |it: &Event| it.device == self.device;
        self.lookup(&self.events, handle.raw(), is_valid, "event")
    }

    /// The module of a handle.
    fn module(&self, handle: ModuleHandle) -> Result<Id> {
        let is_valid = |it: &Module| it.device == self.device;
        self.lookup(&self.modules, handle.raw(), is_valid, "module")
    }

    /// The kernel of a handle.
    fn kernel(&self, handle: FunctionHandle) -> Result<Kernel> {
        let is_valid = |it: &Function| it.device == self.device;
        let id = self.lookup(&self.functions, handle.raw(), is_valid, "function")?;
        Ok(self.functions.get(id).expect("a checked handle").kernel)
    }

    /// The id of a handle, if it is in the slab and valid.
    fn lookup<T>(
        &self,
        slab: &Slab<T>,
        handle: u64,
        is_valid: impl Fn(&T) -> bool,
        what: &str,
    ) -> Result<Id> {
        Id::of(handle)
            .filter(|&id| slab.get(id).is_some_and(is_valid))
            .ok_or_else(|| self.error(ErrorKind::InvalidHandle, format!("{what} {handle:#x}")))
    }
}

/// Whether a call releases something.
pub(crate) fn releases(call: Call) -> bool {
    matches!(
        call,
        Call::DeviceFree
            | Call::DeviceFreeAsync
            | Call::HostFree
            | Call::HostUnregister
            | Call::StreamDestroy
            | Call::EventDestroy
            | Call::ModuleUnload
    )
}

/// Host time of a call, without the part that depends on a size.
pub(crate) fn cost_ns(call: Call, costs: &CallCosts) -> u64 {
    match call {
        Call::Copy
        | Call::CopyAsync
        | Call::Copy2d
        | Call::Copy2dAsync
        | Call::CopyBatch
        | Call::Memset
        | Call::Launch
        | Call::HostCallback => costs.submit_ns,
        Call::StreamQuery | Call::EventQuery => costs.query_ns,
        Call::EventCreate | Call::EventDestroy | Call::EventRecord | Call::StreamWaitEvent => {
            costs.event_ns
        }
        Call::Synchronize
        | Call::StreamSynchronize
        | Call::EventSynchronize
        | Call::EventWaitTimeout => costs.sync_ns,
        Call::DeviceAlloc | Call::DeviceFree | Call::DeviceAllocAsync | Call::DeviceFreeAsync => {
            costs.device_alloc_ns
        }
        Call::StreamCreate | Call::StreamDestroy => costs.stream_ns,
        Call::ModuleLoad | Call::ModuleUnload => costs.module_ns,
        // Depends on the size; the call adds it.
        Call::HostAlloc | Call::HostFree | Call::HostRegister | Call::HostUnregister => 0,
        _ => costs.other_ns,
    }
}
