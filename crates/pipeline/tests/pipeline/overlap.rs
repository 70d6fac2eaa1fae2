//! Stages of different chunks run at the same time, as the simulator's clock shows, and what a
//! pipeline records of it is what happened.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pinlane::pipeline::{PipelineConfig, PipelineOrder, RunSummary, StageKind, StageSpan};
use pinlane_sim::{Span, SpanKind};

use super::checked_job::elements;
use super::input_and_output_kinds::{From, Source, Target, To};
use super::mixing_kernel::{self, Shape};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::assert_same;

/// 100 us each way on a link of 12 GB/s, with its latency.
const CHUNK_BYTES: usize = 1_170_000;
const CHUNKS: usize = 6;
/// More than the host needs to submit one operation.
const SUBMISSION_NS: u64 = 10_000;

/// What a run recorded, and what the simulator saw.
struct Seen {
    flow: RunSummary,
    timeline: Vec<Span>,
}

/// Run chunks whose kernel takes so long.
fn run(config: PipelineConfig, kinds: (From, To), cost_us: u64) -> Seen {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config);
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| elements(CHUNKS * CHUNK_BYTES - 1000, 1));
    let bytes = &BYTES[..];
    let source = Source::new(kinds.0, &rig.device, bytes).unwrap();
    let mut target = Target::<u8>::new(kinds.1, &rig.device, bytes.len()).unwrap();
    let mut shape = Shape::new(&[1], 1);
    shape.cost_us = cost_us;
    let go = |target: &mut Target<u8>| {
        let input = source.input(1, CHUNK_BYTES, 1);
        let ran = pipeline.run(input, target.output(1), |stage, input, output| {
            mixing_kernel::launch_one(&rig.module, stage.stream(), shape, input, output)
        });
        ran.expect("it flows")
    };
    go(&mut target); // makes the buffers
    if let Target::Host(To::Writer | To::Each, bytes) = &mut target {
        bytes.clear();
    }
    let before = rig.sim.timeline().len();
    let flow = go(&mut target);
    let timeline = rig.sim.timeline().split_off(before);
    let found = target.bytes(&rig.device).unwrap();
    assert_same(&found, &shape.serial(&[bytes]), "recorded or not");
    drop((pipeline, source, target));
    rig.assert_clean();
    Seen { flow, timeline }
}

/// The stage of an operation of the device.
fn stage_of(span: &Span) -> StageKind {
    match span.kind {
        SpanKind::HostToDevice => StageKind::Upload,
        SpanKind::DeviceToHost => StageKind::Download,
        SpanKind::Kernel(_) => StageKind::Kernel,
        other => panic!("nobody asked for {other:?}"),
    }
}

/// When each stage of each chunk ran, by the simulator; one operation for each.
fn stages(timeline: &[Span]) -> BTreeMap<(u64, &'static str), (u64, u64)> {
    let mut sorted = timeline.to_vec();
    sorted.sort_by_key(|span| span.sequence);
    let mut counts = BTreeMap::new();
    let numbered = sorted.iter().map(|span| {
        let name = name(stage_of(span));
        let chunk = counts.entry(name).or_insert(0u64);
        *chunk += 1;
        ((*chunk - 1, name), (span.start_ns, span.end_ns))
    });
    numbered.collect()
}

fn name(stage: StageKind) -> &'static str {
    match stage {
        StageKind::Upload => "upload",
        StageKind::Kernel => "kernel",
        StageKind::Download => "download",
        other => panic!("{other} is not on the device"),
    }
}

fn pinned(config: PipelineConfig, cost_us: u64) -> Seen {
    run(config, (From::Pinned, To::Pinned), cost_us)
}

#[test]
fn a_chunk_is_loaded_while_the_one_before_is_worked_on() {
    for order in ORDERS {
        for slots in [2, 3, 4] {
            let mut config = config(order, CHUNK_BYTES);
            config.slots = slots;
            let Seen { flow, timeline } = pinned(config, 100);
            assert_eq!(flow.chunks, CHUNKS as u64);
            let stages = stages(&timeline);
            assert_eq!(stages.len(), 3 * CHUNKS);
            let first = stages.values().map(|(start, _)| start).min().unwrap();
            let last = stages.values().map(|(_, end)| end).max().unwrap();
            let serial: u64 = stages.values().map(|(start, end)| end - start).sum();
            let what = format!("{order:?}, {slots} slots: {} ns of {serial}", last - first);
            // Two streams of which each is one behind the other are twice as fast at best.
            assert!((last - first) * 3 < serial * 2, "{what}");
            let overlap = |a: (u64, u64), b: (u64, u64)| a.0 < b.1 && b.0 < a.1;
            let (mut ahead, mut behind) = (0, 0);
            for chunk in 0..CHUNKS as u64 - 1 {
                let kernel = stages[&(chunk, "kernel")];
                let next = stages[&(chunk + 1, "upload")];
                ahead += usize::from(overlap(kernel, next));
                let download = stages[&(chunk, "download")];
                let next = stages[&(chunk + 1, "kernel")];
                behind += usize::from(overlap(download, next));
            }
            // Two streams that go in groups come to wait for each other between two of them.
            let at_least = match order {
                PipelineOrder::StageStreams if slots > 2 => CHUNKS - 1,
                _ => CHUNKS / 2,
            };
            assert!(ahead >= at_least, "{what}: {ahead} uploads beside a kernel");
            assert!(
                behind >= at_least,
                "{what}: {behind} downloads beside a kernel"
            );
        }
    }
}

#[test]
fn stage_streams_keep_the_slowest_stage_busy() {
    for (cost_us, slowest) in [(30, "upload"), (400, "kernel")] {
        let mut config = config(PipelineOrder::StageStreams, CHUNK_BYTES);
        config.slots = 4;
        let Seen { timeline, .. } = pinned(config, cost_us);
        let stages = stages(&timeline);
        for chunk in 0..CHUNKS as u64 - 1 {
            let (_, end) = stages[&(chunk, slowest)];
            let (start, _) = stages[&(chunk + 1, slowest)];
            assert_eq!(start, end, "{slowest} {chunk}: the next begins at once");
        }
    }
}

/// Each recorded stage is where the simulator saw it, counted from the same moment.
#[track_caller]
fn assert_recorded(Seen { flow, timeline }: &Seen, what: &str) {
    let stages = stages(timeline);
    assert_eq!(flow.spans.len(), stages.len(), "{what}");
    let seen = |span: &StageSpan| stages[&(span.chunk, name(span.stage))];
    let zero = seen(&flow.spans[0]).1 - flow.spans[0].end_ns;
    for span in &flow.spans {
        let (start, end) = seen(span);
        let what = format!("{what}: {span:?}, seen {} to {}", start - zero, end - zero);
        assert_eq!(span.end_ns + zero, end, "{what}");
        // On a stream with nothing to do the mark fires at once, before the work is submitted.
        let early = (start - zero).checked_sub(span.start_ns).expect(&what);
        assert!(early <= SUBMISSION_NS, "{what}");
    }
    let ends: Vec<_> = flow.spans.iter().map(|span| span.end_ns).collect();
    assert!(ends.is_sorted(), "{what}: by their end");
}

#[test]
fn what_is_recorded_is_what_happened() {
    for order in ORDERS {
        for cost_us in [20, 350] {
            for (streams, slots) in [(1, 1), (2, 2), (3, 5)] {
                for kinds in [
                    (From::Pinned, To::Pinned),
                    (From::Reader, To::Pinned),
                    (From::Device, To::Pinned),
                    (From::Pinned, To::Device),
                ] {
                    let mut config = config(order, CHUNK_BYTES);
                    (config.streams, config.slots) = (streams, slots);
                    config.record = true;
                    let what = format!("{config:?}, {kinds:?}, {cost_us} us");
                    assert_recorded(&run(config, kinds, cost_us), &what);
                }
            }
        }
    }
}

#[test]
fn recording_ordinary_memory_and_writers_tells_all_stages() {
    for order in ORDERS {
        for kinds in [
            (From::Pageable, To::Pageable),
            (From::Batches, To::Writer),
            (From::Reader, To::Each),
        ] {
            let mut config = config(order, CHUNK_BYTES);
            (config.streams, config.slots) = (5, 5);
            config.record = true;
            let streams = match order {
                PipelineOrder::StageStreams => 3,
                _ => config.streams,
            };
            let what = format!("{config:?}, {kinds:?}");
            let Seen { flow, .. } = run(config, kinds, 50);
            let of = |stage| flow.spans.iter().filter(move |span| span.stage == stage);
            for stage in [StageKind::Upload, StageKind::Kernel, StageKind::Download] {
                let mut chunks: Vec<u64> = of(stage).map(|span| span.chunk).collect();
                chunks.sort_unstable();
                assert!(chunks.into_iter().eq(0..flow.chunks), "{what}: {stage}");
            }
            for span in &flow.spans {
                assert!(span.start_ns < span.end_ns, "{what}: {span:?}");
                // Ordinary memory goes and comes back on streams beside the others.
                let aside = match span.stage {
                    StageKind::Upload => kinds.0 != From::Reader,
                    StageKind::Download => kinds.1 == To::Pageable,
                    _ => false,
                };
                assert_eq!(span.stream >= streams, aside, "{what}: {span:?}");
            }
            for chunk in 0..flow.chunks {
                let at = |stage| of(stage).find(|span| span.chunk == chunk).unwrap();
                let [upload, kernel, download] =
                    [StageKind::Upload, StageKind::Kernel, StageKind::Download].map(at);
                assert!(upload.end_ns <= kernel.start_ns, "{what}: chunk {chunk}");
                assert!(kernel.end_ns <= download.start_ns, "{what}: chunk {chunk}");
            }
        }
    }
}

#[test]
fn orders_give_the_same_bytes_in_their_own_time() {
    let times: Vec<u64> = ORDERS
        .map(|order| {
            let mut config = config(order, CHUNK_BYTES);
            (config.streams, config.slots) = (3, 4);
            let run = || pinned(config.clone(), 60).timeline;
            let timeline = run();
            assert_eq!(timeline, run(), "{order:?}: the same on every run");
            let start = timeline.iter().map(|span| span.start_ns).min().unwrap();
            timeline.iter().map(|span| span.end_ns).max().unwrap() - start
        })
        .to_vec();
    assert!(times.iter().all(|&time| time < 1_200_000), "{times:?} ns"); // 1.56 ms one by one
}

#[test]
fn an_empty_input_records_nothing() {
    let rig = Rig::new();
    for order in ORDERS {
        let mut config = config(order, 100);
        config.record = true;
        let pipeline = rig.pipeline(config);
        let (input, output): (&[u32], &mut [u32]) = (&[], &mut []);
        let ran = pipeline.run_in_place(input, output, |_, _| panic!("no chunk"));
        let flow = ran.unwrap();
        assert_eq!((flow.chunks, flow.items, flow.spans.len()), (0, 0, 0));
    }
    rig.assert_clean();
}
