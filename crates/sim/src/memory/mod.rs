//! Device and host memory: what an address belongs to.

pub(crate) mod device;
pub(crate) mod host;
mod kernel_view;

use pinlane_driver::PointerKind;

use self::device::device_of;
use self::host::Origin;
use crate::sim::Allocation;
use crate::state::State;

pub(crate) use self::host::HostBytes;
pub(crate) use self::kernel_view::KernelView;

impl State {
    /// The allocation or registration that contains an address.
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

    /// The kind of memory that an address points to.
    pub(crate) fn pointer_kind(&self, address: u64) -> pinlane_driver::Result<PointerKind> {
        let found = self.allocation(address);
        Ok(found.map_or(PointerKind::Pageable, |allocation| allocation.kind))
    }
}
