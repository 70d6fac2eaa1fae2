//! The default stream and its order with blocking streams.

use pinlane_driver::{StreamFlags, StreamHandle};

use crate::outcome::{check, check_eq};
use crate::pattern::u32_of_bytes;
use crate::rig::{HostKind, Rig};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("default-stream/runs-work-in-order", runs_in_order),
    Case::new(
        "default-stream/query-and-synchronize",
        query_and_synchronize,
    ),
    Case::new("default-stream/holds-blocking-streams", holds_blocking),
    Case::new(
        "default-stream/waits-for-blocking-streams",
        waits_for_blocking,
    ),
    Case::new(
        "default-stream/leaves-non-blocking-streams-alone",
        leaves_alone,
    ),
    Case::new(
        "default-stream/does-not-wait-for-non-blocking",
        does_not_wait,
    ),
    Case::new("default-stream/joins-two-blocking-streams", joins_two),
    Case::new(
        "default-stream/blocking-streams-are-independent",
        independent,
    ),
];

fn blocking(rig: &Rig) -> pinlane_driver::Result<StreamHandle> {
    rig.stream_with(StreamFlags::default())
}

fn runs_in_order(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.driver().default_stream();
    let memory = rig.device(400)?;
    let target = rig.host(HostKind::Pinned, 400)?;
    rig.memset(memory.all(), 0, stream)?;
    rig.add_u32(kernels, memory.all(), 6, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.driver().stream_synchronize(stream)?;
    check_eq!(u32_of_bytes(&target.read_all()), vec![6; 100], "result");
    rig.close()
}

fn query_and_synchronize(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.driver().default_stream();
    let gate = rig.gate(stream)?;
    check!(
        !rig.driver().stream_query(stream)?,
        "its work is not reported"
    );
    gate.open();
    rig.driver().stream_synchronize(stream)?;
    check!(rig.driver().stream_query(stream)?, "its work is not done");
    rig.close()
}

/// Whether work in `second` waits while `first` is held.
fn second_waits(
    rig: &Rig,
    first: StreamHandle,
    second: StreamHandle,
) -> Result<bool, crate::NotPassed> {
    let memory = rig.upload(&[0; 40])?;
    let source = rig.host(HostKind::Pinned, 40)?;
    source.fill(1);
    let done = rig.event()?;
    let gate = rig.gate(first)?;
    rig.copy_async(memory.all(), source.all(), second)?;
    rig.driver().event_record(done, second)?;
    let waits = !rig.driver().event_query(done)?;
    gate.open();
    rig.driver().event_synchronize(done)?;
    rig.driver().stream_synchronize(first)?;
    check_eq!(rig.download(memory.all())?, vec![1; 40], "result");
    Ok(waits)
}

fn holds_blocking(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = blocking(&rig)?;
    let waits = second_waits(&rig, rig.driver().default_stream(), stream)?;
    check!(waits, "a blocking stream overtook the default stream");
    rig.close()
}

fn waits_for_blocking(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = blocking(&rig)?;
    let waits = second_waits(&rig, stream, rig.driver().default_stream())?;
    check!(waits, "the default stream overtook a blocking stream");
    rig.close()
}

/// Work in `second` completes while `first` is held.
fn second_runs(rig: &Rig, first: StreamHandle, second: StreamHandle) -> Outcome {
    let memory = rig.upload(&[0; 40])?;
    let source = rig.host(HostKind::Pinned, 40)?;
    source.fill(1);
    let target = rig.host(HostKind::Pinned, 40)?;
    target.fill(0);
    let gate = rig.gate(first)?;
    rig.copy_async(memory.all(), source.all(), second)?;
    rig.copy_async(target.all(), memory.all(), second)?;
    // Would never return if the second stream waited for the first.
    rig.driver().stream_synchronize(second)?;
    check_eq!(target.read_all(), vec![1; 40], "result");
    gate.open();
    Ok(rig.driver().stream_synchronize(first)?)
}

fn leaves_alone(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    second_runs(&rig, rig.driver().default_stream(), stream)?;
    rig.close()
}

fn does_not_wait(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    second_runs(&rig, stream, rig.driver().default_stream())?;
    rig.close()
}

fn independent(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (first, second) = (blocking(&rig)?, blocking(&rig)?);
    second_runs(&rig, first, second)?;
    rig.close()
}

fn joins_two(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let (one, other) = (blocking(&rig)?, blocking(&rig)?);
    let default = rig.driver().default_stream();
    let memory = rig.upload(&[0; 800])?;
    let sum = rig.device(800)?;
    let target = rig.host(HostKind::Pinned, 800)?;
    rig.spin(kernels, 1_000_000, one)?;
    rig.add_u32(kernels, memory.span(0, 400), 1, one)?;
    rig.add_u32(kernels, memory.span(400, 400), 2, other)?;
    // No event: the default stream orders the work in both directions.
    rig.copy_async(sum.all(), memory.all(), default)?;
    rig.add_u32(kernels, sum.span(0, 400), 10, other)?;
    rig.add_u32(kernels, sum.span(400, 400), 10, one)?;
    rig.copy_async(target.all(), sum.all(), default)?;
    rig.driver().stream_synchronize(default)?;
    let expected = [vec![11; 100], vec![12; 100]].concat();
    check_eq!(u32_of_bytes(&target.read_all()), expected, "result");
    rig.close()
}
