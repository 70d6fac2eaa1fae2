//! Host memory, allocated pinned or registered in place, and the kinds of addresses.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;
use cudarc::driver::sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
use cudarc::driver::sys::CUpointer_attribute::{
    CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
};
use cudarc::driver::sys::CUresult::CUDA_ERROR_INVALID_VALUE;
use pinlane_driver::{
    DevicePtr, Error, ErrorKind, HostFlags, HostPtr, PointerKind, RegisterFlags, Result,
};

use crate::error;
use crate::open_device::{CudaDevice, device_call};
use crate::registered_ranges::registered;

/// The alignment of pinned memory that the trait promises.
const PAGE_BYTES: usize = 4096;

impl CudaDevice {
    pub(crate) fn host_alloc(&self, bytes: usize, flags: HostFlags) -> Result<HostPtr> {
        // Whole pages, since the driver places several small allocations in one.
        let bytes = bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(bytes);
        let mut ptr = ptr::null_mut();
        // SAFETY: `ptr` outlives the call.
        unsafe { device_call!(self.cuMemHostAlloc(&mut ptr, bytes, host_bits(flags))) }?;
        let ptr = HostPtr::new(ptr.cast())
            .ok_or_else(|| Error::new(ErrorKind::OutOfMemory, "cuMemHostAlloc"))?;
        if !address_of(ptr).is_multiple_of(PAGE_BYTES as u64) {
            // SAFETY: just allocated and not used.
            unsafe { self.host_free(ptr)? };
            let detail = format!("the {bytes} bytes are not aligned to a page");
            return Err(Error::new(ErrorKind::NotSupported, "cuMemHostAlloc").with_detail(detail));
        }
        // A registration stays listed if its device was closed before it was undone.
        registered().remove_overlapping(address_of(ptr), bytes as u64);
        Ok(ptr)
    }

    pub(crate) unsafe fn host_free(&self, ptr: HostPtr) -> Result<()> {
        // SAFETY: the caller gives up an allocation that nothing uses.
        unsafe { device_call!(self.cuMemFreeHost(ptr.as_ptr().cast())) }
    }

    pub(crate) unsafe fn host_register(
        &self,
        ptr: HostPtr,
        bytes: usize,
        flags: RegisterFlags,
    ) -> Result<()> {
        let _current = self.enter()?;
        let (raw, bits) = (ptr.as_ptr().cast(), register_bits(flags));
        // SAFETY: the caller keeps the range mapped until it is unregistered.
        let code = unsafe { (self.calls().cuMemHostRegister_v2)(raw, bytes, bits) };
        let kind = error::kind_when_registering;
        self.library.check_as("cuMemHostRegister_v2", code, kind)?;
        registered().insert(address_of(ptr), bytes as u64);
        Ok(())
    }

    pub(crate) unsafe fn host_unregister(&self, ptr: HostPtr) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller guarantees that no work uses the range.
        let code = unsafe { (self.calls().cuMemHostUnregister)(ptr.as_ptr().cast()) };
        let kind = error::kind_when_unregistering;
        self.library.check_as("cuMemHostUnregister", code, kind)?;
        registered().remove(address_of(ptr));
        Ok(())
    }

    pub(crate) fn host_device_ptr(&self, ptr: HostPtr) -> Result<DevicePtr> {
        let (mut device, host) = (0, ptr.as_ptr().cast());
        // SAFETY: `device` outlives the call, which does not dereference the host address.
        unsafe { device_call!(self.cuMemHostGetDevicePointer_v2(&mut device, host, 0)) }?;
        Ok(DevicePtr(device))
    }

    pub(crate) fn pointer_kind(&self, address: u64) -> Result<PointerKind> {
        const UNKNOWN: u32 = CUDA_ERROR_INVALID_VALUE as u32;
        const HOST: u32 = CU_MEMORYTYPE_HOST as u32;
        const DEVICE: u32 = CU_MEMORYTYPE_DEVICE as u32;

        let _current = self.enter()?;
        let (mut memory_type, mut managed) = (0_u32, 0_u32);
        let mut attributes = [
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            CU_POINTER_ATTRIBUTE_IS_MANAGED,
        ];
        let mut values: [*mut c_void; 2] = [
            ptr::from_mut(&mut memory_type).cast(),
            ptr::from_mut(&mut managed).cast(),
        ];
        // For an unknown address this call succeeds and leaves zeros, unlike the one for a single
        // attribute.
        // SAFETY: every attribute has a place of its size, and all outlive the call.
        let code = unsafe {
            (self.calls().cuPointerGetAttributes)(
                attributes.len() as u32,
                attributes.as_mut_ptr(),
                values.as_mut_ptr(),
                address,
            )
        };
        if code == UNKNOWN {
            return Ok(PointerKind::Pageable);
        }
        self.library.check("cuPointerGetAttributes", code)?;
        Ok(match memory_type {
            _ if managed != 0 => PointerKind::Managed,
            DEVICE => PointerKind::Device,
            HOST if registered().contains(address) => PointerKind::Registered,
            HOST => PointerKind::Pinned,
            _ => PointerKind::Pageable,
        })
    }
}

fn address_of(ptr: HostPtr) -> u64 {
    ptr.addr().get() as u64
}

fn host_bits(flags: HostFlags) -> u32 {
    bits(&[
        (flags.portable, sys::CU_MEMHOSTALLOC_PORTABLE),
        (flags.mapped, sys::CU_MEMHOSTALLOC_DEVICEMAP),
        (flags.write_combined, sys::CU_MEMHOSTALLOC_WRITECOMBINED),
    ])
}

fn register_bits(flags: RegisterFlags) -> u32 {
    bits(&[
        (flags.portable, sys::CU_MEMHOSTREGISTER_PORTABLE),
        (flags.mapped, sys::CU_MEMHOSTREGISTER_DEVICEMAP),
        (flags.read_only, sys::CU_MEMHOSTREGISTER_READ_ONLY),
    ])
}

fn bits(flags: &[(bool, u32)]) -> u32 {
    let set = flags.iter().filter(|(set, _)| *set);
    set.fold(0, |bits, (_, bit)| bits | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_mapped_to_the_drivers_bits() {
        assert_eq!(host_bits(HostFlags::default()), 1);
        let all = HostFlags {
            portable: true,
            mapped: true,
            write_combined: true,
        };
        assert_eq!(host_bits(all), 1 | 2 | 4);
        assert_eq!(register_bits(RegisterFlags::default()), 1);
        let all = RegisterFlags {
            portable: true,
            mapped: true,
            read_only: true,
        };
        assert_eq!(register_bits(all), 1 | 2 | 8);
    }
}
