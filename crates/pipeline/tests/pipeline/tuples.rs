//! Two, three and four inputs, of different kinds and elements.

use pinlane::pipeline::{Input, Output};

use super::checked_job::elements;
use super::input_and_output_kinds::{From, Source, Target, To};
use super::mixing_kernel::{self, Shape};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::{SplitMix64, assert_same};

const ITEMS: usize = 53;

/// The kinds of all inputs but the first, which decides how long chunks are: batches have a length
/// of their own, so they can come first only.
const LATER: [From; 5] = [
    From::Pinned,
    From::Pageable,
    From::Device,
    From::Reader,
    From::Fill,
];

/// A `fill` that gives all it is asked for, so that it can follow another input.
fn obedient<T: pinlane::Pod + Send>(source: &Source<T>, width: usize) -> Input<'_, T> {
    let Source::Host(From::Fill, elements) = source else {
        return source.input(width, 7, 1);
    };
    let mut rest = &elements[..];
    let fill = move |chunk: &mut [T]| {
        let (here, later) = rest.split_at(chunk.len().min(rest.len()));
        chunk[..here.len()].copy_from_slice(here);
        rest = later;
        Ok(here.len())
    };
    Input::fill(fill).wide(width)
}

#[test]
fn two_inputs_of_all_kinds() {
    let rig = Rig::new();
    let a: Vec<f32> = elements(ITEMS * 2, 1);
    let b: Vec<u8> = elements(ITEMS * 3, 2);
    let shape = Shape::new(&[8, 3], 10);
    let bytes = [bytemuck::cast_slice(&a), &b[..]];
    let expected = shape.serial(&bytes);
    for order in ORDERS {
        let pipeline = rig.pipeline(config(order, 70));
        for first in From::ALL {
            for second in LATER {
                for to in To::ALL {
                    let one = Source::new(first, &rig.device, &a).unwrap();
                    let two = Source::new(second, &rig.device, &b).unwrap();
                    let mut target = Target::<u16>::new(to, &rig.device, ITEMS * 5).unwrap();
                    let inputs = (one.input(2, 7, 5), obedient(&two, 3));
                    let ran = pipeline.run(inputs, target.output(5), |stage, (a, b), out| {
                        let inputs = (a, b, b, b);
                        mixing_kernel::launch(&rig.module, stage.stream(), shape, inputs, out)
                    });
                    let what = format!("{first:?}, {second:?} to {to:?}, {order:?}");
                    assert_eq!(ran.expect(&what).items, ITEMS as u64, "{what}");
                    assert_same(&target.bytes(&rig.device).unwrap(), &expected, &what);
                }
            }
        }
    }
    rig.assert_clean();
}

#[test]
fn three_and_four_inputs_of_kinds_at_random() {
    let rig = Rig::new();
    let a: Vec<u64> = elements(ITEMS, 1);
    let b: Vec<u8> = elements(ITEMS * 3, 2);
    let c: Vec<f32> = elements(ITEMS * 2, 3);
    let d: Vec<u16> = elements(ITEMS * 5, 4);
    let bytes: [&[u8]; 4] = [
        bytemuck::cast_slice(&a),
        &b,
        bytemuck::cast_slice(&c),
        bytemuck::cast_slice(&d),
    ];
    let (three, four) = (Shape::new(&[8, 3, 8], 5), Shape::new(&[8, 3, 8, 10], 5));
    let mut random = SplitMix64::new(7);
    for round in 0..60 {
        let pipeline = rig.pipeline(config(ORDERS[round % 3], 10 * (1 + random.index(12))));
        let kind = |random: &mut SplitMix64| LATER[random.index(LATER.len())];
        let first = From::ALL[random.index(From::ALL.len())];
        let kinds = [
            first,
            kind(&mut random),
            kind(&mut random),
            kind(&mut random),
        ];
        let to = To::ALL[random.index(To::ALL.len())];
        let what = format!("{kinds:?} to {to:?}, {:?}", pipeline.config());
        let one = Source::new(kinds[0], &rig.device, &a).unwrap();
        let two = Source::new(kinds[1], &rig.device, &b).unwrap();
        let three_ = Source::new(kinds[2], &rig.device, &c).unwrap();
        let four_ = Source::new(kinds[3], &rig.device, &d).unwrap();
        let items = (pipeline.config().chunk_bytes / 10).max(1);

        let mut target = Target::<u8>::new(to, &rig.device, ITEMS * 5).unwrap();
        let inputs = (
            one.input(1, items, 5),
            obedient(&two, 3),
            obedient(&three_, 2),
        );
        let ran = pipeline.run(inputs, target.output(5), |stage, (a, b, c), out| {
            mixing_kernel::launch(&rig.module, stage.stream(), three, (a, b, c, c), out)
        });
        ran.expect(&what);
        let found = target.bytes(&rig.device).unwrap();
        assert_same(&found, &three.serial(&bytes), &what);

        let mut target = Target::<u8>::new(to, &rig.device, ITEMS * 5).unwrap();
        let inputs = (
            one.input(1, items, 5),
            obedient(&two, 3),
            obedient(&three_, 2),
            obedient(&four_, 5),
        );
        let ran = pipeline.run(inputs, target.output(5), |stage, inputs, out| {
            mixing_kernel::launch(&rig.module, stage.stream(), four, inputs, out)
        });
        ran.expect(&what);
        let found = target.bytes(&rig.device).unwrap();
        assert_same(&found, &four.serial(&bytes), &what);
    }
    rig.assert_clean();
}

#[test]
fn slices_of_both_kinds_of_memory_as_they_are() {
    let rig = Rig::new();
    let pinned = rig.device.pinned_from(&elements::<u32>(40, 1)).unwrap();
    let floats: Vec<f32> = elements(60, 2);
    let shape = Shape::new(&[4, 4], 4);
    let bytes: [&[u8]; 2] = [
        bytemuck::cast_slice(&pinned[10..40]),
        bytemuck::cast_slice(&floats[20..50]),
    ];
    let pipeline = rig.pipeline(config(ORDERS[2], 28));
    let mut results = rig.device.pinned::<f32>(50).unwrap();
    results.fill(0.0);
    let inputs = (pinned.range(10..40), &floats[20..50]);
    let output = Output::from(results.range_mut(5..35));
    pipeline
        .run(inputs, output, |stage, (a, b), out| {
            mixing_kernel::launch(&rig.module, stage.stream(), shape, (a, b, b, b), out)
        })
        .unwrap();
    let found: &[u8] = bytemuck::cast_slice(&results[5..35]);
    assert_same(found, &shape.serial(&bytes), "a range of everything");
    assert!(results[..5].iter().chain(&results[35..]).all(|&x| x == 0.0));
    drop((pipeline, pinned, results));
    rig.assert_clean();
}
