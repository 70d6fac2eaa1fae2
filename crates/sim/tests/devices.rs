//! The devices of a machine: properties, and what they share.

mod common;

use common::profile;
use pinlane_driver::{CopyOp, ErrorKind, HostFlags, Place, Platform, StreamHandle};
use pinlane_sim::Sim;

const BYTES: usize = 4096;

#[test]
fn a_simulated_device_reports_that_it_is_simulated() {
    let sim = Sim::builder().profile(profile("h200")).devices(2).build();
    let infos = sim.devices().unwrap();
    assert_eq!(infos.len(), 2);
    for (ordinal, info) in infos.iter().enumerate() {
        assert_eq!(info.ordinal as usize, ordinal);
        assert_eq!(info.name, "Simulated GPU (h200)");
        assert_eq!(info.simulated.as_deref(), Some("h200"));
        assert_eq!(info.async_engines, 3);
        assert_eq!(info, sim.open(info.ordinal).unwrap().info());
    }
    assert_ne!(infos[0].pci, infos[1].pci);
    let error = sim.open(2).err().unwrap();
    assert_eq!(
        error.kind,
        ErrorKind::NoSuchDevice {
            ordinal: 2,
            count: 2
        }
    );
}

#[test]
fn devices_share_host_memory_and_the_clock_but_no_handles() {
    let sim = Sim::builder().devices(2).build();
    let (a, b) = (sim.open(0).unwrap(), sim.open(1).unwrap());
    let pinned = a.host_alloc(BYTES, HostFlags::default()).unwrap();
    let (on_a, on_b) = (
        a.device_alloc(BYTES).unwrap(),
        b.device_alloc(BYTES).unwrap(),
    );
    assert_ne!(on_a, on_b);
    let upload = |target| CopyOp {
        target: Place::Device(target),
        source: Place::Host(pinned),
        bytes: BYTES,
    };
    let stream_of_a = a.default_stream();
    // SAFETY: both ends hold that many bytes until the devices are done.
    unsafe {
        a.copy_async(upload(on_a), a.default_stream()).unwrap();
        b.copy_async(upload(on_b), b.default_stream()).unwrap();
        let error = b.copy_async(upload(on_b), stream_of_a).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidHandle);
        let nothing = StreamHandle::from_raw(0);
        let error = b.copy_async(upload(on_b), nothing).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidHandle);
    }
    b.synchronize().unwrap();
    a.synchronize().unwrap();
    let spans = sim.timeline();
    assert_eq!([spans[0].device, spans[1].device], [0, 1]);
    assert!(
        spans[1].start_ns < spans[0].end_ns,
        "each has engines of its own"
    );
    // SAFETY: nothing uses them any more.
    unsafe {
        b.host_free(pinned).unwrap();
        a.device_free(on_a).unwrap();
        b.device_free(on_b).unwrap();
    }
    assert_eq!(sim.finish(), []);
}
