//! Checks: facts in, findings out. None of them looks at the machine.

mod driver;
mod gpu;
mod limits;
mod link;
mod memory;
mod numa;
mod process;
mod remedies;

use pinlane_report::DoctorFinding as Finding;

use super::facts::Facts;

/// What all checks find.
pub(crate) fn all(facts: &Facts) -> Vec<Finding> {
    let (host, gpus) = (&facts.host, &facts.gpus);
    let mut findings = driver::all(host, gpus);
    for gpu in &gpus.gpus {
        let mut about = gpu::all(gpu);
        about.extend(link::of_gpu(gpu, host));
        about.extend(process::of_gpu(gpu));
        for finding in &mut about {
            finding.gpu = Some(gpu.info.ordinal);
            finding.simulated = gpu.info.simulated.is_some();
        }
        findings.extend(about);
    }
    findings.extend(link::of_host(host, gpus));
    findings.extend(memory::all(host));
    findings.extend(limits::all(host));
    findings.extend(process::of_host(host, gpus));
    findings
}
