//! Copies into scratch memory run ahead of the caller's stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinlane::{Device, DeviceBuf, Stream};
use pinlane_driver::{Call, Error, Hook, Intercepted, Result};
use pinlane_sim::SpanKind;

use pinlane_testing::{
    CHUNK_BYTES, INJECTED, assert_same, is_injected, misuse, pattern, set_up, small,
};

const PIECE: usize = 256;
const STRIDE: usize = 272;

fn table(device: &Device, pieces: usize) -> DeviceBuf<u8> {
    device.alloc(pieces * STRIDE).expect("device memory")
}

fn scatter(stream: &Stream, rows: &[u8], table: &mut DeviceBuf<u8>) -> pinlane::Result<()> {
    let places = table.whole_mut().chunks(STRIDE);
    let places = places.map(|place| place.range(..PIECE));
    stream.upload_many(rows.chunks(PIECE).zip(places))
}

fn rows_of(stream: &Stream, table: &DeviceBuf<u8>) -> Vec<u8> {
    let all = stream.copy_to_vec(table).expect("a download");
    all.chunks(STRIDE)
        .flat_map(|row| row[..PIECE].to_vec())
        .collect()
}

#[test]
fn copies_run_while_the_stream_is_busy_and_kernels_follow_its_order() {
    let (sim, device, stream) = small(1, 3);
    let pieces = CHUNK_BYTES / PIECE + 10; // two chunks, with a slot each
    let rows = pattern(pieces * PIECE, 3);
    let mut table = table(&device, pieces);
    let large = device.alloc::<u8>(512 * CHUNK_BYTES).unwrap();
    let host = device.pinned::<u8>(large.len()).unwrap();
    let landing = stream.download(&large, host).unwrap();
    scatter(&stream, &rows, &mut table).unwrap();
    drop(landing.wait().unwrap());
    stream.synchronize().unwrap();
    let spans = sim.timeline();
    let of = |wanted: fn(&SpanKind) -> bool| spans.iter().filter(move |span| wanted(&span.kind));
    let busy = of(|kind| *kind == SpanKind::DeviceToHost).next().unwrap();
    let copies: Vec<_> = of(|kind| *kind == SpanKind::HostToDevice).collect();
    let kernels: Vec<_> = of(|kind| matches!(kind, SpanKind::Kernel(_))).collect();
    assert_eq!((copies.len(), kernels.len()), (2, 2), "{spans:?}");
    for copy in copies {
        assert!(copy.end_ns < busy.end_ns, "{copy:?} waited for {busy:?}");
    }
    for kernel in kernels {
        assert!(busy.end_ns <= kernel.start_ns, "{kernel:?} before {busy:?}");
    }
    assert_same(&rows_of(&stream, &table), &rows, "rows");
    drop((stream, table, large, device));
    pinlane_testing::assert_clean(&sim);
}

/// Fails all waits of streams and of the host.
#[derive(Clone, Default)]
struct NoWaits(Arc<AtomicBool>);

// SAFETY: its only error is not fatal.
unsafe impl Hook for NoWaits {
    fn before(&self, call: Call) -> Result<()> {
        let waits = [
            Call::StreamWaitEvent,
            Call::StreamSynchronize,
            Call::Synchronize,
        ];
        if self.0.load(Ordering::SeqCst) && waits.contains(&call) {
            return Err(Error::new(INJECTED, "no waits"));
        }
        Ok(())
    }
}

#[test]
fn a_slot_that_may_be_in_use_is_leaked() {
    let sim = pinlane_testing::sim();
    let no_waits = NoWaits::default();
    let driver = Intercepted::new(sim.driver(), no_waits.clone());
    let device = Device::from_driver(Arc::new(driver));
    set_up(&device, 1, 2);
    let stream = device.stream().unwrap();
    let pieces = 6 * CHUNK_BYTES / PIECE;
    let rows = pattern(pieces * PIECE, 4);
    let mut table = table(&device, pieces);
    scatter(&stream, &rows, &mut table).unwrap();
    stream.synchronize().unwrap();
    let before = device.stats();

    no_waits.0.store(true, Ordering::SeqCst);
    let error = scatter(&stream, &rows, &mut table).unwrap_err();
    no_waits.0.store(false, Ordering::SeqCst);
    assert!(is_injected(&error), "{error}");
    let after = device.stats();
    assert_eq!(
        after.express_bytes + CHUNK_BYTES as u64,
        before.express_bytes,
        "one slot less"
    );
    assert_eq!(
        after.pinned_bytes, before.pinned_bytes,
        "its memory stays pinned"
    );

    scatter(&stream, &rows, &mut table).unwrap();
    assert_same(&rows_of(&stream, &table), &rows, "rows");
    drop((stream, table, device));
    assert_eq!(misuse(&sim), [""; 0]);
}
