//! What is to be done.

use pinlane_model::pipeline::Memory;
use serde::Serialize;

use crate::format::amount;
use crate::timeline::layout::words::duration;

fn words(memory: Memory) -> &'static str {
    match memory {
        Memory::Pinned => "pinned memory",
        Memory::Pageable => "pageable memory",
        Memory::Express => "pageable memory by the express lane",
        Memory::Device => "device memory",
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
    pub input: Memory,
    /// Where the output goes.
    pub output: Memory,
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
        let from = words(self.input);
        let to = words(self.output);
        match (self.input, self.bytes_out) {
            (_, 0) => from.to_owned(),
            _ if self.input == self.output => format!("{from}, in and out"),
            _ => format!("{from} in, {to} out"),
        }
    }
}
