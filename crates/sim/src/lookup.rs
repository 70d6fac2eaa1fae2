//! What an address belongs to.

use pinlane_driver::PointerKind;

use crate::device_memory::device_of;
use crate::host_memory::Origin;
use crate::sim::Allocation;
use crate::state::State;

impl State {
    /// The allocation or registration that an address lies in.
    pub(crate) fn allocation(&self, address: u64) -> Option<Allocation> {
        if let Some(owner) = device_of(address) {
            let (base, block) = self.devices.get(owner)?.memory.find(address, 0)?;
            return Some(Allocation {
                kind: PointerKind::Device,
                base,
                bytes: block.bytes,
                device: Some(owner as u32),
                mapped: true,
            });
        }
        let pin = self.host.find(usize::try_from(address).ok()?)?;
        Some(Allocation {
            kind: match pin.origin {
                Origin::Allocated(_) => PointerKind::Pinned,
                Origin::Registered => PointerKind::Registered,
            },
            base: pin.range.address() as u64,
            bytes: pin.range.len() as u64,
            device: None,
            mapped: pin.mapped,
        })
    }

    /// What kind of memory an address is in.
    pub(crate) fn pointer_kind(&self, address: u64) -> PointerKind {
        let found = self.allocation(address);
        found.map_or(PointerKind::Pageable, |allocation| allocation.kind)
    }
}
