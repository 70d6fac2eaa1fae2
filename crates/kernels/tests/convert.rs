//! The converters against the crate `half`, with every instruction set of this CPU.

use pinlane_kernels::{Instructions, convert};

/// Lower halves that make ties, near ties and carries, for bf16 (16 bits go) and f16 (13 go).
const LOWER_HALVES: [u16; 20] = [
    0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2fff, 0x3000, 0x3001, 0x5000, 0x7000,
    0x7fff, 0x8000, 0x8001, 0xa5a5, 0xcfff, 0xf000, 0xf001, 0xffff,
];

type Narrow = fn(Instructions, &[f32], &mut [u16]);
type Reference = fn(f32) -> u16;

/// A way to narrow, and what each number must become.
const NARROW: [(&str, Narrow, Reference); 4] = [
    ("bf16", Instructions::f32_to_bf16, to_bf16),
    ("f16", Instructions::f32_to_f16, to_f16),
    (
        "bf16 streaming",
        Instructions::f32_to_bf16_streaming,
        to_bf16,
    ),
    ("f16 streaming", Instructions::f32_to_f16_streaming, to_f16),
];

// By integers, not by what the CPU has for it.
fn to_bf16(value: f32) -> u16 {
    half::bf16::from_f32_const(value).to_bits()
}

fn to_f16(value: f32) -> u16 {
    half::f16::from_f32_const(value).to_bits()
}

/// Checks all numbers with all instructions, `target` being of the same length.
fn check_all(source: &[f32], target: &mut [u16]) {
    for (name, narrow, expected) in NARROW {
        let expected: Vec<u16> = source.iter().map(|value| expected(*value)).collect();
        for instructions in Instructions::available() {
            target.fill(0x5a5a);
            narrow(instructions, source, target);
            if let Some(at) = (0..source.len()).find(|at| target[*at] != expected[*at]) {
                panic!(
                    "{name} by {}: {:#010x} became {:#06x}, not {:#06x}",
                    instructions.name(),
                    source[at].to_bits(),
                    target[at],
                    expected[at]
                );
            }
        }
    }
}

#[test]
fn every_upper_half_with_lower_halves_that_matter() {
    let uppers = if cfg!(miri) { 0x10 } else { 0x1_0000 };
    let mut target = vec![0; uppers];
    for lower in LOWER_HALVES {
        let source: Vec<f32> = (0..uppers)
            .map(|upper| f32::from_bits((upper as u32) << 16 | u32::from(lower)))
            .collect();
        check_all(&source, &mut target);
    }
}

/// Some minutes in a debug build, about one with
/// `cargo test --release -p pinlane-kernels --test convert -- --ignored`.
#[test]
#[ignore = "all four billion numbers"]
fn every_number() {
    const BLOCK: u32 = 1 << 16;
    let next = std::sync::atomic::AtomicU32::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut target = vec![0; BLOCK as usize];
                loop {
                    let upper = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if upper > u32::MAX / BLOCK {
                        return;
                    }
                    let source: Vec<f32> = (0..BLOCK)
                        .map(|lower| f32::from_bits(upper * BLOCK + lower))
                        .collect();
                    check_all(&source, &mut target);
                }
            });
        }
    });
}

#[test]
fn known_values() {
    let source = [
        1.0,
        -0.0,
        65_504.0,
        65_519.996,
        65_520.0,
        f32::NEG_INFINITY,
        f32::from_bits(0x3300_0000),
        f32::from_bits(0x3300_0001),
        f32::from_bits(0x0000_8000),
        f32::from_bits(0x0001_8000),
        f32::from_bits(0x7f80_0001),
        f32::from_bits(0xffc1_2345),
    ];
    let mut target = [0; 12];
    convert::f32_to_bf16(&source, &mut target);
    assert_eq!(
        target,
        [
            0x3f80, 0x8000, 0x4780, 0x4780, 0x4780, 0xff80, 0x3300, 0x3300, 0x0000, 0x0002, 0x7fc0,
            0xffc1
        ]
    );
    convert::f32_to_f16(&source, &mut target);
    assert_eq!(
        target,
        [
            0x3c00, 0x8000, 0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x0000, 0x0001, 0x0000, 0x0000, 0x7e00,
            0xfe09
        ]
    );
}

/// Lengths around those of vectors, from and to any element of a buffer, nothing beside touched.
#[test]
fn any_length_and_any_start() {
    let numbers: Vec<f32> = (0..120).map(|i| 1.0 + i as f32 / 1000.0).collect();
    let bytes: Vec<u8> = (0..120).map(|i| i * 2 + 1).collect();
    for instructions in Instructions::available() {
        let name = instructions.name();
        for start in 0..5 {
            for count in 0..=100 {
                let parts = start..start + count;
                for (kind, narrow, expected) in NARROW {
                    let mut target = [0x5a5a; 120];
                    narrow(
                        instructions,
                        &numbers[parts.clone()],
                        &mut target[10 - start..][..count],
                    );
                    let mut all = [0x5a5a; 120];
                    for i in 0..count {
                        all[10 - start + i] = expected(numbers[start + i]);
                    }
                    assert_eq!(target, all, "{kind} by {name}: {count} from {start}");
                }
                let mut target = [0.25; 120];
                let part = &mut target[10 - start..][..count];
                instructions.u8_to_f32(&bytes[parts.clone()], 3.0, 0.5, part);
                let mut all = [0.25; 120];
                for i in 0..count {
                    all[10 - start + i] = f32::from(bytes[start + i]) * 3.0 + 0.5;
                }
                assert_eq!(target, all, "u8 by {name}: {count} from {start}");
            }
        }
    }
}

#[test]
fn bytes_are_rounded_twice_and_denormals_are_kept() {
    let source: Vec<u8> = (0..=255).collect();
    let mut fused_differs = 0;
    let mut denormals = 0;
    for scale in [1.0 / 255.0, -0.1, 1e-44, f32::MAX, 0.0, f32::INFINITY] {
        for offset in [0.0, -0.485, 1e-43, -1e38, f32::NEG_INFINITY] {
            let expected: Vec<f32> = source
                .iter()
                .map(|x| f32::from(*x) * scale + offset)
                .collect();
            for instructions in Instructions::available() {
                let mut target = vec![7.0; 256];
                instructions.u8_to_f32(&source, scale, offset, &mut target);
                for (x, (found, expected)) in target.iter().zip(&expected).enumerate() {
                    let same = found.to_bits() == expected.to_bits();
                    assert!(
                        same || found.is_nan() && expected.is_nan(),
                        "{}: {x} * {scale} + {offset} is {expected}, not {found}",
                        instructions.name()
                    );
                }
            }
            for (x, expected) in source.iter().zip(expected) {
                fused_differs += usize::from(f32::from(*x).mul_add(scale, offset) != expected);
                denormals += usize::from(expected.is_subnormal());
            }
        }
    }
    // The choice of numbers shows what it is meant to show.
    assert!(
        fused_differs > 50,
        "only {fused_differs} tell the two apart"
    );
    assert!(denormals > 50, "only {denormals} denormals");
}

#[test]
fn different_lengths_are_refused() {
    let panics = |work: fn(Instructions)| {
        for instructions in Instructions::available() {
            assert!(
                std::panic::catch_unwind(|| work(instructions)).is_err(),
                "{} took them",
                instructions.name()
            );
        }
    };
    panics(|by| by.f32_to_bf16(&[0.0; 40], &mut [0; 39]));
    panics(|by| by.f32_to_f16(&[0.0; 39], &mut [0; 40]));
    panics(|by| by.u8_to_f32(&[0; 40], 1.0, 0.0, &mut [0.0; 39]));
    panics(|by| by.copy_streaming(&[0; 200], &mut [0; 199]));
}

#[test]
fn the_best_instructions_are_the_last_available() {
    assert_eq!(
        Instructions::available().last(),
        Some(&Instructions::best())
    );
}
