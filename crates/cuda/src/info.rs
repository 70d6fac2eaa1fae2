//! Properties of a device that need no context.

use std::ffi::{CStr, c_char, c_int};
use std::fs;

use cudarc::driver::sys::CUdevice;
use cudarc::driver::sys::CUdevice_attribute::{self, *};
use cudarc::driver::sys::CUresult::{CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED};
use pinlane_driver::{DeviceInfo, PciAddress, Result};

use crate::library::{Library, call};

/// Longest name, with its terminating zero.
const NAME_BYTES: usize = 256;

/// Reads all properties of a device.
pub(crate) fn read(library: &Library, ordinal: u32, device: CUdevice) -> Result<DeviceInfo> {
    let number = |attribute| attribute_of(library, device, attribute);
    let count = |attribute| Ok(number(attribute)?.map_or(0, |value| value.max(0) as u32));
    let flag = |attribute| Ok(number(attribute)?.is_some_and(|value| value != 0));

    let mut info = DeviceInfo::new(ordinal, name(library, device)?);
    info.memory_bytes = memory_bytes(library, device)?;
    info.async_engines = count(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?;
    info.multiprocessors = count(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    info.compute_capability = (
        count(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        count(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    info.integrated = flag(CU_DEVICE_ATTRIBUTE_INTEGRATED)?;
    info.coherent = flag(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)?;
    info.can_map_host = flag(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)?;
    info.can_register = flag(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)?;
    info.can_register_read_only = flag(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)?;
    info.stream_ordered_alloc =
        flag(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? && library.has_async_alloc();
    info.batch_copy = library.has_batch_copy();
    info.driver_version = library.version;
    info.simulated = simulated(library, device)?;
    info.pci = pci(library, device)?;
    // The system does not know the address of a simulated device.
    let system = info.pci.filter(|_| info.simulated.is_none());
    info.numa_node = number(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)?
        .and_then(|node| u32::try_from(node).ok())
        .or_else(|| system.and_then(numa_node_of_system));
    Ok(info)
}

/// The value of an attribute; `None` if the driver does not know it.
fn attribute_of(
    library: &Library,
    device: CUdevice,
    attribute: CUdevice_attribute,
) -> Result<Option<c_int>> {
    const UNKNOWN: [u32; 2] = [
        CUDA_ERROR_INVALID_VALUE as u32,
        CUDA_ERROR_NOT_SUPPORTED as u32,
    ];
    let mut value = 0;
    // SAFETY: `value` outlives the call, and the device came from cuDeviceGet.
    let code = unsafe { (library.calls.cuDeviceGetAttribute)(&mut value, attribute, device) };
    if UNKNOWN.contains(&code) {
        return Ok(None);
    }
    library.check("cuDeviceGetAttribute", code)?;
    Ok(Some(value))
}

fn name(library: &Library, device: CUdevice) -> Result<String> {
    let mut text = [0 as c_char; NAME_BYTES];
    let (start, length) = (text.as_mut_ptr(), NAME_BYTES as c_int);
    // SAFETY: the driver writes at most the given length, with the terminating zero.
    unsafe { call!(library, cuDeviceGetName(start, length, device)) }?;
    Ok(text_of(text))
}

/// The profile of the device if the library is simcuda.
fn simulated(library: &Library, device: CUdevice) -> Result<Option<String>> {
    let Some(profile) = library.simulated_profile else {
        return Ok(None);
    };
    let mut text = [0 as c_char; NAME_BYTES];
    // SAFETY: as for cuDeviceGetName, which has the same contract.
    let code = unsafe { profile(device, text.as_mut_ptr(), NAME_BYTES as c_int) };
    library.check("pinlane_simcuda_profile", code)?;
    Ok(Some(text_of(text)))
}

/// The text up to its terminating zero, which is set in case the driver did not.
fn text_of(mut text: [c_char; NAME_BYTES]) -> String {
    text[NAME_BYTES - 1] = 0;
    // SAFETY: the array contains a zero, just written.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    text.to_string_lossy().into_owned()
}

fn memory_bytes(library: &Library, device: CUdevice) -> Result<u64> {
    let mut bytes = 0;
    // SAFETY: `bytes` outlives the call.
    unsafe { call!(library, cuDeviceTotalMem_v2(&mut bytes, device)) }?;
    Ok(bytes as u64)
}

fn pci(library: &Library, device: CUdevice) -> Result<Option<PciAddress>> {
    let part = |attribute| -> Result<Option<u32>> {
        let value = attribute_of(library, device, attribute)?;
        Ok(value.and_then(|value| u32::try_from(value).ok()))
    };
    let domain = part(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
    let bus = part(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
    let device = part(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
    Ok(domain
        .zip(bus)
        .zip(device)
        .map(|((domain, bus), device)| PciAddress {
            domain,
            bus,
            device,
        }))
}

/// The node according to the kernel, for drivers that do not report it; `None` for -1.
fn numa_node_of_system(pci: PciAddress) -> Option<u32> {
    let path = format!("/sys/bus/pci/devices/{pci}/numa_node");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
