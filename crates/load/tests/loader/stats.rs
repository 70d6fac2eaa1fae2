//! Statistics of a loader.

use super::support::{Made, Rig, config, drain};

#[test]
fn stats_count_batches_and_bytes() {
    for workers in [0, 2] {
        let rig = Rig::new();
        let loader = rig.loader(Made::new(30), config(4, workers));
        for epoch in 0..2 {
            drain(&rig, loader.epoch(epoch).expect("the last has ended"));
        }
        let stats = loader.stats();
        assert_eq!((stats.batches, stats.samples, stats.skipped), (16, 60, 0));
        // At least the labels and the images.
        assert!(stats.bytes > 60 * 16);
        // All copies have ended with their epochs.
        assert_eq!(stats.copy_bytes, stats.bytes);
        assert!(stats.copy_ns > 0 && stats.read_ns > 0);
        drop(loader);
        rig.assert_clean();
    }
}

#[test]
fn one_copy_per_batch_of_actual_bytes() {
    let rig = Rig::new();
    let loader = rig.loader(Made::new(30), config(4, 1));
    let mut batches = 0;
    for batch in loader.epoch(0).expect("no epoch is running") {
        batch.expect("no error");
        batches += 1;
    }
    let copies = pinlane_testing::copies(&rig.sim, pinlane_sim::SpanKind::HostToDevice);
    assert_eq!(copies.len(), batches);
    assert_eq!(copies.iter().sum::<usize>() as u64, loader.stats().bytes);
    drop(loader);
    rig.assert_clean();
}
