//! Samples that are made up, in ordinary memory.

use std::thread;

use anyhow::{Context, bail};
use pinlane::load::{Arrays, Dtype, Field};

use super::Args;
use crate::doctor::facts;
use crate::interrupt::Interrupt;
use crate::output::UsageError;

/// Images as networks like them.
const SHAPE: [usize; 3] = [3, 224, 224];

/// Samples where none are asked for: more than caches hold. A simulated device moves real bytes, but no
/// more than needed.
const SAMPLES: usize = 20_000;
const SAMPLES_SIMULATED: usize = 1024;

/// Bytes that a thread fills before it looks whether to stop.
const STRETCH_BYTES: usize = 1 << 20;

/// All samples, filled with numbers that look random, as far as the user does not want an end before.
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
    let bytes = fitting(samples, sample_bytes)?;
    let mut memory = Vec::<u8>::new();
    memory
        .try_reserve_exact(bytes)
        .context("--samples: there is no memory for so many; choose fewer")?;
    // Fresh zeros come page by page, when the threads below touch them.
    drop(memory);
    let mut memory = vec![0; bytes];
    fill(&mut memory, interrupt);
    let field = Field::fixed("data", dtype, shape);
    Ok(Arrays::from_memory(samples, [(field, memory)])?)
}

/// Bytes of a sample.
fn sample_bytes(dtype: Dtype, shape: &[usize]) -> Result<usize, UsageError> {
    let elements = shape
        .iter()
        .try_fold(1usize, |elements, dim| elements.checked_mul(*dim));
    let bits = elements.and_then(|elements| elements.checked_mul(dtype.bits() as usize));
    match bits {
        None => Err(UsageError::new(
            "--shape: a sample is more than memory can hold; choose smaller dimensions".to_owned(),
        )),
        Some(bits) if !bits.is_multiple_of(8) => Err(UsageError::new(format!(
            "--shape: a sample of {} would end inside of a byte; choose an even number of elements",
            dtype.name().to_ascii_lowercase()
        ))),
        Some(bits) => Ok(bits / 8),
    }
}

/// Bytes of all samples, if there is memory for them.
fn fitting(samples: usize, sample_bytes: usize) -> anyhow::Result<usize> {
    // The system needs some, too, and so does the loader.
    let room = facts::available_bytes().unwrap_or(u64::MAX) / 16 * 15;
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    match samples.checked_mul(sample_bytes) {
        Some(bytes) if bytes <= room => Ok(bytes),
        _ => {
            let most = room / sample_bytes.max(1);
            bail!(
                "--samples {samples} of {sample_bytes} bytes do not fit into memory; choose \
                 --samples {most} or less, or a smaller --shape"
            )
        }
    }
}

fn fill(memory: &mut [u8], interrupt: &Interrupt) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = memory.len().div_ceil(threads).max(STRETCH_BYTES);
    thread::scope(|scope| {
        for (thread, part) in memory.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                // Any odd number will do.
                let mut state = (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                for stretch in part.chunks_mut(STRETCH_BYTES) {
                    if interrupt.is_raised() {
                        return;
                    }
                    for word in stretch.chunks_mut(8) {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
                    }
                }
            });
        }
    });
}
