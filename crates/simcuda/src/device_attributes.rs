//! The values of `cuDeviceGetAttribute`.

use pinlane_driver::DeviceInfo;

/// The last attribute of CUDA 13.0.
const LAST: u32 = 148;

/// Attributes that are the same on every simulated device: those of a data-centre GPU. Others, such
/// as those of textures and surfaces, are 0.
const CONSTANT: &[(u32, i32)] = &[
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
pub fn value(info: &DeviceInfo, attribute: u32) -> Option<i32> {
    if attribute == 0 || attribute > LAST {
        return None;
    }
    let flag = |set: bool| Some(i32::from(set));
    let number = |value: u32| i32::try_from(value).ok();
    let pci =
        |part: fn(&pinlane_driver::PciAddress) -> u32| number(info.pci.as_ref().map_or(0, part));
    match attribute {
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
            let constant = CONSTANT.iter().find(|row| row.0 == attribute);
            Some(constant.map_or(0, |row| row.1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_from_the_device() {
        let mut info = DeviceInfo::new(0, "a device");
        info.multiprocessors = 132;
        info.coherent = true;
        info.compute_capability = (9, 0);
        assert_eq!(value(&info, 16), Some(132));
        assert_eq!(value(&info, 75), Some(9));
        assert_eq!(value(&info, 100), Some(1));
        assert_eq!(value(&info, 134), Some(-1));
        assert_eq!(value(&info, 10), Some(32));
        assert_eq!(value(&info, 21), Some(0));
    }

    #[test]
    fn an_unknown_number_has_no_value() {
        let info = DeviceInfo::new(0, "a device");
        assert_eq!(value(&info, 0), None);
        assert_eq!(value(&info, LAST + 1), None);
    }
}
