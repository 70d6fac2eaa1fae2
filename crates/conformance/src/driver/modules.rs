//! PTX modules and kernels.

use pinlane_driver::{ErrorKind, KernelArg, LaunchShape};

use crate::outcome::{check, check_eq, check_error};
use crate::pattern::{bytes_of_f32, bytes_of_u32, check_bytes, pattern, u32_of_bytes};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("modules/load-and-unload", load_and_unload),
    Case::new("modules/every-built-in-kernel-is-found", all_found),
    Case::new("modules/loaded-twice", loaded_twice),
    Case::new("modules/bad-ptx-is-refused", bad_ptx),
    Case::new("modules/missing-kernel-is-not-found", missing_kernel),
    Case::new("modules/works-after-a-refusal", works_after_refusal),
    Case::new("kernels/u64-u32-and-pointer", add),
    Case::new("kernels/f32-and-two-pointers", saxpy),
    Case::new("kernels/two-pointers", copy),
    Case::new("kernels/u64-alone", spin),
    Case::new("kernels/any-shape-gives-the-same", any_shape),
    Case::new("kernels/touches-no-more-than-told", touches_no_more),
    Case::new("kernels/large", large),
    Case::new("kernels/arguments-are-taken-at-launch", arguments_are_taken),
];

fn load_and_unload(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for _ in 0..5 {
        let module = rig.module(pinlane_kernels::PTX)?;
        rig.unload(module)?;
    }
    rig.close()
}

fn all_found(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let module = rig.module(pinlane_kernels::PTX)?;
    for kernel in pinlane_kernels::builtin() {
        let function = rig.driver().module_function(module, kernel.name);
        check!(function.is_ok(), "{}: {function:?}", kernel.name);
    }
    rig.close()
}

fn loaded_twice(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 40])?;
    let kernels = rig.kernels()?;
    let first = rig.module(pinlane_kernels::PTX)?;
    rig.driver().module_function(first, "pinlane_add_u32")?;
    rig.unload(first)?;
    // The other one still works.
    rig.add_u32(kernels, memory.all(), 8, stream)?;
    rig.driver().stream_synchronize(stream)?;
    let words = u32_of_bytes(&rig.download(memory.all())?);
    check_eq!(words, vec![8; 10], "result");
    rig.close()
}

fn bad_ptx(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for ptx in ["this is no PTX", "// .version of nothing"] {
        check_error!(rig.module(ptx), ErrorKind::InvalidPtx);
    }
    rig.close()
}

fn missing_kernel(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let module = rig.module(pinlane_kernels::PTX)?;
    for name in [
        "pinlane_no_such_kernel",
        "pinlane_add_u3",
        "PINLANE_ADD_U32",
    ] {
        check_error!(
            rig.driver().module_function(module, name),
            ErrorKind::NotFound
        );
    }
    rig.close()
}

fn works_after_refusal(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 40])?;
    check!(rig.module("no PTX").is_err(), "invalid PTX was loaded");
    rig.add_u32(kernels, memory.all(), 1, stream)?;
    check!(
        rig.function("no_such_kernel").is_err(),
        "a kernel that does not exist"
    );
    rig.add_u32(kernels, memory.all(), 1, stream)?;
    rig.driver().stream_synchronize(stream)?;
    rig.driver().synchronize()?;
    let words = u32_of_bytes(&rig.download(memory.all())?);
    check_eq!(words, vec![2; 10], "result");
    rig.close()
}

fn add(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words: Vec<u32> = (0..10_000u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9))
        .collect();
    let memory = rig.upload(&bytes_of_u32(&words))?;
    rig.add_u32(kernels, memory.all(), 0xdead_beef, stream)?;
    rig.driver().stream_synchronize(stream)?;
    let expected: Vec<u32> = words.iter().map(|w| w.wrapping_add(0xdead_beef)).collect();
    check_bytes(
        &rig.download(memory.all())?,
        &bytes_of_u32(&expected),
        "sums",
    )?;
    rig.close()
}

fn saxpy(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let a = 1.000_000_1f32;
    let x: Vec<f32> = (0..10_000).map(|i| i as f32 * 0.1).collect();
    let y: Vec<f32> = (0..10_000).map(|i| 1.0 / (i as f32 + 1.0)).collect();
    let (device_x, device_y) = (
        rig.upload(&bytes_of_f32(&x))?,
        rig.upload(&bytes_of_f32(&y))?,
    );
    rig.saxpy_f32(kernels, a, device_x.all(), device_y.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    // Fused, so equal to the last bit.
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a.mul_add(*x, *y)).collect();
    check_bytes(
        &rig.download(device_y.all())?,
        &bytes_of_f32(&expected),
        "sums",
    )?;
    check_bytes(&rig.download(device_x.all())?, &bytes_of_f32(&x), "source")?;
    rig.close()
}

fn copy(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let data = pattern(70, 100_003);
    let source = rig.upload(&data)?;
    let target = rig.device(data.len())?;
    rig.copy_u8(kernels, source.all(), target.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_bytes(&rig.download(target.all())?, &data, "copy")?;
    rig.close()
}

fn spin(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    for ns in [0, 1, 1_000_000] {
        rig.spin(kernels, ns, stream)?;
        rig.driver().stream_synchronize(stream)?;
    }
    rig.close()
}

fn any_shape(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let words: Vec<u32> = (0..1000).collect();
    let expected: Vec<u32> = (5..1005).collect();
    for (grid, block) in [(1, 1), (1, 1000), (7, 32), (1000, 1), (100, 256)] {
        let memory = rig.upload(&bytes_of_u32(&words))?;
        let shape = LaunchShape {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            shared_bytes: 0,
        };
        let args = [
            KernelArg::U64(words.len() as u64),
            KernelArg::U32(5),
            KernelArg::Ptr(memory.base()),
        ];
        rig.launch_shaped(kernels.add_u32, shape, &args, stream)?;
        rig.driver().stream_synchronize(stream)?;
        let found = u32_of_bytes(&rig.download(memory.all())?);
        check_eq!(found, expected, "{grid} blocks of {block}");
    }
    rig.close()
}

fn touches_no_more(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 4 * 1000])?;
    rig.add_u32(kernels, memory.span(4 * 300, 4 * 301), 1, stream)?;
    rig.driver().stream_synchronize(stream)?;
    let mut expected = vec![0; 1000];
    expected[300..601].fill(1);
    let words = u32_of_bytes(&rig.download(memory.all())?);
    check_eq!(words, expected, "words");
    rig.close()
}

fn large(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let bytes = 4 << 20;
    let memory = rig.device(bytes)?;
    rig.memset(memory.all(), 0, stream)?;
    rig.add_u32(kernels, memory.all(), 0x0102_0304, stream)?;
    rig.driver().stream_synchronize(stream)?;
    let found = rig.download(memory.all())?;
    let wrong = found.chunks(4).position(|word| word != [4, 3, 2, 1]);
    check_eq!(wrong, None, "first wrong word");
    rig.close()
}

fn arguments_are_taken(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let memory = rig.upload(&[0; 400])?;
    rig.spin(kernels, 2_000_000, stream)?;
    let mut args = [
        KernelArg::U64(100),
        KernelArg::U32(1),
        KernelArg::Ptr(memory.base()),
    ];
    let shape = LaunchShape::for_items(100);
    for value in [1, 10, 100] {
        args[1] = KernelArg::U32(value);
        rig.launch_shaped(kernels.add_u32, shape, &args, stream)?;
    }
    // Changing the arguments now must not affect the waiting kernels.
    args[1] = KernelArg::U32(100_000);
    rig.driver().stream_synchronize(stream)?;
    let words = u32_of_bytes(&rig.download(memory.all())?);
    check_eq!(words, vec![111; 100], "sum, with {:?} remaining", args[1]);
    rig.close()
}
