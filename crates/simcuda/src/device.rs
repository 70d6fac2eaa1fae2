//! Devices: list, properties and attributes.

use pinlane_driver::{DeviceInfo, PciAddress};

use crate::c_pointers::{Out, Text};
use crate::error::{INVALID_DEVICE, INVALID_VALUE, Outcome};
use crate::export_macros::exports;
use crate::machine::{Device, machine};

/// The UUID of a device, the same in every run.
fn uuid(device: &Device) -> [u8; 16] {
    let mut uuid = *b"pinlane-sim-\0\0\0\0";
    uuid[12..].copy_from_slice(&device.info.ordinal.to_be_bytes());
    uuid
}

fn pci(device: &Device) -> Outcome<PciAddress> {
    device.info.pci.ok_or(INVALID_DEVICE)
}

/// Parses `domain:bus:device.function`; domain and function are optional.
fn parse_pci(text: &str) -> Option<PciAddress> {
    let text = text.split_once('.').map_or(text, |(address, _)| address);
    let mut parts = text.rsplit(':').map(|part| u32::from_str_radix(part, 16));
    let device = parts.next()?.ok()?;
    let bus = parts.next()?.ok()?;
    let domain = parts.next().unwrap_or(Ok(0)).ok()?;
    Some(PciAddress {
        domain,
        bus,
        device,
    })
}

/// The last attribute of CUDA 13.0.
const LAST_ATTRIBUTE: u32 = 148;

/// Attributes that are the same on every simulated device: those of a data-centre GPU. Others, such
/// as those of textures and surfaces, are 0.
const CONSTANT_ATTRIBUTES: &[(u32, i32)] = &[
    (1, 1024),       // MAX_THREADS_PER_BLOCK
    (2, 1024),       // MAX_BLOCK_DIM_X
    (3, 1024),       // MAX_BLOCK_DIM_Y
    (4, 64),         // MAX_BLOCK_DIM_Z
    (5, i32::MAX),   // MAX_GRID_DIM_X
    (6, 65535),      // MAX_GRID_DIM_Y
    (7, 65535),      // MAX_GRID_DIM_Z
    (8, 48 << 10),   // MAX_SHARED_MEMORY_PER_BLOCK
    (9, 64 << 10),   // TOTAL_CONSTANT_MEMORY
    (10, 32),        // WARP_SIZE
    (11, i32::MAX),  // MAX_PITCH
    (12, 65536),     // MAX_REGISTERS_PER_BLOCK
    (13, 1_980_000), // CLOCK_RATE, kHz
    (14, 512),       // TEXTURE_ALIGNMENT
    (31, 1),         // CONCURRENT_KERNELS
    (36, 2_619_000), // MEMORY_CLOCK_RATE, kHz
    (37, 5120),      // GLOBAL_MEMORY_BUS_WIDTH, bits
    (38, 50 << 20),  // L2_CACHE_SIZE
    (39, 2048),      // MAX_THREADS_PER_MULTIPROCESSOR
    (41, 1),         // UNIFIED_ADDRESSING
    (78, 1),         // STREAM_PRIORITIES_SUPPORTED
    (79, 1),         // GLOBAL_L1_CACHE_SUPPORTED
    (80, 1),         // LOCAL_L1_CACHE_SUPPORTED
    (81, 228 << 10), // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    (82, 65536),     // MAX_REGISTERS_PER_MULTIPROCESSOR
    (87, 2),         // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
    (91, 1),         // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    (97, 227 << 10), // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    (106, 32),       // MAX_BLOCKS_PER_MULTIPROCESSOR
    (111, 1 << 10),  // RESERVED_SHARED_MEMORY_PER_BLOCK
    (131, -1),       // NUMA_ID: device memory is not a NUMA node
];

/// The value of an attribute; `None` for an unknown one.
fn attribute(info: &DeviceInfo, which: u32) -> Option<i32> {
    if which == 0 || which > LAST_ATTRIBUTE {
        return None;
    }
    let flag = |set: bool| Some(i32::from(set));
    let number = |value: u32| i32::try_from(value).ok();
    let pci = |part: fn(&PciAddress) -> u32| number(info.pci.as_ref().map_or(0, part));
    match which {
        15 => flag(info.async_engines > 0),
        16 => number(info.multiprocessors),
        18 => flag(info.integrated),
        19 => flag(info.can_map_host),
        33 => pci(|pci| pci.bus),
        34 => pci(|pci| pci.device),
        40 => number(info.async_engines),
        50 => pci(|pci| pci.domain),
        75 => number(info.compute_capability.0),
        76 => number(info.compute_capability.1),
        99 => flag(info.can_register),
        100 => flag(info.coherent),
        113 => flag(info.can_register_read_only),
        115 => flag(info.stream_ordered_alloc),
        134 => Some(info.numa_node.and_then(number).unwrap_or(-1)),
        _ => {
            let constant = CONSTANT_ATTRIBUTES.iter().find(|row| row.0 == which);
            Some(constant.map_or(0, |row| row.1))
        }
    }
}

exports! { through guard;
    /// The number of devices.
    fn cuDeviceGetCount(count: Out<i32>) {
        count.set(machine()?.devices.len() as i32)
    }

    /// The device of this number: the number itself.
    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        device.set(machine()?.device(ordinal)?.ordinal())
    }

    /// The name of a device.
    fn cuDeviceGetName(name: Out<u8>, capacity: i32, device: i32) {
        name.put_text(capacity, &machine()?.device(device)?.info.name)
    }

    /// The name of a device's profile. No real driver exports this, so programs can tell that
    /// figures are simulated.
    fn pinlane_simcuda_profile(device: i32, name: Out<u8>, capacity: i32) {
        let device = machine()?.device(device)?;
        let profile = device.info.simulated.as_deref();
        name.put_text(capacity, profile.ok_or(INVALID_DEVICE)?)
    }

    /// The UUID of a device. There are no MIG devices, for which the second would differ.
    fn cuDeviceGetUuid_v2(target: Out<[u8; 16]>, device: i32), also cuDeviceGetUuid {
        target.set(uuid(machine()?.device(device)?))
    }

    /// The memory of a device.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        bytes.set(machine()?.device(device)?.info.memory_bytes as usize)
    }

    /// An attribute of a device.
    fn cuDeviceGetAttribute(value: Out<i32>, which: u32, device: i32) {
        let device = machine()?.device(device)?;
        value.set_with(|| attribute(&device.info, which).ok_or(INVALID_VALUE))
    }

    /// The compute capability of a device.
    fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        let device = machine()?.device(device)?;
        let (major, minor) = (major.required()?, minor.required()?);
        major.put(device.info.compute_capability.0 as i32);
        minor.put(device.info.compute_capability.1 as i32);
        Ok(())
    }

    /// The PCI address of a device, as text.
    fn cuDeviceGetPCIBusId(text: Out<u8>, capacity: i32, device: i32) {
        let address = pci(machine()?.device(device)?)?;
        text.put_text(capacity, &address.to_string().to_uppercase())
    }

    /// The device of a PCI address.
    fn cuDeviceGetByPCIBusId(device: Out<i32>, text: Text) {
        let machine = machine()?;
        device.set_with(|| {
            let wanted = parse_pci(&text.read()?).ok_or(INVALID_VALUE)?;
            let found = machine.devices.iter().find(|device| device.info.pci == Some(wanted));
            Ok(found.ok_or(INVALID_DEVICE)?.ordinal())
        })
    }

    /// Whether a device can access another one's memory: simulated ones cannot.
    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        let machine = machine()?;
        machine.device(device)?;
        machine.device(peer)?;
        can.set(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pci_address_is_read_in_each_form() {
        let address = PciAddress {
            domain: 1,
            bus: 0x1b,
            device: 2,
        };
        assert_eq!(parse_pci("0001:1B:02.0"), Some(address));
        assert_eq!(parse_pci("0001:1b:02"), Some(address));
        assert_eq!(
            parse_pci("1b:02"),
            Some(PciAddress {
                domain: 0,
                ..address
            })
        );
        assert_eq!(parse_pci("1b"), None);
        assert_eq!(parse_pci("x:y:z"), None);
    }

    #[test]
    fn attributes_come_from_the_device() {
        let mut info = DeviceInfo::new(0, "a device");
        info.multiprocessors = 132;
        info.coherent = true;
        info.compute_capability = (9, 0);
        assert_eq!(attribute(&info, 16), Some(132));
        assert_eq!(attribute(&info, 75), Some(9));
        assert_eq!(attribute(&info, 100), Some(1));
        assert_eq!(attribute(&info, 134), Some(-1));
        assert_eq!(attribute(&info, 10), Some(32));
        assert_eq!(attribute(&info, 21), Some(0));
    }

    #[test]
    fn an_unknown_number_has_no_value() {
        let info = DeviceInfo::new(0, "a device");
        assert_eq!(attribute(&info, 0), None);
        assert_eq!(attribute(&info, LAST_ATTRIBUTE + 1), None);
    }
}
