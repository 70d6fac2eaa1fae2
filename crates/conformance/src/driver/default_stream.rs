//! The default stream and its order with blocking streams.

use pinlane_driver::{Result, StreamFlags, StreamHandle};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check;
use crate::rig::Rig;

cases! {
    "default-stream/runs-work-in-order" => runs_in_order,
    "default-stream/query-and-synchronize" => query_and_synchronize,
    "default-stream/holds-blocking-streams" => holds_blocking,
    "default-stream/waits-for-blocking-streams" => waits_for_blocking,
    "default-stream/leaves-non-blocking-streams-alone" => leaves_alone,
    "default-stream/does-not-wait-for-non-blocking" => does_not_wait,
    "default-stream/joins-two-blocking-streams" => joins_two,
    "default-stream/blocking-streams-are-independent" => independent,
}

fn blocking(rig: &Rig) -> Result<StreamHandle> {
    rig.stream_with(StreamFlags::default())
}

fn runs_in_order(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.default_stream();
    let memory = rig.device(400)?;
    let target = rig.pinned(400)?;
    rig.memset(memory.all(), 0, stream)?;
    rig.add_u32(kernels, memory.all(), 6, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.stream_synchronize(stream)?;
    rig.check_words(target.all(), &[6; 100], "result")
}

fn query_and_synchronize(rig: &Rig) -> Outcome {
    let stream = rig.default_stream();
    let gate = rig.gate(stream)?;
    check!(!rig.stream_query(stream)?, "its work is not reported");
    gate.open();
    rig.stream_synchronize(stream)?;
    check!(rig.stream_query(stream)?, "its work is not done");
    Ok(())
}

/// Work in `second` waits while `first` is held; fails with `overtook` if it does not.
fn second_waits(rig: &Rig, first: StreamHandle, second: StreamHandle, overtook: &str) -> Outcome {
    let memory = rig.upload(&[0; 40])?;
    let source = rig.pinned_from(&[1; 40])?;
    let done = rig.event()?;
    let gate = rig.gate(first)?;
    rig.copy_async(memory.all(), source.all(), second)?;
    rig.event_record(done, second)?;
    let waits = !rig.event_query(done)?;
    gate.open();
    rig.event_synchronize(done)?;
    rig.stream_synchronize(first)?;
    rig.check(memory.all(), &[1; 40], "result")?;
    check!(waits, "{overtook}");
    Ok(())
}

fn holds_blocking(rig: &Rig) -> Outcome {
    let overtook = "a blocking stream overtook the default stream";
    second_waits(rig, rig.default_stream(), blocking(rig)?, overtook)
}

fn waits_for_blocking(rig: &Rig) -> Outcome {
    let overtook = "the default stream overtook a blocking stream";
    second_waits(rig, blocking(rig)?, rig.default_stream(), overtook)
}

/// Work in `second` completes while `first` is held.
fn second_runs(rig: &Rig, first: StreamHandle, second: StreamHandle) -> Outcome {
    let memory = rig.upload(&[0; 40])?;
    let (source, target) = (rig.pinned_from(&[1; 40])?, rig.pinned(40)?);
    let gate = rig.gate(first)?;
    rig.copy_async(memory.all(), source.all(), second)?;
    rig.copy_async(target.all(), memory.all(), second)?;
    // Would never return if the second stream waited for the first.
    rig.stream_synchronize(second)?;
    rig.check(target.all(), &[1; 40], "result")?;
    gate.open();
    Ok(rig.stream_synchronize(first)?)
}

fn leaves_alone(rig: &Rig) -> Outcome {
    second_runs(rig, rig.default_stream(), rig.stream()?)
}

fn does_not_wait(rig: &Rig) -> Outcome {
    second_runs(rig, rig.stream()?, rig.default_stream())
}

fn independent(rig: &Rig) -> Outcome {
    second_runs(rig, blocking(rig)?, blocking(rig)?)
}

fn joins_two(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let (one, other) = (blocking(rig)?, blocking(rig)?);
    let default = rig.default_stream();
    let memory = rig.upload(&[0; 800])?;
    let sum = rig.device(800)?;
    let target = rig.pinned(800)?;
    rig.spin(kernels, 1_000_000, one)?;
    rig.add_u32(kernels, memory.span(0, 400), 1, one)?;
    rig.add_u32(kernels, memory.span(400, 400), 2, other)?;
    // No event: the default stream orders the work in both directions.
    rig.copy_async(sum.all(), memory.all(), default)?;
    rig.add_u32(kernels, sum.span(0, 400), 10, other)?;
    rig.add_u32(kernels, sum.span(400, 400), 10, one)?;
    rig.copy_async(target.all(), sum.all(), default)?;
    rig.stream_synchronize(default)?;
    let expected = [[11; 100], [12; 100]];
    rig.check_words(target.all(), expected.as_flattened(), "result")
}
