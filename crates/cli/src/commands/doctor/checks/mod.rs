//! Checks: facts in, findings out. They do not look at the machine.

mod cuda_environment;
mod driver;
mod gpu;
mod host;
mod link;

use pinlane_report::{DoctorFinding as Finding, DoctorGroup};

use super::facts::Facts;
use super::facts::gpu::{Gpu, GpuFacts};
use super::facts::host::HostFacts;

#[derive(Clone, Copy)]
struct Check(DoctorGroup, &'static str);

impl Check {
    fn ok(self, seen: impl Into<String>) -> Finding {
        Finding::ok(self.0, self.1, seen)
    }

    fn skip(self, seen: impl Into<String>) -> Finding {
        Finding::skip(self.0, self.1, seen)
    }

    fn unknown(self) -> Finding {
        self.skip("unknown")
    }

    fn warn(self, seen: impl Into<String>, remedy: impl Into<String>, weight: u8) -> Finding {
        Finding::warn(self.0, self.1, seen).remedy(remedy, weight)
    }

    fn fail(self, seen: impl Into<String>, remedy: impl Into<String>, weight: u8) -> Finding {
        Finding::fail(self.0, self.1, seen).remedy(remedy, weight)
    }
}

pub(super) fn run_all(facts: &Facts) -> Vec<Finding> {
    let (host, gpus) = (&facts.host, &facts.gpus);
    let mut findings = driver::all(host, gpus);
    for gpu in &gpus.gpus {
        let mut of_gpu = gpu::all(gpu);
        of_gpu.extend(link::of_gpu(gpu, host));
        of_gpu.extend(gpu::other_processes(gpu));
        for finding in &mut of_gpu {
            finding.gpu = Some(gpu.info.ordinal);
            finding.simulated = gpu.info.simulated.is_some();
        }
        findings.extend(of_gpu);
    }
    findings.extend(link::of_host(host, gpus));
    findings.extend(host::all(host));
    findings.extend(cuda_environment::all(host, gpus));
    findings
}
