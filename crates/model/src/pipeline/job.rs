//! What is to be done.

use serde::Serialize;

use super::PlanError;
use crate::schedule::Work;
use crate::{HostKind, Profile};

const GIB: u128 = 1 << 30;

/// Bytes that go in, a kernel over them, bytes that come out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Job {
    /// Bytes that the kernel reads, at least 1.
    pub bytes_in: u64,
    /// Bytes that it writes; each chunk's in proportion to what it reads. May be 0.
    pub bytes_out: u64,
    /// What the kernel takes.
    pub kernel: KernelTime,
    /// Where the input is.
    pub input: Memory,
    /// Where the output goes.
    pub output: Memory,
    /// What the launching thread computes for each chunk, beside it all.
    pub host_ns_per_chunk: u64,
}

/// What a kernel takes beside its launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KernelTime {
    /// Each launch, whatever its size. Kernels of other streams run meanwhile.
    pub fixed_ns: u64,
    /// Each GiB of input, counted to the byte.
    pub ns_per_gib: u64,
}

/// Where input comes from or output goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Page-locked memory.
    Pinned,
    /// Ordinary memory, copied by the driver.
    Pageable,
    /// Ordinary memory, copied by the express lane.
    Express,
    /// Device memory: nothing is copied.
    Device,
}

impl Memory {
    /// The host end of a copy that is submitted as one; none where nothing is copied, or lanes do
    /// it.
    pub(crate) fn host_kind(self) -> Option<HostKind> {
        match self {
            Self::Pinned => Some(HostKind::Pinned),
            Self::Pageable => Some(HostKind::Pageable),
            Self::Express | Self::Device => None,
        }
    }
}

impl KernelTime {
    /// What a chunk of so many bytes takes.
    ///
    /// # Errors
    /// [`PlanError`] for `kernel`, where that does not fit into 64 bits.
    pub fn ns(&self, bytes_in: u64) -> Result<u64, PlanError> {
        self.within(self.fixed_ns, bytes_in)
    }

    /// What it takes beside its fixed part.
    pub(crate) fn moving_ns(&self, bytes_in: u64) -> Result<u64, PlanError> {
        self.within(0, bytes_in)
    }

    /// It as work for the device.
    pub(crate) fn work(&self, bytes_in: u64) -> Result<Work, PlanError> {
        Ok(Work::Kernel {
            lead_ns: self.fixed_ns,
            ns: self.moving_ns(bytes_in)?,
        })
    }

    fn within(&self, fixed_ns: u64, bytes_in: u64) -> Result<u64, PlanError> {
        let ns = u128::from(fixed_ns) + u128::from(bytes_in) * u128::from(self.ns_per_gib) / GIB;
        u64::try_from(ns).map_err(|_| {
            let reason = format!("{ns} ns for a chunk of {bytes_in} bytes do not fit into 64 bits");
            PlanError::invalid("kernel", reason)
        })
    }
}

impl Job {
    /// Checks what every plan relies on.
    pub(crate) fn check(&self, profile: &Profile) -> Result<(), PlanError> {
        if self.bytes_in == 0 {
            return Err(PlanError::invalid("bytes_in", "must be at least 1"));
        }
        for (field, memory) in [("input", self.input), ("output", self.output)] {
            if memory == Memory::Express && profile.express.is_none() {
                let name = &profile.name;
                let reason = format!("profile {name} has no [express] section");
                return Err(PlanError::invalid(field, reason));
            }
        }
        self.kernel.ns(self.bytes_in).map(|_| ())
    }

    /// Whether bytes are copied to the device.
    pub(crate) fn copies_in(&self) -> bool {
        self.input != Memory::Device
    }

    /// Whether lanes fill or empty a ring.
    pub(crate) fn uses_lanes(&self) -> bool {
        self.input == Memory::Express || (self.output == Memory::Express && self.copies_out())
    }

    /// Whether bytes are copied back.
    pub(crate) fn copies_out(&self) -> bool {
        self.output != Memory::Device && self.bytes_out > 0
    }
}
