//! Streams that wait for events.

use pinlane_driver::{EventHandle, StreamHandle};

use crate::outcome::{check, check_eq};
use crate::pattern::u32_of_bytes;
use crate::rig::{HostKind, Rig};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("events/wait-orders-across-streams", orders),
    Case::new("events/wait-for-a-destroyed-event", destroyed_afterwards),
    Case::new("events/wait-keeps-the-record-of-its-time", keeps_its_record),
    Case::new("events/wait-on-own-stream", own_stream),
    Case::new("events/wait-on-the-default-stream", on_default_stream),
    Case::new("events/wait-for-all-readers", all_readers),
    Case::new("events/wait-is-passed-on", passed_on),
    Case::new("events/wait-does-not-stop-the-other-stream", one_way),
    Case::new("events/ping-pong-between-streams", ping_pong),
];

/// `first` writes behind a gate; `second` waits for the event and reads.
fn ordered(
    rig: &Rig,
    first: StreamHandle,
    second: StreamHandle,
    after_wait: impl FnOnce(EventHandle) -> pinlane_driver::Result<()>,
) -> Outcome {
    let memory = rig.upload(&[1; 2000])?;
    let target = rig.host(HostKind::Pinned, 2000)?;
    target.fill(0);
    let (written, read) = (rig.event()?, rig.event()?);
    let gate = rig.gate(first)?;
    rig.memset(memory.all(), 2, first)?;
    rig.driver().event_record(written, first)?;
    rig.driver().stream_wait_event(second, written)?;
    after_wait(written)?;
    rig.copy_async(target.all(), memory.all(), second)?;
    rig.driver().event_record(read, second)?;
    check!(
        !rig.driver().event_query(read)?,
        "the second stream did not wait"
    );
    gate.open();
    rig.driver().event_synchronize(read)?;
    check_eq!(target.read_all(), vec![2; 2000], "bytes that were read");
    Ok(())
}

fn orders(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (first, second) = (rig.stream()?, rig.stream()?);
    ordered(&rig, first, second, |_| Ok(()))?;
    rig.close()
}

fn destroyed_afterwards(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (first, second) = (rig.stream()?, rig.stream()?);
    ordered(&rig, first, second, |event| rig.destroy_event(event))?;
    rig.close()
}

fn on_default_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    ordered(&rig, stream, rig.driver().default_stream(), |_| Ok(()))?;
    rig.driver().synchronize()?;
    ordered(&rig, rig.driver().default_stream(), stream, |_| Ok(()))?;
    rig.close()
}

fn keeps_its_record(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (first, second) = (rig.stream()?, rig.stream()?);
    let (event, done) = (rig.event()?, rig.event()?);
    rig.driver().event_record(event, first)?;
    rig.driver().event_synchronize(event)?;
    rig.driver().stream_wait_event(second, event)?;
    let gate = rig.gate(first)?;
    rig.driver().event_record(event, first)?;
    rig.driver().event_record(done, second)?;
    // Would never return if it waited for the later record, which is held.
    rig.driver().event_synchronize(done)?;
    check!(
        !rig.driver().event_query(event)?,
        "the event fired behind the gate"
    );
    gate.open();
    rig.close()
}

fn own_stream(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    let memory = rig.upload(&[0; 100])?;
    for value in 1..=10 {
        rig.driver().event_record(event, stream)?;
        rig.driver().stream_wait_event(stream, event)?;
        rig.memset(memory.all(), value, stream)?;
    }
    rig.driver().stream_synchronize(stream)?;
    check_eq!(rig.download(memory.all())?, vec![10; 100], "bytes");
    rig.close()
}

fn all_readers(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (held, free, writer) = (rig.stream()?, rig.stream()?, rig.stream()?);
    let events = [rig.event()?, rig.event()?];
    let done = rig.event()?;
    let memory = rig.upload(&[5; 1000])?;
    let targets = [
        rig.host(HostKind::Pinned, 1000)?,
        rig.host(HostKind::Pinned, 1000)?,
    ];
    let gate = rig.gate(held)?;
    for ((stream, target), event) in [held, free].into_iter().zip(&targets).zip(events) {
        rig.copy_async(target.all(), memory.all(), stream)?;
        rig.driver().event_record(event, stream)?;
        rig.driver().stream_wait_event(writer, event)?;
    }
    rig.memset(memory.all(), 6, writer)?;
    rig.driver().event_record(done, writer)?;
    // One reader is done, the other is not: the writer must wait.
    rig.driver().stream_synchronize(free)?;
    check!(
        !rig.driver().event_query(done)?,
        "the writer overtook a reader"
    );
    gate.open();
    rig.driver().event_synchronize(done)?;
    for target in &targets {
        check_eq!(target.read_all(), vec![5; 1000], "what a reader saw");
    }
    check_eq!(rig.download(memory.all())?, vec![6; 1000], "after all work");
    rig.close()
}

fn passed_on(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let streams = (0..6)
        .map(|_| rig.stream())
        .collect::<Result<Vec<_>, _>>()?;
    let event = rig.event()?;
    // Six cells: each stream copies its cell to the next one.
    let memory = rig.upload(&[vec![5; 1000], vec![0; 5000]].concat())?;
    let gate = rig.gate(streams[0])?;
    for (cell, pair) in streams.windows(2).enumerate() {
        let (from, to) = (cell * 1000, (cell + 1) * 1000);
        rig.copy_async(memory.span(to, 1000), memory.span(from, 1000), pair[0])?;
        rig.driver().event_record(event, pair[0])?;
        rig.driver().stream_wait_event(pair[1], event)?;
    }
    let last = streams[streams.len() - 1];
    check!(
        !rig.driver().stream_query(last)?,
        "the last stream did not wait"
    );
    gate.open();
    rig.driver().stream_synchronize(last)?;
    let last = rig.download(memory.span(5000, 1000))?;
    check_eq!(last, vec![5; 1000], "result");
    rig.close()
}

fn one_way(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (first, second) = (rig.stream()?, rig.stream()?);
    let (event, done) = (rig.event()?, rig.event()?);
    let gate = rig.gate(second)?;
    rig.driver().event_record(event, first)?;
    rig.driver().stream_wait_event(second, event)?;
    rig.driver().event_record(done, first)?;
    // The event's stream continues although the waiting one is held.
    rig.driver().event_synchronize(done)?;
    gate.open();
    rig.driver().stream_synchronize(second)?;
    rig.close()
}

fn ping_pong(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let streams = [rig.stream()?, rig.stream()?];
    let events = [rig.event()?, rig.event()?];
    let (a, b) = (rig.upload(&[0; 400])?, rig.upload(&[0; 400])?);
    for turn in 0..40 {
        let (me, other) = (turn % 2, (turn + 1) % 2);
        rig.driver().stream_wait_event(streams[me], events[other])?;
        let (from, to) = if me == 0 { (&a, &b) } else { (&b, &a) };
        rig.copy_async(to.all(), from.all(), streams[me])?;
        rig.add_u32(kernels, to.all(), 1, streams[me])?;
        rig.driver().event_record(events[me], streams[me])?;
    }
    rig.driver().event_synchronize(events[1])?;
    let words = u32_of_bytes(&rig.download(a.all())?);
    check_eq!(words, vec![40; 100], "result");
    rig.close()
}
