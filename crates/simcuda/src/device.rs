//! Devices: list and properties.

use pinlane_driver::PciAddress;

use crate::device_attributes;
use crate::error::{INVALID_DEVICE, INVALID_VALUE, Outcome};
use crate::exports::exports;
use crate::ffi::{Out, Text};
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

    /// The UUID of a device.
    fn cuDeviceGetUuid(target: Out<[u8; 16]>, device: i32) {
        target.set(uuid(machine()?.device(device)?))
    }

    /// The same. There are no MIG devices here.
    fn cuDeviceGetUuid_v2(target: Out<[u8; 16]>, device: i32) {
        target.set(uuid(machine()?.device(device)?))
    }

    /// The memory of a device.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        bytes.set(machine()?.device(device)?.info.memory_bytes as usize)
    }

    /// An attribute of a device.
    fn cuDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) {
        let device = machine()?.device(device)?;
        value.set_with(|| device_attributes::value(&device.info, attribute).ok_or(INVALID_VALUE))
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
        let slot = device.required()?;
        let wanted = parse_pci(&text.read()?).ok_or(INVALID_VALUE)?;
        let found = machine.devices.iter().find(|device| device.info.pci == Some(wanted));
        slot.put(found.ok_or(INVALID_DEVICE)?.ordinal());
        Ok(())
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
}
