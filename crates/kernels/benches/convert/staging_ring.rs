//! Threads that fill one ring of staging memory together, as the lanes of an upload do: slices of a
//! large source are handed out by a counter, and the ring is larger than the caches.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use pinlane_kernels::Instructions;

const SOURCE_BYTES: usize = 256 << 20;
const RING_BYTES: usize = 48 << 20;
/// Of the wider of source and target.
const SLICE_BYTES: usize = 64 << 10;
/// So many for each thread, so that starting threads does not count.
const SLICES_A_ROUND: usize = SOURCE_BYTES / SLICE_BYTES / 2;
const ROUNDS: usize = 5;

/// Prints a table with a column for each number of threads.
pub fn report(thread_counts: &[usize]) {
    let by = Instructions::best();
    println!(
        "GB/s with {}, median of {ROUNDS} rounds: threads fill a ring of {} MiB from {} MiB in slices of {} KiB",
        by.name(),
        RING_BYTES >> 20,
        SOURCE_BYTES >> 20,
        SLICE_BYTES >> 10
    );
    let counts: String = thread_counts.iter().map(|n| format!("{n:>7}")).collect();
    println!("  {:<34}{counts}", "threads");
    let numbers: Vec<f32> = (0..SOURCE_BYTES / 4).map(|i| i as f32 * 0.37).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&numbers);

    for (name, narrow) in [
        (
            "f32_to_bf16",
            Instructions::f32_to_bf16 as fn(_, &_, &mut _),
        ),
        ("f32_to_bf16_streaming", Instructions::f32_to_bf16_streaming),
        ("f32_to_f16", Instructions::f32_to_f16),
        ("f32_to_f16_streaming", Instructions::f32_to_f16_streaming),
    ] {
        row(
            name,
            thread_counts,
            &numbers,
            SLICE_BYTES / 4,
            |source, target: &mut [u16]| {
                narrow(by, source, target);
            },
        );
    }
    for (name, widen) in [
        (
            "u8_to_f32",
            Instructions::u8_to_f32 as fn(_, &_, _, _, &mut _),
        ),
        ("u8_to_f32_streaming", Instructions::u8_to_f32_streaming),
    ] {
        row(
            name,
            thread_counts,
            bytes,
            SLICE_BYTES / 4,
            |source, target: &mut [f32]| {
                widen(by, source, 1.0 / 255.0, -0.5, target);
            },
        );
    }
    row(
        "plain copy",
        thread_counts,
        bytes,
        SLICE_BYTES,
        |source, target: &mut [u8]| {
            target.copy_from_slice(source);
        },
    );
    row(
        "copy_streaming",
        thread_counts,
        bytes,
        SLICE_BYTES,
        |source, target| {
            by.copy_streaming(source, target);
        },
    );
}

/// One line of the table: `work` on slices of so many elements.
fn row<S: Sync, T: Clone + Default + Send>(
    name: &str,
    thread_counts: &[usize],
    source: &[S],
    slice_len: usize,
    work: impl Fn(&[S], &mut [T]) + Sync,
) {
    let mut ring = vec![T::default(); RING_BYTES / size_of::<T>()];
    // Writing zeros once makes the pages real.
    ring.fill(T::default());
    // A lock a slot: a slow thread may still be at it when the counter has come round.
    let slots: Vec<_> = ring.chunks_mut(slice_len).map(Mutex::new).collect();
    let slices: Vec<&[S]> = source.chunks(slice_len).collect();
    // It goes on over all rounds, so that each part of a large source gets its turn.
    let next = AtomicUsize::new(0);
    let speeds: String = thread_counts
        .iter()
        .map(|threads| {
            let mut seconds: Vec<f64> = (0..=ROUNDS)
                .map(|_| {
                    let end = next.load(Ordering::Relaxed) + SLICES_A_ROUND * threads;
                    let start = Instant::now();
                    thread::scope(|scope| {
                        for _ in 0..*threads {
                            scope.spawn(|| fill(&slots, &slices, &next, end, &work));
                        }
                    });
                    next.store(end, Ordering::Relaxed);
                    start.elapsed().as_secs_f64()
                })
                .skip(1)
                .collect();
            seconds.sort_by(f64::total_cmp);
            let bytes = SLICES_A_ROUND * threads * SLICE_BYTES;
            format!("{:>7.1}", bytes as f64 / seconds[ROUNDS / 2] / 1e9)
        })
        .collect();
    println!("  {name:<34}{speeds}");
}

/// What one thread does: slices up to the one numbered `end`, each into its slot.
fn fill<S, T>(
    slots: &[Mutex<&mut [T]>],
    slices: &[&[S]],
    next: &AtomicUsize,
    end: usize,
    work: impl Fn(&[S], &mut [T]),
) {
    loop {
        let slice = next.fetch_add(1, Ordering::Relaxed);
        if slice >= end {
            return;
        }
        let mut slot = slots[slice % slots.len()].lock().unwrap();
        work(black_box(slices[slice % slices.len()]), &mut slot);
        black_box(&mut **slot);
    }
}
