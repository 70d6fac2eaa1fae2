//! Odd inputs, outputs and settings, which a careful reader thought of.

use std::io::{self, Read, Write};
use std::process::Command;

use bytemuck::{Pod, Zeroable};
use pinlane::Error;
use pinlane::pipeline::{Cause, Input, Output, PipelineConfig, PipelineOrder, StageKind};
use pinlane_driver::Call;
use pinlane_model::pipeline::{Job, KernelTime, Memory};
use pinlane_model::planner::{Limits, best};

use super::rig::{Rig, config};
use pinlane_testing::{Spring, Trap, pattern};

/// Says that it read more bytes than requested for, the second time.
struct Boaster(u32);

impl Read for Boaster {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        self.0 += 1;
        Ok(if self.0 == 2 {
            chunk.len() + 1
        } else {
            chunk.len()
        })
    }
}

#[test]
fn a_reader_that_boasts_is_not_believed() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, 100));
    let reader = Input::<u8>::reader(Boaster(0));
    let ran = pipeline.run_in_place(reader, Output::each(|_| Ok(())), |_, _| Ok(()));
    let error = ran.unwrap_err();
    assert_eq!(error.place, Some((1, StageKind::Read)));
    assert!(
        error.to_string().contains("more bytes than requested"),
        "{error}"
    );
    drop(pipeline);
    rig.assert_clean();
}

/// Cannot be flushed.
struct Stuck;

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::Error::other("stuck"))
    }
}

#[test]
fn the_first_error_is_told_and_not_the_one_behind_it() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, 100));
    let mut chunks = 0;
    let input = Input::<u8>::fill(|chunk| {
        chunks += 1;
        if chunks == 6 {
            return Err(io::Error::other("torn tape"));
        }
        Ok(chunk.len())
    });
    let ran = pipeline.run_in_place(input, Output::writer(Stuck), |_, _| Ok(()));
    let error = ran.unwrap_err();
    assert_eq!(error.place, Some((5, StageKind::Read)), "{error}");
    drop(pipeline);
    rig.assert_clean();
}

/// From a job to a pipeline that does it as planned.
#[test]
fn a_plan_can_be_run() {
    let rig = Rig::new();
    let input = pattern(3_000_001, 5);
    let bytes = input.len() as u64;
    let job = Job {
        bytes_in: bytes,
        bytes_out: bytes,
        kernel: KernelTime::default(),
        input: Memory::Pageable,
        output: Memory::Pageable,
        host_ns_per_chunk: 0,
    };
    let plan = best(&job, &pinlane_testing::profile(), &Limits::default()).unwrap();
    let pipeline = rig.pipeline(PipelineConfig::planned(&plan.shape, 1).unwrap());
    assert_eq!(pipeline.config().chunk_bytes as u64, plan.shape.chunk_bytes);
    assert_eq!(pipeline.config().slots as u32, plan.shape.ring_slots);
    let wide = PipelineConfig::planned(&plan.shape, 1000).unwrap();
    assert_eq!(
        wide.chunk_bytes,
        pipeline.config().chunk_bytes.next_multiple_of(1000)
    );
    let mut output = vec![0; input.len()];
    let flow = pipeline.run_in_place(&input[..], &mut output, |_, _| Ok(()));
    assert_eq!(flow.unwrap().chunks, bytes.div_ceil(plan.shape.chunk_bytes));
    assert_eq!(output, input);
    drop(pipeline);
    rig.assert_clean();
}

#[test]
fn one_chunk_for_all_however_large_a_chunk_may_be() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, usize::MAX));
    let input = pattern(100_000, 3);
    let mut output = vec![0; input.len()];
    let flow = pipeline.run_in_place(&input[..], &mut output, |_, _| Ok(()));
    assert_eq!(flow.unwrap().chunks, 1);
    assert_eq!(output, input);
    drop(pipeline);
    rig.assert_clean();
}

#[derive(Clone, Copy)]
#[repr(C, align(8192))]
struct Wide([u8; 8192]);

// SAFETY: bytes, of which zero is one.
unsafe impl Zeroable for Wide {}
// SAFETY: bytes without padding.
unsafe impl Pod for Wide {}

#[test]
fn elements_that_pinned_memory_cannot_hold_are_refused() {
    let rig = Rig::new();
    let pipeline = rig.pipeline(config(PipelineOrder::StageStreams, 1 << 20));
    let filled = Input::<Wide>::fill(|_| Ok(0));
    let mut kept = rig.device.alloc::<Wide>(1).unwrap();
    let ran = pipeline.run_in_place(filled, &mut kept, |_, _| Ok(()));
    assert!(matches!(
        ran.unwrap_err().cause,
        Cause::Pinlane(Error::TooAligned { align: 8192 })
    ));
    let taken = Output::each(|_: &[Wide]| Ok(()));
    let ran = pipeline.run_in_place(&kept, taken, |_, _| Ok(()));
    assert!(matches!(
        ran.unwrap_err().cause,
        Cause::Pinlane(Error::TooAligned { align: 8192 })
    ));
    drop((pipeline, kept));
    rig.assert_clean();
}

#[test]
fn many_pieces_of_an_iterator_that_promises_the_moon() {
    let rig = Rig::new();
    let stream = rig.device.stream().unwrap();
    let rows = pattern(1000, 4);
    let mut table = rig.device.alloc::<u8>(1000).unwrap();
    let pieces = rows.chunks(10).zip(table.whole_mut().chunks(10));
    struct Moon<I>(I);
    impl<I: Iterator> Iterator for Moon<I> {
        type Item = I::Item;
        fn next(&mut self) -> Option<I::Item> {
            self.0.next()
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, None)
        }
    }
    stream.upload_many(Moon(pieces)).unwrap();
    assert_eq!(stream.copy_to_vec(&table).unwrap(), rows);
}

/// Borrowed memory goes back when a scope ends: where the driver panics over the wait for it, the
/// process ends, in a process of its own here.
#[test]
fn a_driver_that_panics_at_the_end_of_a_scope_ends_the_process() {
    const NAME: &str = "edge_cases::a_driver_that_panics_at_the_end_of_a_scope_ends_the_process";
    if std::env::var_os("PINLANE_TEST_ABORTS").is_none() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .env("PINLANE_TEST_ABORTS", "1")
            .output()
            .unwrap();
        let says = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(says.contains("ending the process"), "{says}");
        return;
    }
    let rig = Rig::new();
    let (device, trap) = Trap::under(&rig.sim);
    let stream = device.stream().unwrap();
    let pinned = device.pinned::<u8>(1 << 20).unwrap();
    let mut target = device.alloc::<u8>(1 << 20).unwrap();
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.scope(|scope| {
            scope.upload(&stream, &pinned, &mut target)?;
            trap.set(Call::EventSynchronize, 0, Spring::Panic);
            Ok(())
        })
    }));
    println!("the process went on");
}
