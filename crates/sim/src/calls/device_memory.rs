//! Calls that allocate and free device memory.

use pinlane_driver::{DevicePtr, ErrorKind, MemoryInfo, Result, StreamHandle};

use super::DeviceCall;
use crate::checks::FindingKind;
use crate::faults::FaultKind;
use crate::memory::device::{BlockKind, BlockState, DeviceMemory};
use crate::operation::Work;

impl DeviceCall<'_> {
    fn memory(&mut self) -> &mut DeviceMemory {
        &mut self.state.devices[self.device].memory
    }

    pub(crate) fn memory_info(&mut self) -> Result<MemoryInfo> {
        let memory = self.memory();
        Ok(MemoryInfo {
            free_bytes: memory.free_bytes(),
            total_bytes: memory.capacity_bytes,
        })
    }

    pub(crate) fn device_alloc(&mut self, bytes: usize) -> Result<DevicePtr> {
        self.new_block(bytes, BlockKind::Plain)
    }

    pub(crate) fn device_alloc_async(
        &mut self,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<DevicePtr> {
        let stream = self.stream(stream)?;
        let ptr = self.new_block(bytes, BlockKind::StreamOrdered)?;
        self.submit(stream, Work::Alloc(ptr.0));
        Ok(ptr)
    }

    fn new_block(&mut self, bytes: usize, kind: BlockKind) -> Result<DevicePtr> {
        if bytes == 0 {
            return Err(self.invalid("the size is 0 bytes"));
        }
        let injected = self.injector.hit(FaultKind::OutOfMemory);
        let free_bytes = self.memory().free_bytes();
        let address = match injected {
            true => None,
            false => self.memory().alloc(bytes as u64, kind),
        };
        self.trace.add(bytes as u64);
        address.map(DevicePtr).ok_or_else(|| {
            let why = if injected { " (injected)" } else { "" };
            let detail = format!("{bytes} bytes requested, {free_bytes} free{why}");
            self.error(ErrorKind::OutOfMemory, detail)
        })
    }

    pub(crate) fn device_free(&mut self, ptr: DevicePtr) -> Result<()> {
        let bytes = self.freeable(ptr, BlockKind::Plain)?;
        let users = self.cancel(|op| op.uses_device(ptr.0, ptr.0 + bytes));
        self.report_users(FindingKind::DeviceFreedInUse, &users);
        self.memory().remove(ptr.0);
        Ok(())
    }

    /// Reports work in flight that used memory which the call releases.
    pub(super) fn report_users(&mut self, kind: FindingKind, users: &[String]) {
        if !users.is_empty() {
            let detail = format!("still used by {}", users.join(", "));
            self.report_misuse(kind, detail);
        }
    }

    pub(crate) fn device_free_async(&mut self, ptr: DevicePtr, stream: StreamHandle) -> Result<()> {
        self.freeable(ptr, BlockKind::StreamOrdered)?;
        if self.devices[self.device].fatal.is_some() {
            self.memory().remove(ptr.0);
            return Ok(());
        }
        let stream = self.stream(stream)?;
        if let Some(block) = self.memory().at(ptr.0) {
            block.state = BlockState::FreeQueued;
        }
        self.submit(stream, Work::Free(ptr.0));
        Ok(())
    }

    /// Size of the block, if this call may free it. Reports misuse otherwise.
    fn freeable(&mut self, ptr: DevicePtr, kind: BlockKind) -> Result<u64> {
        let memory = self.memory();
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
            None if memory.was_freed(ptr.0) => (FindingKind::DoubleFree, "has already been freed"),
            None => (FindingKind::WrongFree, "is not device memory"),
        };
        let detail = format!("{ptr:?} {what}");
        self.report_misuse(finding, detail.clone());
        Err(self.invalid(detail))
    }
}
