//! Lengths and settings that do not fit each other.

use pinlane::pipeline::{
    Cause, Input, Output, PipelineError, PipelineOrder, RunSummary, StageKind,
};
use pinlane::{Error, Pod};

use super::input_and_output_kinds::{From, Source, Target, To};
use super::rig::{ORDERS, Rig, config};

/// The error of a run, its place and its text.
#[track_caller]
fn refused(ran: Result<RunSummary, PipelineError>) -> (Option<(u64, StageKind)>, String) {
    let error = ran.expect_err("lengths do not fit");
    (error.place, error.to_string())
}

/// Copies its input, for outputs as wide as it.
fn copy<T: Pod>(
    rig: &Rig,
    order: PipelineOrder,
    input: Input<'_, T>,
    output: Output<'_, T>,
) -> Result<RunSummary, PipelineError> {
    let pipeline = rig.pipeline(config(order, 10 * size_of::<T>()));
    pipeline.run(input, output, |stage, input, output| {
        stage.stream().copy_on_device(input, output)
    })
}

#[test]
fn known_lengths_are_compared_before_anything_runs() {
    let rig = Rig::new();
    for from in [From::Pinned, From::Pageable, From::Device] {
        for to in [To::Pinned, To::Pageable, To::Device] {
            let source = Source::new(from, &rig.device, &[1u32; 30]).unwrap();
            let mut target = Target::new(to, &rig.device, 29).unwrap();
            let ran = copy(
                &rig,
                PipelineOrder::StageStreams,
                source.input(1, 10, 1),
                target.output(1),
            );
            let (place, text) = refused(ran);
            assert_eq!(place, None);
            assert_eq!(text, "source holds 30 elements, target 29");
        }
    }
    assert_eq!(
        rig.sim
            .timeline()
            .iter()
            .filter(|span| span.bytes == 40)
            .count(),
        0
    );
    rig.assert_clean();
}

#[test]
fn a_source_of_unknown_length_that_gives_more_than_the_output_holds() {
    let rig = Rig::new();
    for order in ORDERS {
        for from in [From::Reader, From::Fill, From::Batches] {
            for to in [To::Pinned, To::Pageable, To::Device] {
                let source = Source::new(from, &rig.device, &[1u32; 30]).unwrap();
                let mut target = Target::new(to, &rig.device, 29).unwrap();
                let ran = copy(&rig, order, source.input(1, 10, 1), target.output(1));
                let (place, text) = refused(ran);
                let (chunk, stage) = place.expect("it is known where");
                assert!(
                    matches!(stage, StageKind::Download | StageKind::Kernel),
                    "{stage}"
                );
                assert!(
                    chunk >= 2 && (from != From::Reader || chunk == 2),
                    "{chunk}"
                );
                assert!(
                    text.starts_with(&format!("chunk {chunk}, {stage}: ")),
                    "{text}"
                );
            }
        }
    }
    rig.assert_clean();
}

#[test]
fn a_source_of_unknown_length_that_gives_less_leaves_the_rest_as_it_was() {
    let rig = Rig::new();
    for order in ORDERS {
        for to in [To::Pinned, To::Pageable] {
            let source = Source::new(From::Reader, &rig.device, &[0x0101_0101u32; 25]).unwrap();
            let mut target = Target::new(to, &rig.device, 29).unwrap();
            let ran = copy(&rig, order, source.input(1, 10, 1), target.output(1));
            assert_eq!(ran.unwrap().items, 25);
            let bytes = target.bytes(&rig.device).unwrap();
            assert_eq!(bytes, [&[1; 100][..], &[0; 16][..]].concat());
        }
    }
    rig.assert_clean();
}

#[test]
fn inputs_of_different_length() {
    let rig = Rig::new();
    let long = [1u32; 30];
    for order in ORDERS {
        let pipeline = rig.pipeline(config(order, 40));
        let mut all = Vec::new();
        // Both known: nothing runs.
        let ran = pipeline.run(
            (&long[..], &long[..29]),
            Output::each(|_: &[u32]| Ok(())),
            |_, _, _| panic!("nothing runs"),
        );
        let (place, text) = refused(ran);
        assert_eq!(
            (place, &*text),
            (None, "one input has 30 items, another 29")
        );
        // One unknown, as first and second, too short and too long, by a part of a chunk and by
        // whole ones.
        for short in [0, 3, 10, 29] {
            for first_is_short in [true, false] {
                let (one, two) = match first_is_short {
                    true => (short, 30),
                    false => (30, short),
                };
                let reader = Input::<u32>::reader(bytemuck::cast_slice(&long[..one]));
                let taken = Output::each(|chunk: &[u32]| {
                    all.push(chunk.len());
                    Ok(())
                });
                let ran = pipeline.run((reader, &long[..two]), taken, |stage, (a, _), out| {
                    stage.stream().copy_on_device(a, out)
                });
                let (place, text) = refused(ran);
                let chunk = short as u64 / 10;
                // What came first decides how much of the second is used.
                let chunk = if first_is_short {
                    short.div_ceil(10) as u64
                } else {
                    chunk
                };
                let what = format!("{short}, first {first_is_short}, {order:?}: {text}");
                assert_eq!(place, Some((chunk, StageKind::Read)), "{what}");
                let start = format!("chunk {chunk}, read: one input has ");
                assert!(text.starts_with(&start), "{what}");
            }
        }
        drop(pipeline);
    }
    rig.assert_clean();
}

#[test]
fn memory_that_is_no_whole_number_of_items() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, 40));
    let words = [1u32; 10];
    let input = Source::Host(From::Pageable, words.to_vec());
    let ran = pipeline.run(
        input.input(3, 3, 1),
        Output::each(|_: &[u8]| Ok(())),
        |_, _, _| Ok(()),
    );
    assert_eq!(
        refused(ran),
        (None, "input: a whole number of items".into())
    );
    let mut output = [0u32; 10];
    let output = Output::from(&mut output[..]).wide(3);
    let ran = pipeline.run(&words[..], output, |_, _, _| Ok(()));
    assert_eq!(
        refused(ran),
        (None, "output: a whole number of items".into())
    );
    let nothing = Input::<u32>::reader(&[][..]).wide(0);
    let ran = pipeline.run(nothing, Output::each(|_: &[u8]| Ok(())), |_, _, _| Ok(()));
    assert_eq!(
        refused(ran),
        (None, "wide: items of at least one byte".into())
    );
    let huge = Input::<u32>::reader(&[][..]).wide(usize::MAX);
    let ran = pipeline.run(huge, Output::each(|_: &[u8]| Ok(())), |_, _, _| Ok(()));
    let cause = ran.expect_err("no memory is that large").cause;
    assert!(
        matches!(cause, Cause::Pinlane(Error::TooLarge { .. })),
        "{cause}"
    );
    drop(pipeline);
    rig.assert_clean();
}

#[test]
fn settings_that_are_not_possible() {
    let rig = Rig::new();
    let refused = |order, chunk_bytes, streams, slots| {
        let mut config = config(order, chunk_bytes);
        (config.streams, config.slots) = (streams, slots);
        let made = pinlane::pipeline::Pipeline::new(&rig.device, config);
        match made.expect_err("not possible") {
            Error::InvalidConfig { field, .. } => field,
            other => panic!("{other}"),
        }
    };
    use PipelineOrder::{BreadthFirst, DepthFirst};
    assert_eq!(refused(DepthFirst, 0, 2, 2), "chunk_bytes");
    assert_eq!(refused(DepthFirst, 1, 0, 2), "streams");
    assert_eq!(refused(DepthFirst, 1, 129, 200), "streams");
    assert_eq!(refused(DepthFirst, 1, 2, 0), "slots");
    assert_eq!(refused(BreadthFirst, 1, 3, 2), "slots");
    rig.assert_clean();
}
