//! Recording, querying and waiting for events.

use std::time::Duration;

use pinlane_driver::EventFlags;

use crate::outcome::{check, check_eq};
use crate::pattern::{check_bytes, pattern};
use crate::rig::HostKind;
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("events/create-and-destroy-many", create_and_destroy_many),
    Case::new("events/handles-differ", handles_differ),
    Case::new("events/unrecorded-counts-as-fired", unrecorded),
    Case::new("events/fires-on-an-idle-stream", fires_when_idle),
    Case::new("events/every-kind-fires", every_kind_fires),
    Case::new("events/query-sees-work-in-flight", query_in_flight),
    Case::new("events/synchronize-waits", synchronize_waits),
    Case::new("events/wait-with-timeout", wait_with_timeout),
    Case::new("events/no-time-to-wait", no_time_to_wait),
    Case::new("events/fires-before-later-work", fires_before_later_work),
    Case::new("events/recorded-again", recorded_again),
    Case::new("events/recorded-again-elsewhere", recorded_elsewhere),
    Case::new("events/destroyed-while-in-flight", destroyed_in_flight),
];

const NO_TIME: Duration = Duration::ZERO;
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(60);

fn create_and_destroy_many(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    for _ in 0..5 {
        let events = (0..50)
            .map(|_| rig.event())
            .collect::<Result<Vec<_>, _>>()?;
        for event in events {
            rig.destroy_event(event)?;
        }
    }
    rig.close()
}

fn handles_differ(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let mut handles = (0..32)
        .map(|_| rig.event().map(|event| event.raw()))
        .collect::<Result<Vec<_>, _>>()?;
    handles.sort_unstable();
    handles.dedup();
    check_eq!(handles.len(), 32, "different handles");
    rig.close()
}

fn unrecorded(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let event = rig.event()?;
    check!(rig.driver().event_query(event)?, "it has not fired");
    rig.driver().event_synchronize(event)?;
    check!(
        rig.driver().event_wait_timeout(event, NO_TIME)?,
        "the wait timed out"
    );
    let stream = rig.stream()?;
    rig.driver().stream_wait_event(stream, event)?;
    rig.driver().stream_synchronize(stream)?;
    rig.close()
}

fn fires_when_idle(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let event = rig.event()?;
    for stream in [rig.stream()?, rig.driver().default_stream()] {
        rig.driver().event_record(event, stream)?;
        rig.driver().event_synchronize(event)?;
        check!(
            rig.driver().event_query(event)?,
            "the event has not fired after the wait"
        );
    }
    rig.close()
}

fn every_kind_fires(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    for timing in [false, true] {
        for blocking_sync in [false, true] {
            let event = rig.event_with(EventFlags {
                timing,
                blocking_sync,
            })?;
            rig.spin(kernels, 1_000_000, stream)?;
            rig.driver().event_record(event, stream)?;
            rig.driver().event_synchronize(event)?;
            check!(
                rig.driver().event_query(event)?,
                "the event has not fired after the wait"
            );
        }
    }
    rig.close()
}

fn query_in_flight(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let (before, after) = (rig.event()?, rig.event()?);
    rig.driver().event_record(before, stream)?;
    let gate = rig.gate(stream)?;
    rig.driver().event_record(after, stream)?;
    rig.driver().event_synchronize(before)?;
    check!(rig.driver().event_query(before)?, "the first has not fired");
    check!(!rig.driver().event_query(after)?, "the second has fired");
    gate.open();
    rig.driver().event_synchronize(after)?;
    check!(rig.driver().event_query(after)?, "the second has not fired");
    rig.close()
}

fn synchronize_waits(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    let data = pattern(30, 50_000);
    let device = rig.upload(&data)?;
    let target = rig.host(HostKind::Pinned, data.len())?;
    for _ in 0..5 {
        target.fill(0);
        rig.spin(kernels, 2_000_000, stream)?;
        rig.copy_async(target.all(), device.all(), stream)?;
        rig.driver().event_record(event, stream)?;
        rig.driver().event_synchronize(event)?;
        check_bytes(&target.read_all(), &data, "bytes after the wait")?;
    }
    rig.close()
}

fn wait_with_timeout(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    let gate = rig.gate(stream)?;
    rig.driver().event_record(event, stream)?;
    check!(
        !rig.driver().event_wait_timeout(event, SHORT)?,
        "the event fired behind a closed gate"
    );
    gate.open();
    check!(
        rig.driver().event_wait_timeout(event, LONG)?,
        "the event did not fire within a minute"
    );
    check!(
        rig.driver().event_query(event)?,
        "the event has not fired after the wait"
    );
    rig.close()
}

fn no_time_to_wait(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    let gate = rig.gate(stream)?;
    rig.driver().event_record(event, stream)?;
    check!(
        !rig.driver().event_wait_timeout(event, NO_TIME)?,
        "the event fired behind a closed gate"
    );
    gate.open();
    rig.driver().event_synchronize(event)?;
    check!(
        rig.driver().event_wait_timeout(event, NO_TIME)?,
        "a wait for a fired event blocked"
    );
    rig.close()
}

fn fires_before_later_work(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    let memory = rig.device(1000)?;
    let target = rig.host(HostKind::Pinned, 1000)?;
    rig.memset(memory.all(), 0x31, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.driver().event_record(event, stream)?;
    let gate = rig.gate(stream)?;
    // Work after the record does not delay it.
    rig.driver().event_synchronize(event)?;
    check_eq!(target.read_all(), vec![0x31; 1000], "bytes");
    gate.open();
    rig.close()
}

fn recorded_again(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    for round in 0..3 {
        rig.driver().event_record(event, stream)?;
        rig.driver().event_synchronize(event)?;
        let gate = rig.gate(stream)?;
        rig.driver().event_record(event, stream)?;
        check!(
            !rig.driver().event_query(event)?,
            "round {round}: the first record still counts"
        );
        gate.open();
        rig.driver().event_synchronize(event)?;
        check!(rig.driver().event_query(event)?, "round {round}: not fired");
    }
    rig.close()
}

fn recorded_elsewhere(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let (held, free) = (rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let gate = rig.gate(held)?;
    rig.driver().event_record(event, held)?;
    check!(
        !rig.driver().event_query(event)?,
        "the event fired behind the gate"
    );
    // Only the last record counts, and its stream is not held.
    rig.driver().event_record(event, free)?;
    rig.driver().event_synchronize(event)?;
    check!(
        rig.driver().event_query(event)?,
        "the event has not fired after the wait"
    );
    gate.open();
    rig.driver().stream_synchronize(held)?;
    rig.close()
}

fn destroyed_in_flight(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    let memory = rig.device(100)?;
    let target = rig.host(HostKind::Pinned, 100)?;
    let event = rig.event()?;
    let gate = rig.gate(stream)?;
    rig.memset(memory.all(), 0x12, stream)?;
    rig.driver().event_record(event, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.destroy_event(event)?;
    gate.open();
    rig.driver().stream_synchronize(stream)?;
    check_eq!(target.read_all(), vec![0x12; 100], "bytes");
    rig.close()
}
