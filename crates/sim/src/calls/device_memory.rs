//! Calls that allocate and free device memory.

use pinlane_driver::{Call, DevicePtr, ErrorKind, Result, StreamHandle};

use super::{error, invalid, name};
use crate::checks::FindingKind;
use crate::faults::FaultKind;
use crate::memory::device::{BlockKind, BlockState};
use crate::operation::Work;
use crate::state::State;

impl State {
    pub(crate) fn device_alloc(&mut self, device: usize, bytes: usize) -> Result<DevicePtr> {
        self.new_block(device, bytes, BlockKind::Plain, Call::DeviceAlloc)
    }

    pub(crate) fn device_alloc_async(
        &mut self,
        device: usize,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<DevicePtr> {
        let call = Call::DeviceAllocAsync;
        let stream = self.stream(device, stream, call)?;
        let ptr = self.new_block(device, bytes, BlockKind::StreamOrdered, call)?;
        self.submit(stream, call, Work::Alloc(ptr.0));
        Ok(ptr)
    }

    fn new_block(
        &mut self,
        device: usize,
        bytes: usize,
        kind: BlockKind,
        call: Call,
    ) -> Result<DevicePtr> {
        if bytes == 0 {
            return Err(invalid(call, "the size is 0 bytes"));
        }
        let injected = self.injector.hit(FaultKind::OutOfMemory);
        let memory = &mut self.devices[device].memory;
        let free_bytes = memory.free_bytes();
        let address = if injected {
            None
        } else {
            memory.alloc(bytes as u64, kind)
        };
        self.trace.add(bytes as u64);
        address.map(DevicePtr).ok_or_else(|| {
            let why = if injected { " (injected)" } else { "" };
            let detail = format!("{bytes} bytes requested, {free_bytes} free{why}");
            error(call, ErrorKind::OutOfMemory, detail)
        })
    }

    pub(crate) fn device_free(&mut self, device: usize, ptr: DevicePtr) -> Result<()> {
        let call = Call::DeviceFree;
        let bytes = self.freeable(device, ptr, BlockKind::Plain, call)?;
        let users = self.cancel_device_uses(ptr.0, ptr.0 + bytes);
        if !users.is_empty() {
            let detail = format!("still used by {}", users.join(", "));
            self.report(FindingKind::DeviceFreedInUse, name(call), detail);
        }
        self.devices[device].memory.remove(ptr.0);
        Ok(())
    }

    pub(crate) fn device_free_async(
        &mut self,
        device: usize,
        ptr: DevicePtr,
        stream: StreamHandle,
    ) -> Result<()> {
        let call = Call::DeviceFreeAsync;
        self.freeable(device, ptr, BlockKind::StreamOrdered, call)?;
        if self.devices[device].fatal.is_some() {
            self.devices[device].memory.remove(ptr.0);
            return Ok(());
        }
        let stream = self.stream(device, stream, call)?;
        if let Some(block) = self.devices[device].memory.at(ptr.0) {
            block.state = BlockState::FreeQueued;
        }
        self.submit(stream, call, Work::Free(ptr.0));
        Ok(())
    }

    /// Size of the block, if this call may free it. Reports misuse otherwise.
    fn freeable(
        &mut self,
        device: usize,
        ptr: DevicePtr,
        kind: BlockKind,
        call: Call,
    ) -> Result<u64> {
        let memory = &self.devices[device].memory;
        let (finding, what) = match memory.find(ptr.0, 0) {
            Some((base, _)) if base != ptr.0 => {
                (FindingKind::WrongBase, "points inside an allocation")
            }
            Some((_, block)) if block.state == BlockState::FreeQueued => (
                FindingKind::DoubleFree,
                "has already been freed in stream order",
            ),
            Some((_, block)) if block.kind == kind => return Ok(block.bytes),
            Some(_) if kind == BlockKind::Plain => {
                (FindingKind::WrongFree, "came from device_alloc_async")
            }
            Some(_) => (FindingKind::WrongFree, "came from device_alloc"),
            None if memory.was_issued(ptr.0) => (FindingKind::DoubleFree, "has already been freed"),
            None => (FindingKind::WrongFree, "is not device memory"),
        };
        let detail = format!("{ptr:?} {what}");
        self.report(finding, name(call), detail.clone());
        Err(invalid(call, detail))
    }
}
