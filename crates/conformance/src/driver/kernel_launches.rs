//! Launches of kernels: their arguments, shapes and results.

use bytemuck::cast_slice;
use pinlane_driver::{KernelArg, LaunchShape};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check_eq;
use crate::pattern::pattern;
use crate::rig::{Rig, blocks};

cases! {
    "kernels/u64-u32-and-pointer" => add,
    "kernels/f32-and-two-pointers" => saxpy,
    "kernels/rounds-in-three-ways" => rounds,
    "kernels/two-pointers" => copy,
    "kernels/u64-alone" => spin,
    "kernels/any-shape-gives-the-same" => any_shape,
    "kernels/touches-no-more-than-told" => touches_no_more,
    "kernels/large" => large,
    "kernels/arguments-are-taken-at-launch" => arguments_are_taken,
}

fn add(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words = (0..10_000u32).map(|i| i.wrapping_mul(0x9e37_79b9));
    let words: Vec<u32> = words.collect();
    let memory = rig.upload(cast_slice(&words))?;
    rig.add_u32(kernels, memory.all(), 0xdead_beef, stream)?;
    rig.stream_synchronize(stream)?;
    let expected: Vec<u32> = words.iter().map(|w| w.wrapping_add(0xdead_beef)).collect();
    rig.check_words(memory.all(), &expected, "sums")
}

/// Churn, sweep and round trips have one result, also with fewer threads than elements.
fn rounds(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let module = rig.module(pinlane_kernels::PTX)?;
    let words: Vec<u32> = (0..10_000).collect();
    let round = |word: u32| word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let expected = words
        .iter()
        .map(|word| (0..9).fold(*word, |word, _| round(word)));
    let expected: Vec<u32> = expected.collect();
    for name in ["churn", "sweep", "round_trips"] {
        let function = rig.module_function(module, &format!("pinlane_{name}_u32"))?;
        for shape in [blocks(40, 256), blocks(3, 64)] {
            let memory = rig.upload(cast_slice(&words))?;
            rig.rounds_u32(function, shape, memory.all(), 9, stream)?;
            rig.stream_synchronize(stream)?;
            rig.check_words(memory.all(), &expected, name)?;
        }
    }
    Ok(())
}

fn saxpy(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let a = 1.000_000_1f32;
    let x: Vec<f32> = (0..10_000).map(|i| i as f32 * 0.1).collect();
    let y: Vec<f32> = (0..10_000).map(|i| 1.0 / (i as f32 + 1.0)).collect();
    let (device_x, device_y) = (rig.upload(cast_slice(&x))?, rig.upload(cast_slice(&y))?);
    rig.saxpy_f32(kernels, a, device_x.all(), device_y.all(), stream)?;
    rig.stream_synchronize(stream)?;
    // Fused, so equal to the last bit.
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a.mul_add(*x, *y)).collect();
    rig.check(device_y.all(), cast_slice(&expected), "sums")?;
    rig.check(device_x.all(), cast_slice(&x), "source")
}

fn copy(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let data = pattern(70, 100_003);
    let source = rig.upload(&data)?;
    let target = rig.device(data.len())?;
    rig.copy_u8(kernels, source.all(), target.all(), stream)?;
    rig.stream_synchronize(stream)?;
    rig.check(target.all(), &data, "copy")
}

fn spin(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    for ns in [0, 1, 1_000_000] {
        rig.spin(kernels, ns, stream)?;
        rig.stream_synchronize(stream)?;
    }
    Ok(())
}

fn any_shape(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words: Vec<u32> = (0..1000).collect();
    let expected: Vec<u32> = (5..1005).collect();
    for (grid, block) in [(1, 1), (1, 1000), (7, 32), (1000, 1), (100, 256)] {
        let memory = rig.upload(cast_slice(&words))?;
        let args = [
            KernelArg::U64(words.len() as u64),
            KernelArg::U32(5),
            KernelArg::Ptr(memory.all().device()),
        ];
        rig.launch(kernels.add_u32, blocks(grid, block), &args, stream)?;
        rig.stream_synchronize(stream)?;
        let what = format!("{grid} blocks of {block}");
        rig.check_words(memory.all(), &expected, &what)?;
    }
    Ok(())
}

fn touches_no_more(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 4 * 1000])?;
    rig.add_u32(kernels, memory.span(4 * 300, 4 * 301), 1, stream)?;
    rig.stream_synchronize(stream)?;
    let mut expected = vec![0; 1000];
    expected[300..601].fill(1);
    rig.check_words(memory.all(), &expected, "words")
}

fn large(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.device(4 << 20)?;
    rig.memset(memory.all(), 0, stream)?;
    rig.add_u32(kernels, memory.all(), 0x0102_0304, stream)?;
    rig.stream_synchronize(stream)?;
    let found = rig.read(memory.all())?;
    let wrong = found.chunks(4).position(|word| word != [4, 3, 2, 1]);
    check_eq!(wrong, None, "first wrong word");
    Ok(())
}

fn arguments_are_taken(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 400])?;
    rig.spin(kernels, 2_000_000, stream)?;
    let mut args = [
        KernelArg::U64(100),
        KernelArg::U32(1),
        KernelArg::Ptr(memory.all().device()),
    ];
    let shape = LaunchShape::for_items(100);
    for value in [1, 10, 100] {
        args[1] = KernelArg::U32(value);
        rig.launch(kernels.add_u32, shape, &args, stream)?;
    }
    // Changing the arguments now must not affect the waiting kernels.
    args[1] = KernelArg::U32(100_000);
    rig.stream_synchronize(stream)?;
    let what = format!("sum, with {:?} remaining", args[1]);
    rig.check_words(memory.all(), &[111; 100], &what)
}
