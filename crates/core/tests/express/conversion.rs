//! Conversions in both directions, bit for bit against the `half` crate and plain arithmetic.

use half::{bf16, f16};
use pinlane::{Conversion, Device, F32ToBf16, F32ToF16, Stream, U8ToF32};
use pinlane_sim::SpanKind;

use pinlane_testing::{CHUNK_BYTES, SplitMix64, assert_same, copies, pattern, small};

/// Lengths around the boundaries of chunks.
const LENGTHS: [usize; 9] = [
    1,
    2,
    7,
    4097,
    CHUNK_BYTES / 2 - 1,
    CHUNK_BYTES / 2,
    CHUNK_BYTES / 2 + 1,
    3 * CHUNK_BYTES + 5,
    100_003,
];

/// Numbers that are hard to round, and random ones.
fn floats(len: usize) -> Vec<f32> {
    let mut special: Vec<f32> = vec![
        0.0,
        -0.0,
        1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        f32::EPSILON,
        65504.0,
        65519.99,
        65520.0,
        -65520.0,
        5.96e-8,
        2.98e-8,
    ];
    // Quiet and signalling NaNs of both signs, the smallest and the largest denormal, ties to even
    // in both directions for both types, and their neighbours.
    let bits = [
        0x7fc0_0001,
        0xffc1_2345,
        0x7f80_0001,
        0xff80_0001,
        0x7fbf_ffff,
        0x0000_0001,
        0x8000_0001,
        0x007f_ffff,
        0x3f80_8000,
        0x3f81_8000,
        0x3f80_8001,
        0x3f80_7fff,
        0x3f80_1000,
        0x3f80_3000,
        0x3f80_1001,
        0x3f80_0fff,
        0x7f7f_8000,
        0x477f_efff,
        0x477f_f000,
        0x3380_0000,
        0x3300_0000,
        0x3300_0001,
        0x3880_0000,
        0x387f_e000,
    ];
    special.extend(bits.map(f32::from_bits));
    let mut random = SplitMix64::new(len as u64);
    let any = std::iter::repeat_with(move || f32::from_bits(random.next_u64() as u32));
    special.into_iter().chain(any).take(len).collect()
}

/// Compares bits, since a NaN does not equal itself.
fn check<C: Conversion>(
    (device, stream): (&Device, &Stream),
    conversion: C,
    source: &[C::From],
    expected: &[C::To],
    what: &str,
) where
    C::To: PartialEq,
{
    let len = source.len();
    let bytes = |items: &[C::To]| bytemuck::cast_slice::<_, u8>(items).to_vec();
    let margin = |at: usize| vec![<C::To as bytemuck::Zeroable>::zeroed(); at];

    let mut target = device.alloc::<C::To>(len + 5).unwrap();
    stream.fill_bytes(&mut target, 0).unwrap();
    stream
        .upload_as(conversion, source, target.range_mut(2..len + 2))
        .unwrap();
    let mut found = margin(len + 5);
    stream.driver_copy_to_host(&target, &mut found).unwrap();
    let all = [&margin(2), expected, &margin(3)].concat();
    assert_same(&bytes(&found), &bytes(&all), &format!("{what}, up, {len}"));

    let mut on_device = device.alloc::<C::From>(len + 3).unwrap();
    stream
        .driver_copy_to_device(source, on_device.range_mut(3..))
        .unwrap();
    let mut found = margin(len + 2);
    stream
        .download_as(conversion, on_device.range(3..), &mut found[1..=len])
        .unwrap();
    let all = [&margin(1), expected, &margin(1)].concat();
    assert_same(
        &bytes(&found),
        &bytes(&all),
        &format!("{what}, down, {len}"),
    );
}

#[test]
fn f32_to_bf16_and_f16() {
    for (lanes, ring_chunks) in [(1, 1), (2, 3), (4, 2)] {
        let (sim, device, stream) = small(lanes, ring_chunks);
        for len in LENGTHS {
            let source = floats(len);
            let brain: Vec<bf16> = source.iter().map(|&x| bf16::from_f32(x)).collect();
            check((&device, &stream), F32ToBf16, &source, &brain, "bf16");
            let short: Vec<f16> = source.iter().map(|&x| f16::from_f32(x)).collect();
            check((&device, &stream), F32ToF16, &source, &short, "f16");
        }
        drop((stream, device));
        pinlane_testing::assert_clean(&sim);
    }
}

#[test]
fn u8_to_f32_with_any_scale_and_offset() {
    let (sim, device, stream) = small(2, 2);
    let scales = [
        (1.0, 0.0),
        (2.0 / 255.0, -1.0),
        (1.0 / 3.0, 0.1),
        (-0.0, -0.0),
        (f32::MAX, 1.0),
        (f32::MIN_POSITIVE / 512.0, 0.0),
        (f32::INFINITY, 0.5),
    ];
    for (len, (scale, offset)) in LENGTHS.into_iter().zip(scales.into_iter().cycle()) {
        let source = pattern(len, len as u64);
        // Rounded after each step: no fused multiply-add.
        let expected: Vec<f32> = source
            .iter()
            .map(|&x| std::hint::black_box(f32::from(x) * scale) + offset)
            .collect();
        let conversion = U8ToF32 { scale, offset };
        check((&device, &stream), conversion, &source, &expected, "f32");
    }
    drop((stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn only_the_smaller_type_goes_over_the_link() {
    let (sim, device, stream) = small(1, 2);
    let len = 100_000;
    let total = |kind| copies(&sim, kind).iter().sum::<usize>();
    let (floats, bytes) = (floats(len), pattern(len, 1));
    let mut narrow = device.alloc::<f16>(len).unwrap();
    stream.upload_as(F32ToF16, &floats, &mut narrow).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(total(SpanKind::HostToDevice), 2 * len);
    let mut wide = device.alloc::<f32>(len).unwrap();
    let conversion = U8ToF32 {
        scale: 1.0,
        offset: 0.0,
    };
    stream.upload_as(conversion, &bytes, &mut wide).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(total(SpanKind::HostToDevice), 3 * len);
    let mut back = vec![bf16::ZERO; len];
    stream.download_as(F32ToBf16, &wide, &mut back).unwrap();
    assert_eq!(total(SpanKind::DeviceToHost), 2 * len);
}
