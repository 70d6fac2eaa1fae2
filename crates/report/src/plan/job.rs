//! What is to be done.

use serde::Serialize;

use crate::format::amount;
use crate::timeline::layout::words::duration;

/// Where input comes from or output goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanMemory {
    /// Page-locked memory.
    Pinned,
    /// Ordinary memory, copied by the driver.
    Pageable,
    /// Ordinary memory, copied by the express lane.
    Express,
    /// Device memory.
    Device,
}

impl PlanMemory {
    fn words(self) -> &'static str {
        match self {
            Self::Pinned => "pinned memory",
            Self::Pageable => "pageable memory",
            Self::Express => "pageable memory by the express lane",
            Self::Device => "device memory",
        }
    }
}

/// Bytes in, a kernel over them, bytes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PlanJob {
    /// Bytes that the kernel reads.
    pub bytes_in: u64,
    /// Bytes that it writes.
    pub bytes_out: u64,
    /// What the kernel takes in all, beside launches.
    pub kernel_ns: u64,
    /// Where the input is.
    pub input: PlanMemory,
    /// Where the output goes.
    pub output: PlanMemory,
}

impl PlanJob {
    /// The job in short, for headings.
    #[must_use]
    pub fn title(&self) -> String {
        let out = match self.bytes_out {
            0 => "nothing out".to_owned(),
            bytes => format!("{} out", amount(bytes)),
        };
        let kernel = duration(self.kernel_ns);
        format!("{} in, {kernel} of kernel, {out}", amount(self.bytes_in))
    }

    /// Where the bytes are.
    pub(super) fn places(&self) -> String {
        let from = self.input.words();
        let to = self.output.words();
        match (self.input, self.bytes_out) {
            (_, 0) => from.to_owned(),
            _ if self.input == self.output => format!("{from}, in and out"),
            _ => format!("{from} in, {to} out"),
        }
    }
}
