//! How fast one core converts and copies: sources of 64 MiB from memory, targets that stay in the
//! cache. Then how fast one thread and as many as there are cores fill a ring that does not.
//!
//! `cargo bench -p pinlane-kernels --bench convert`, or with numbers of threads for the ring:
//! `cargo bench -p pinlane-kernels --bench convert -- 1 8 12`

mod floats;
mod staging_ring;

use std::hint::black_box;
use std::time::Instant;

use pinlane_kernels::Instructions;

const SOURCE_BYTES: usize = 64 << 20;
const TARGET_BYTES: usize = 256 << 10;
const ROUNDS: usize = 15;

fn main() {
    println!(
        "GB/s on one core, median of {ROUNDS} rounds: {} MiB read, {} KiB of target used again and again",
        SOURCE_BYTES >> 20,
        TARGET_BYTES >> 10
    );
    println!(
        "(f32_to_*: of f32 read; u8_to_f32*: of f32 written; copies: of bytes read; floats: of the wider kind)"
    );
    let numbers: Vec<f32> = (0..SOURCE_BYTES / 4).map(|i| i as f32 * 0.37).collect();
    let bytes: Vec<u8> = (0..SOURCE_BYTES).map(|i| i as u8).collect();
    let mut halves = vec![0_u16; TARGET_BYTES / 2];
    let mut floats = vec![0_f32; TARGET_BYTES / 4];
    let mut window = vec![0_u8; TARGET_BYTES];
    let mut large = vec![0_u8; SOURCE_BYTES];
    for instructions in Instructions::available() {
        println!("{}", instructions.name());
        report("f32_to_bf16", SOURCE_BYTES, || {
            for part in numbers.chunks(halves.len()) {
                instructions.f32_to_bf16(black_box(part), &mut halves[..part.len()]);
                black_box(&mut halves);
            }
        });
        report("f32_to_f16", SOURCE_BYTES, || {
            for part in numbers.chunks(halves.len()) {
                instructions.f32_to_f16(black_box(part), &mut halves[..part.len()]);
                black_box(&mut halves);
            }
        });
        report("u8_to_f32", SOURCE_BYTES * 4, || {
            for part in bytes.chunks(floats.len()) {
                let target = &mut floats[..part.len()];
                instructions.u8_to_f32(black_box(part), 1.0 / 255.0, -0.5, target);
                black_box(&mut floats);
            }
        });
        report("copy_streaming, 64 MiB to 64 MiB", SOURCE_BYTES, || {
            instructions.copy_streaming(black_box(&bytes), &mut large);
            black_box(&mut large);
        });
        floats::report(instructions, &bytes, &mut window);
    }
    println!("plain copy");
    report("64 MiB to 64 MiB", SOURCE_BYTES, || {
        large.copy_from_slice(black_box(&bytes));
        black_box(&mut large);
    });
    report("64 MiB to the window", SOURCE_BYTES, || {
        for part in bytes.chunks(TARGET_BYTES) {
            window.copy_from_slice(black_box(part));
            black_box(&mut window);
        }
    });
    staging_ring::report(&thread_counts());
}

/// Those asked for on the command line, past the words that cargo adds.
fn thread_counts() -> Vec<usize> {
    let asked: Vec<usize> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    if asked.is_empty() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        return vec![1, cores];
    }
    asked
}

fn report(name: &str, bytes: usize, mut work: impl FnMut()) {
    work();
    let mut seconds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[ROUNDS / 2];
    println!("  {name:<34}{:>7.1}", bytes as f64 / median / 1e9);
}
