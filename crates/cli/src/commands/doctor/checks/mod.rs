//! Checks: facts in, findings out. They do not look at the machine.

mod driver;
mod gpu;
mod host;
mod link;
mod process;

use pinlane_report::{DoctorFinding as Finding, DoctorGroup, DoctorStatus};

use super::facts::Facts;
use super::facts::gpu::{Gpu, GpuFacts};
use super::facts::host::HostFacts;

/// A named check of a group.
#[derive(Clone, Copy)]
struct Check(DoctorGroup, &'static str);

impl Check {
    fn ok(self, seen: impl Into<String>) -> Finding {
        self.finding(DoctorStatus::Ok, seen)
    }

    fn warn(self, seen: impl Into<String>) -> Finding {
        self.finding(DoctorStatus::Warn, seen)
    }

    fn fail(self, seen: impl Into<String>) -> Finding {
        self.finding(DoctorStatus::Fail, seen)
    }

    fn skip(self, seen: impl Into<String>) -> Finding {
        self.finding(DoctorStatus::Skip, seen)
    }

    fn unknown(self) -> Finding {
        self.skip("unknown")
    }

    fn finding(self, status: DoctorStatus, seen: impl Into<String>) -> Finding {
        Finding::new(self.0, self.1, status, seen)
    }
}

/// Runs all checks.
pub(super) fn run_all(facts: &Facts) -> Vec<Finding> {
    let (host, gpus) = (&facts.host, &facts.gpus);
    let mut findings = driver::all(host, gpus);
    for gpu in &gpus.gpus {
        let mut of_gpu = gpu::all(gpu);
        of_gpu.extend(link::of_gpu(gpu, host));
        of_gpu.extend(process::of_gpu(gpu));
        for finding in &mut of_gpu {
            finding.gpu = Some(gpu.info.ordinal);
            finding.simulated = gpu.info.simulated.is_some();
        }
        findings.extend(of_gpu);
    }
    findings.extend(link::of_host(host, gpus));
    findings.extend(host::all(host));
    findings.extend(process::of_host(host, gpus));
    findings
}
