//! Simulated machines and devices, and what must be true of them at the end of a test.

use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use pinlane::model::Profile;
use pinlane::sim::{Sim, SimBuilder, SpanKind};
use pinlane::{Device, DeviceStats};

/// A simulated machine of the textbook's speed.
pub fn sim() -> Sim {
    Sim::new(profile())
}

/// The same, to be configured.
pub fn sim_builder() -> SimBuilder {
    Sim::builder().profile(profile())
}

/// The same, with a schedule of the seed's choice.
pub fn seeded(seed: u64) -> Sim {
    sim_builder().seed(seed).build()
}

/// Parsed once: under miri that is most of a small test's time.
pub fn profile() -> Profile {
    static PROFILE: LazyLock<Profile> =
        LazyLock::new(|| Profile::builtin("pcie3-x16").expect("built in"));
    PROFILE.clone()
}

/// Opens the device of a simulated machine. It keeps no pinned memory, so that the simulator sees what is freed
/// too early.
pub fn open(sim: &Sim) -> Device {
    let device = Device::open(sim, 0).expect("the simulated device opens");
    device.keep_pinned_memory(0);
    device
}

/// Nothing was misused, and nothing is left.
#[track_caller]
pub fn assert_clean(sim: &Sim) {
    let findings = sim.finish();
    assert!(findings.is_empty(), "{findings:#?}");
}

/// The books say that the device holds nothing.
#[track_caller]
pub fn assert_empty(device: &Device) {
    device.trim(); // what the express lane keeps is no leak
    assert_eq!(device.stats(), DeviceStats::default());
}

/// Runs `work` on another thread and fails, rather than hangs, when it never returns.
pub fn must_return<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    outcome
        .recv_timeout(Duration::from_secs(20))
        .expect("it returns")
}

/// Scenarios that move megabytes take miri minutes: it runs them once, not over and over.
pub fn too_much_for_miri(name: &str) -> bool {
    let large = [
        "library/dot",
        "library/large",
        "library/normalized-to-the-last-bit",
        "library/express",
        "library/to-pinned",
        "library/pool",
    ];
    cfg!(miri) && large.iter().any(|start| name.starts_with(start))
}

/// Copies over the link so far, in bytes each, towards the device or from it.
pub fn copies(sim: &Sim, kind: SpanKind) -> Vec<usize> {
    let spans = sim.timeline().into_iter();
    let spans = spans.filter(|span| span.kind == kind);
    spans.map(|span| span.bytes as usize).collect()
}

/// Findings that break a promise, whatever was left behind.
pub fn misuse(sim: &Sim) -> Vec<String> {
    let findings = sim.finish().into_iter();
    let misuse = findings.filter(|finding| !finding.kind.is_leak());
    misuse.map(|finding| finding.to_string()).collect()
}
