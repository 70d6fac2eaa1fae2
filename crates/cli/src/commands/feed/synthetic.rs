//! Random samples in pageable memory.

use std::thread;

use anyhow::{Context, bail};
use pinlane::load::{Arrays, Dtype, Field};
use pinlane_model::SplitMix64;

use super::Args;
use crate::interrupt::Interrupt;
use crate::output::UsageError;
use crate::system;

/// The usual shape of an image.
const SHAPE: [usize; 3] = [3, 224, 224];

/// Default number: more than caches hold. A simulated device moves real bytes, so it gets fewer.
const SAMPLES: usize = 20_000;
const SAMPLES_SIMULATED: usize = 1024;

/// Bytes that a thread fills between checks for an interrupt.
const BLOCK_BYTES: usize = 1 << 20;

/// Creates the samples. Stops filling them on an interrupt.
pub(super) fn make(args: &Args, simulated: bool, interrupt: &Interrupt) -> anyhow::Result<Arrays> {
    let shape = args
        .shape
        .as_ref()
        .map_or(SHAPE.to_vec(), |shape| shape.0.clone());
    let dtype = args.dtype.unwrap_or(Dtype::U8);
    let samples = args.samples.unwrap_or(match simulated {
        true => SAMPLES_SIMULATED,
        false => SAMPLES,
    });
    let sample_bytes = sample_bytes(dtype, &shape)?;
    let bytes = total_bytes(samples, sample_bytes)?;
    let mut memory = Vec::<u8>::new();
    memory
        .try_reserve_exact(bytes)
        .context("--samples: not enough memory; use fewer samples")?;
    // Zeroed pages are allocated when the threads below touch them.
    drop(memory);
    let mut memory = vec![0; bytes];
    fill(&mut memory, interrupt);
    let field = Field::fixed("data", dtype, shape);
    Ok(Arrays::from_memory(samples, [(field, memory)])?)
}

fn sample_bytes(dtype: Dtype, shape: &[usize]) -> Result<usize, UsageError> {
    let elements = shape
        .iter()
        .try_fold(1usize, |elements, dim| elements.checked_mul(*dim));
    let bits = elements.and_then(|elements| elements.checked_mul(dtype.bits() as usize));
    match bits {
        None => Err(UsageError::new(
            "--shape: a sample is too large for memory; use smaller dimensions",
        )),
        Some(bits) if !bits.is_multiple_of(8) => Err(UsageError::new(format!(
            "--shape: a sample of {} would end inside a byte; use an even number of elements",
            dtype.name().to_ascii_lowercase()
        ))),
        Some(bits) => Ok(bits / 8),
    }
}

/// Fails if the samples do not fit into memory.
fn total_bytes(samples: usize, sample_bytes: usize) -> anyhow::Result<usize> {
    let room = system::usable_bytes(system::available_bytes());
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    match samples.checked_mul(sample_bytes) {
        Some(bytes) if bytes <= room => Ok(bytes),
        _ => {
            let most = room / sample_bytes.max(1);
            bail!(
                "{samples} samples of {sample_bytes} bytes do not fit into memory; use --samples {most} or \
                 less, or a smaller --shape"
            )
        }
    }
}

fn fill(memory: &mut [u8], interrupt: &Interrupt) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = memory.len().div_ceil(threads).max(BLOCK_BYTES);
    thread::scope(|scope| {
        for (thread, part) in memory.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                let mut random = SplitMix64::new(thread as u64);
                for block in part.chunks_mut(BLOCK_BYTES) {
                    if interrupt.is_raised() {
                        return;
                    }
                    for word in block.chunks_mut(8) {
                        word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]);
                    }
                }
            });
        }
    });
}
