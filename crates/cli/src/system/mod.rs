//! What this machine says about itself: files of the kernel, the PCI bus, and the driver's management
//! library.

pub(crate) mod nvml;
pub(crate) mod pci;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pinlane::memory::ControlGroups;
use pinlane_driver::PciAddress;

use nvml::Management;
use pci::Link;

/// More than any file read here has.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// More than any folder read here has, unless someone made it on purpose.
const NAMES_MAX: usize = 1 << 17;

/// The root folder of system files: `/`, except in tests. Reads are bounded, whatever the files hold.
#[derive(Clone, Copy)]
pub(crate) struct SystemRoot<'p>(pub(crate) &'p Path);

impl SystemRoot<'static> {
    pub(crate) fn real() -> Self {
        Self(Path::new("/"))
    }
}

impl SystemRoot<'_> {
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The start of a file, trimmed. `None` if it cannot be read or is empty.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let path = self.path(path);
        // Reading a pipe or a device could block or never end.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The sorted names in a folder; empty if it cannot be read.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<_> = entries
            .take(NAMES_MAX)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

/// The value of the line `name: value`.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// A field such as `MemTotal:  24682416 kB`, in bytes.
pub(crate) fn kib_field(meminfo: &str, name: &str) -> Option<u64> {
    let number = field(meminfo, name)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory that this process can still allocate: what the system has available, or what its control group
/// leaves. `u64::MAX` if unknown.
pub(crate) fn available_bytes() -> u64 {
    let root = SystemRoot::real();
    let Some(meminfo) = root.text("proc/meminfo") else {
        return u64::MAX;
    };
    let system = kib_field(&meminfo, "MemAvailable");
    let group = ControlGroups::find(root.0).memory();
    let group = group.map(|memory| memory.headroom_bytes);
    system.into_iter().chain(group).min().unwrap_or(u64::MAX)
}

/// The part of the available memory that a command may take, leaving some for the system.
pub(crate) fn usable_bytes(available_bytes: u64) -> u64 {
    available_bytes / 16 * 15
}

/// The link of the GPU at this address, from the management library or else from the kernel. An idle GPU
/// slows its link down: call this right after copies.
pub(crate) fn link(pci: PciAddress) -> Option<Link> {
    let library = Management::open().ok();
    let link = library.and_then(|library| library.link(pci));
    link.or_else(|| pci::read(SystemRoot::real(), pci.to_string()).link())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_gpu_has_no_link() {
        let (domain, bus, device) = (0xffff, 0xff, 0x1f);
        assert_eq!(
            link(PciAddress {
                domain,
                bus,
                device
            }),
            None
        );
    }
}
