//! The calls that list and describe devices.

use pinlane_driver::PciAddress;

use crate::attributes;
use crate::error::{INVALID_DEVICE, INVALID_VALUE, Outcome};
use crate::ffi::{Out, Text};
use crate::shim::exports;
use crate::state::{Device, machine};

/// Sixteen bytes that name a device, the same in every run.
fn uuid(device: &Device) -> [u8; 16] {
    let mut uuid = *b"pinlane-sim-\0\0\0\0";
    uuid[12..].copy_from_slice(&device.info.ordinal.to_be_bytes());
    uuid
}

fn pci(device: &Device) -> Outcome<PciAddress> {
    device.info.pci.ok_or(INVALID_DEVICE)
}

/// Reads `domain:bus:device.function`, where the domain and the function may be missing.
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
    /// How many devices there are.
    fn cuDeviceGetCount(count: Out<i32>) {
        let machine = machine()?;
        count.required()?.put(machine.devices.len() as i32);
        Ok(())
    }

    /// The device of a number: the number itself.
    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        let found = machine()?.device(ordinal)?;
        device.required()?.put(found.ordinal());
        Ok(())
    }

    /// Its name.
    fn cuDeviceGetName(name: Out<u8>, capacity: i32, device: i32) {
        name.put_text(capacity, &machine()?.device(device)?.info.name)
    }

    /// The name of the profile it is simulated by. No real driver exports this: with it a program
    /// can tell that its figures are not measured.
    fn pinlane_simcuda_profile(device: i32, name: Out<u8>, capacity: i32) {
        let device = machine()?.device(device)?;
        let profile = device.info.simulated.as_deref();
        name.put_text(capacity, profile.ok_or(INVALID_DEVICE)?)
    }

    /// Sixteen bytes that name it.
    fn cuDeviceGetUuid(target: Out<[u8; 16]>, device: i32) {
        let device = machine()?.device(device)?;
        target.required()?.put(uuid(device));
        Ok(())
    }

    /// The same; a device is never a slice of another here.
    fn cuDeviceGetUuid_v2(target: Out<[u8; 16]>, device: i32) {
        let device = machine()?.device(device)?;
        target.required()?.put(uuid(device));
        Ok(())
    }

    /// Its memory in all.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        let device = machine()?.device(device)?;
        bytes.required()?.put(device.info.memory_bytes as usize);
        Ok(())
    }

    /// One of its attributes.
    fn cuDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) {
        let device = machine()?.device(device)?;
        let slot = value.required()?;
        slot.put(attributes::value(&device.info, attribute).ok_or(INVALID_VALUE)?);
        Ok(())
    }

    /// Its compute capability.
    fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        let device = machine()?.device(device)?;
        let (major, minor) = (major.required()?, minor.required()?);
        major.put(device.info.compute_capability.0 as i32);
        minor.put(device.info.compute_capability.1 as i32);
        Ok(())
    }

    /// Its place on the PCI bus, as text.
    fn cuDeviceGetPCIBusId(text: Out<u8>, capacity: i32, device: i32) {
        let address = pci(machine()?.device(device)?)?;
        text.put_text(capacity, &address.to_string().to_uppercase())
    }

    /// The device at a place on the PCI bus.
    fn cuDeviceGetByPCIBusId(device: Out<i32>, text: Text) {
        let machine = machine()?;
        let slot = device.required()?;
        let wanted = parse_pci(&text.read()?).ok_or(INVALID_VALUE)?;
        let found = machine.devices.iter().find(|device| device.info.pci == Some(wanted));
        slot.put(found.ok_or(INVALID_DEVICE)?.ordinal());
        Ok(())
    }

    /// Whether a device reaches another's memory: simulated ones do not.
    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        let machine = machine()?;
        machine.device(device)?;
        machine.device(peer)?;
        can.required()?.put(0);
        Ok(())
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
