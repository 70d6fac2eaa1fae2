//! Conversions that bypass the caches: same bits as the plain ones for any address and length, and
//! nothing else is written.

use std::fmt::Debug;
use std::ops::Range;

use pinlane_kernels::{Instructions, convert};

type Narrow = fn(Instructions, &[f32], &mut [u16]);
type Widen = fn(Instructions, &[u8], f32, f32, &mut [f32]);

const NARROW: [(&str, Narrow, Narrow); 2] = [
    (
        "bf16",
        Instructions::f32_to_bf16,
        Instructions::f32_to_bf16_streaming,
    ),
    (
        "f16",
        Instructions::f32_to_f16,
        Instructions::f32_to_f16_streaming,
    ),
];
const WIDEN: (Widen, Widen) = (Instructions::u8_to_f32, Instructions::u8_to_f32_streaming);

const LINE_BYTES: usize = 64;
/// Room around a target, in elements, to see what is written there.
const MARGIN: usize = 40;

/// Numbers that differ from their neighbours after rounding too, denormals and NaNs among them.
fn numbers(count: usize) -> Vec<f32> {
    (0..count as u32)
        .map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9)))
        .collect()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 37 + i / 64) as u8).collect()
}

/// A buffer full of `filler` and where in it so many elements begin that many bytes past a line.
fn buffer<T: Clone>(filler: T, past_line_bytes: usize, count: usize) -> (Vec<T>, Range<usize>) {
    let line_len = LINE_BYTES / size_of::<T>();
    let buffer = vec![filler; MARGIN + 2 * line_len + count + MARGIN];
    let line = MARGIN + buffer[MARGIN..].as_ptr().align_offset(LINE_BYTES);
    let start = line + past_line_bytes / size_of::<T>();
    assert_eq!(
        buffer[start..].as_ptr().addr() % LINE_BYTES,
        past_line_bytes
    );
    (buffer, start..start + count)
}

/// Does the work plainly by the reference and streaming by `instructions`, each between fillers,
/// and compares all.
fn check<T: Copy + PartialEq + Debug>(
    what: &str,
    instructions: Instructions,
    filler: T,
    (past_line_bytes, count): (usize, usize),
    plain: impl Fn(Instructions, &mut [T]),
    streaming: impl Fn(Instructions, &mut [T]),
) {
    let (mut found, part) = buffer(filler, past_line_bytes, count);
    let mut expected = found.clone();
    plain(Instructions::available()[0], &mut expected[part.clone()]);
    streaming(instructions, &mut found[part.clone()]);
    if let Some(at) = (0..found.len()).find(|at| found[*at] != expected[*at]) {
        panic!(
            "{what} by {}, {count} to {past_line_bytes} bytes past a line: number {} is {:?}, not {:?}",
            instructions.name(),
            at as isize - part.start as isize,
            found[at],
            expected[at]
        );
    }
}

/// All conversions of so many numbers to so many bytes past a line; the source begins anywhere.
fn check_all(past_line_bytes: usize, count: usize, numbers: &[f32], bytes: &[u8]) {
    let place = (past_line_bytes, count);
    let from = count % 7;
    for instructions in Instructions::available() {
        if past_line_bytes.is_multiple_of(size_of::<u16>()) {
            let source = &numbers[from..][..count];
            for (what, plain, streaming) in NARROW {
                check(
                    what,
                    instructions,
                    0x5a5a_u16,
                    place,
                    |by, target| plain(by, source, target),
                    |by, target| streaming(by, source, target),
                );
            }
        }
        if past_line_bytes.is_multiple_of(size_of::<f32>()) {
            let source = &bytes[from..][..count];
            let (plain, streaming) = WIDEN;
            check(
                "u8",
                instructions,
                0.25,
                place,
                |by, target| plain(by, source, 0.1, -0.485, target),
                |by, target| streaming(by, source, 0.1, -0.485, target),
            );
        }
    }
}

#[test]
fn every_alignment_of_the_target_and_every_small_length() {
    let (alignments, lengths) = if cfg!(miri) { (22, 41) } else { (2, 1) };
    let (numbers, bytes) = (numbers(310), bytes(310));
    for past_line_bytes in (0..LINE_BYTES).step_by(alignments) {
        for count in (0..=300).step_by(lengths) {
            check_all(past_line_bytes, count, &numbers, &bytes);
        }
    }
}

#[test]
fn large_and_odd_lengths() {
    let largest = if cfg!(miri) { 403 } else { 1_000_003 };
    let (numbers, bytes) = (numbers(largest + 7), bytes(largest + 7));
    for count in [largest / 3, largest / 2, largest - 64, largest] {
        for past_line_bytes in [0, 4, 62, 32] {
            check_all(past_line_bytes, count, &numbers, &bytes);
        }
    }
}

/// The fence belongs to the call: who is told that it is over sees all of it.
#[test]
fn another_thread_sees_all_of_it() {
    let numbers = numbers(if cfg!(miri) { 1_000 } else { 100_000 });
    let mut expected = vec![0; numbers.len()];
    convert::f32_to_bf16(&numbers, &mut expected);
    let mut target = vec![0; numbers.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| convert::f32_to_bf16_streaming(&numbers, &mut target));
    });
    assert!(target == expected);
}

#[test]
fn the_functions_do_what_their_names_say() {
    let (numbers, bytes) = (numbers(1_000), bytes(1_000));
    let best = Instructions::best();
    for (function, method) in [
        (
            convert::f32_to_bf16_streaming as fn(&[f32], &mut [u16]),
            Instructions::f32_to_bf16 as Narrow,
        ),
        (convert::f32_to_f16_streaming, Instructions::f32_to_f16),
    ] {
        let (mut found, mut expected) = (vec![0; 1_000], vec![0; 1_000]);
        function(&numbers, &mut found);
        method(best, &numbers, &mut expected);
        assert_eq!(found, expected);
    }
    let (mut found, mut expected) = (vec![0.0; 1_000], vec![0.0; 1_000]);
    convert::u8_to_f32_streaming(&bytes, 0.5, -3.0, &mut found);
    best.u8_to_f32(&bytes, 0.5, -3.0, &mut expected);
    assert_eq!(found, expected);
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
    panics(|by| by.f32_to_bf16_streaming(&[0.0; 140], &mut [0; 139]));
    panics(|by| by.f32_to_f16_streaming(&[0.0; 139], &mut [0; 140]));
    panics(|by| by.u8_to_f32_streaming(&[0; 140], 1.0, 0.0, &mut [0.0; 139]));
}
