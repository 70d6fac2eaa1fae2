//! The dot product kernels. On a GPU, the cases compare its bits with those of the CPU.

use bytemuck::cast_slice;
use pinlane_driver::{FunctionHandle, LaunchShape, Result, StreamHandle};
use pinlane_kernels::{dot, dot_partials_shape};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check_eq;
use crate::pattern::vectors;
use crate::rig::{Rig, Span};

cases! {
    "kernels/dot-to-the-last-bit" => any_length,
    "kernels/dot-from-any-element" => any_start,
    "kernels/dot-in-any-grid" => any_grid,
    "kernels/dot-of-more-than-a-million" => large,
    "kernels/dot-of-infinities-and-nans" => not_finite,
    "kernels/dot-by-atomic-additions" => atomic,
}

/// Both kernels, with a stream to run them on.
struct Dot<'r> {
    rig: &'r Rig,
    kernels: [FunctionHandle; 2],
    stream: StreamHandle,
}

impl<'r> Dot<'r> {
    fn new(rig: &'r Rig) -> Result<Self> {
        let kernels = [
            rig.function("pinlane_dot_partials_f32")?,
            rig.function("pinlane_dot_sum_f64")?,
        ];
        Ok(Self {
            rig,
            kernels,
            stream: rig.stream()?,
        })
    }

    /// The bits of the dot product of vectors in device memory.
    fn of(&self, x: Span<'_>, y: Span<'_>, shape: LaunchShape) -> Result<u64> {
        let dot = self.rig.dot(self.kernels, [x, y], shape, self.stream)?;
        Ok(dot.to_bits())
    }

    /// Fails unless the device and the CPU agree on every bit.
    fn check(&self, [x, y]: &[Vec<f32>; 2], what: &str) -> Outcome {
        let on_x = self.rig.upload(cast_slice(x))?;
        let on_y = self.rig.upload(cast_slice(y))?;
        let found = self.of(on_x.all(), on_y.all(), dot_partials_shape(x.len()))?;
        check_eq!(found, dot(x, y).to_bits(), "{what}");
        self.rig.free_memory(on_x)?;
        Ok(self.rig.free_memory(on_y)?)
    }
}

fn any_length(rig: &Rig) -> Outcome {
    let kernels = Dot::new(rig)?;
    for n in [
        1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 100_003,
    ] {
        kernels.check(&vectors(n), &format!("{n} elements"))?;
    }
    Ok(())
}

fn any_start(rig: &Rig) -> Outcome {
    let kernels = Dot::new(rig)?;
    let [x, y] = vectors(5010);
    let (on_x, on_y) = (rig.upload(cast_slice(&x))?, rig.upload(cast_slice(&y))?);
    for (from_x, from_y) in (0..16).map(|i| (i % 4, i / 4)) {
        for n in [1, 3, 4, 1000, 5003] {
            let (span_x, span_y) = (on_x.span(4 * from_x, 4 * n), on_y.span(4 * from_y, 4 * n));
            let found = kernels.of(span_x, span_y, dot_partials_shape(n))?;
            let expected = dot(&x[from_x..from_x + n], &y[from_y..from_y + n]);
            let what = format!("{n} elements from {from_x} and {from_y}");
            check_eq!(found, expected.to_bits(), "{what}");
        }
    }
    Ok(())
}

fn any_grid(rig: &Rig) -> Outcome {
    let kernels = Dot::new(rig)?;
    let [x, y] = vectors(50_021);
    let (on_x, on_y) = (rig.upload(cast_slice(&x))?, rig.upload(cast_slice(&y))?);
    for blocks in [1, 2, 7, 48, 49, 50, 2000] {
        let shape = LaunchShape {
            grid: [blocks, 1, 1],
            ..dot_partials_shape(x.len())
        };
        let found = kernels.of(on_x.all(), on_y.all(), shape)?;
        check_eq!(found, dot(&x, &y).to_bits(), "{blocks} blocks");
    }
    Ok(())
}

/// Lanes with one product and lanes with two.
fn large(rig: &Rig) -> Outcome {
    let kernels = Dot::new(rig)?;
    kernels.check(&vectors((1 << 20) + 70_003), "a million elements and more")
}

fn not_finite(rig: &Rig) -> Outcome {
    let kernels = Dot::new(rig)?;
    for bits in [
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc1_2345,
        0x7f80_0001,
    ] {
        let mut vectors = vectors(3000);
        vectors[0][1500] = f32::from_bits(bits);
        kernels.check(&vectors, &format!("with {bits:#x}"))?;
        vectors[0][7] = f32::INFINITY;
        kernels.check(&vectors, &format!("with {bits:#x} and infinity"))?;
    }
    Ok(())
}

/// Small whole numbers: exact in any order.
fn atomic(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let kernel = rig.function("pinlane_dot_atomic_f32")?;
    let x: Vec<f32> = (0..10_007).map(|i| (i % 7) as f32).collect();
    let expected: f32 = 5.0 + x.iter().map(|x| x * x).sum::<f32>();
    let on_x = rig.upload(cast_slice(&x))?;
    let result = rig.upload(&5f32.to_le_bytes())?;
    let vectors = [on_x.all(), on_x.all()];
    rig.dot_atomic(kernel, vectors, result.all(), stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(result.all(), &expected.to_le_bytes(), "the sum")
}
