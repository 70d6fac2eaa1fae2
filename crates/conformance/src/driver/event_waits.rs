//! Streams that wait for events.

use pinlane_driver::{EventHandle, Result, StreamHandle};

use crate::Outcome;
use crate::case::cases;
use crate::outcome::check;
use crate::rig::Rig;

cases! {
    "events/wait-orders-across-streams" => orders,
    "events/wait-for-a-destroyed-event" => destroyed_afterwards,
    "events/wait-keeps-the-record-of-its-time" => keeps_its_record,
    "events/wait-on-own-stream" => own_stream,
    "events/wait-on-the-default-stream" => on_default_stream,
    "events/wait-for-all-readers" => all_readers,
    "events/wait-is-passed-on" => passed_on,
    "events/wait-does-not-stop-the-other-stream" => one_way,
    "events/ping-pong-between-streams" => ping_pong,
}

/// `first` writes behind a gate; `second` waits for the event and reads.
fn ordered(
    rig: &Rig,
    first: StreamHandle,
    second: StreamHandle,
    after_wait: impl FnOnce(EventHandle) -> Result<()>,
) -> Outcome {
    let memory = rig.upload(&[1; 2000])?;
    let target = rig.pinned(2000)?;
    let (written, read) = (rig.event()?, rig.event()?);
    let gate = rig.gate(first)?;
    rig.memset(memory.all(), 2, first)?;
    rig.event_record(written, first)?;
    rig.stream_wait_event(second, written)?;
    after_wait(written)?;
    rig.copy_async(target.all(), memory.all(), second)?;
    rig.event_record(read, second)?;
    check!(!rig.event_query(read)?, "the second stream did not wait");
    gate.open();
    rig.event_synchronize(read)?;
    rig.check(target.all(), &[2; 2000], "bytes that were read")?;
    Ok(())
}

fn orders(rig: &Rig) -> Outcome {
    ordered(rig, rig.stream()?, rig.stream()?, |_| Ok(()))
}

fn destroyed_afterwards(rig: &Rig) -> Outcome {
    let destroy = |event| rig.destroy_event(event);
    ordered(rig, rig.stream()?, rig.stream()?, destroy)
}

fn on_default_stream(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    ordered(rig, stream, rig.default_stream(), |_| Ok(()))?;
    rig.synchronize()?;
    ordered(rig, rig.default_stream(), stream, |_| Ok(()))
}

fn keeps_its_record(rig: &Rig) -> Outcome {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let (event, done) = (rig.event()?, rig.event()?);
    rig.record_and_wait(event, first)?;
    rig.stream_wait_event(second, event)?;
    let gate = rig.gate(first)?;
    rig.event_record(event, first)?;
    rig.event_record(done, second)?;
    // Would never return if it waited for the later record, which is held.
    rig.event_synchronize(done)?;
    check!(!rig.event_query(event)?, "the event fired behind the gate");
    gate.open();
    Ok(())
}

fn own_stream(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    let memory = rig.upload(&[0; 100])?;
    for value in 1..=10 {
        rig.event_record(event, stream)?;
        rig.stream_wait_event(stream, event)?;
        rig.memset(memory.all(), value, stream)?;
    }
    rig.stream_synchronize(stream)?;
    rig.check(memory.all(), &[10; 100], "bytes")?;
    Ok(())
}

fn all_readers(rig: &Rig) -> Outcome {
    let (held, free, writer) = (rig.stream()?, rig.stream()?, rig.stream()?);
    let (events, done) = ([rig.event()?, rig.event()?], rig.event()?);
    let memory = rig.upload(&[5; 1000])?;
    let targets = [rig.pinned(1000)?, rig.pinned(1000)?];
    let gate = rig.gate(held)?;
    for ((stream, target), event) in [held, free].into_iter().zip(&targets).zip(events) {
        rig.copy_async(target.all(), memory.all(), stream)?;
        rig.event_record(event, stream)?;
        rig.stream_wait_event(writer, event)?;
    }
    rig.memset(memory.all(), 6, writer)?;
    rig.event_record(done, writer)?;
    // One reader is done, the other is not: the writer must wait.
    rig.stream_synchronize(free)?;
    check!(!rig.event_query(done)?, "the writer overtook a reader");
    gate.open();
    rig.event_synchronize(done)?;
    for target in &targets {
        rig.check(target.all(), &[5; 1000], "what a reader saw")?;
    }
    rig.check(memory.all(), &[6; 1000], "after all work")?;
    Ok(())
}

fn passed_on(rig: &Rig) -> Outcome {
    let streams = rig.streams(6)?;
    let event = rig.event()?;
    // Six cells: each stream copies its cell to the next one.
    let memory = rig.upload(&[vec![5; 1000], vec![0; 5000]].concat())?;
    let gate = rig.gate(streams[0])?;
    for (cell, pair) in streams.windows(2).enumerate() {
        let (from, to) = (cell * 1000, (cell + 1) * 1000);
        rig.copy_async(memory.span(to, 1000), memory.span(from, 1000), pair[0])?;
        rig.event_record(event, pair[0])?;
        rig.stream_wait_event(pair[1], event)?;
    }
    let last = streams[streams.len() - 1];
    check!(!rig.stream_query(last)?, "the last stream did not wait");
    gate.open();
    rig.stream_synchronize(last)?;
    rig.check(memory.span(5000, 1000), &[5; 1000], "result")
}

fn one_way(rig: &Rig) -> Outcome {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let (event, done) = (rig.event()?, rig.event()?);
    let gate = rig.gate(second)?;
    rig.event_record(event, first)?;
    rig.stream_wait_event(second, event)?;
    rig.event_record(done, first)?;
    // The event's stream continues although the waiting one is held.
    rig.event_synchronize(done)?;
    gate.open();
    Ok(rig.stream_synchronize(second)?)
}

fn ping_pong(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let streams = [rig.stream()?, rig.stream()?];
    let events = [rig.event()?, rig.event()?];
    let (a, b) = (rig.upload(&[0; 400])?, rig.upload(&[0; 400])?);
    for turn in 0..40 {
        let (me, other) = (turn % 2, (turn + 1) % 2);
        rig.stream_wait_event(streams[me], events[other])?;
        let (from, to) = if me == 0 { (&a, &b) } else { (&b, &a) };
        rig.copy_async(to.all(), from.all(), streams[me])?;
        rig.add_u32(kernels, to.all(), 1, streams[me])?;
        rig.event_record(events[me], streams[me])?;
    }
    rig.event_synchronize(events[1])?;
    rig.check_words(a.all(), &[40; 100], "result")?;
    Ok(())
}
