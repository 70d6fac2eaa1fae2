//! Device buffers whose memory is another library's.

use std::sync::Arc;

use bytemuck::Pod;

use super::DeviceBuf;
use crate::device::Shared;
use crate::fence::DeviceFence;
use crate::memory::Owner;

impl<T: Pod> DeviceBuf<T> {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.region.shared()
    }

    pub(crate) fn owner_mut(&mut self) -> Option<&mut Owner> {
        self.region.memory_mut().owner_mut()
    }

    /// Give the memory up, without freeing it. The caller has put the owner's later work behind
    /// all uses so far.
    pub(crate) fn take_owner(&mut self) -> Option<Owner> {
        let owner = self.region.memory_mut().take_owner()?;
        self.region.forget_uses();
        Some(owner)
    }

    /// Fences of all uses; `None` where nobody can tell when they end.
    pub(crate) fn uses(&self) -> Option<Vec<DeviceFence>> {
        (!self.is_stranded()).then(|| self.region.ledger().fences().cloned().collect())
    }

    /// Every use waits for `fence`, which is on a stream of the owner's.
    pub(crate) fn used_by_owner_until(&mut self, fence: DeviceFence) {
        let access = self.whole_mut().touch().access(Shared::next_stream_id());
        self.region.ledger().record(access, fence);
    }
}
