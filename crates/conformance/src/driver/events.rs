//! Recording, querying and waiting for events.

use std::collections::HashSet;
use std::time::Duration;

use pinlane_driver::EventFlags;

use crate::Outcome;
use crate::case::cases;
use crate::outcome::{check, check_eq};
use crate::pattern::pattern;
use crate::rig::Rig;

cases! {
    "events/create-and-destroy-many" => create_and_destroy_many,
    "events/handles-differ" => handles_differ,
    "events/unrecorded-counts-as-fired" => unrecorded,
    "events/fires-on-an-idle-stream" => fires_when_idle,
    "events/every-kind-fires" => every_kind_fires,
    "events/query-sees-work-in-flight" => query_in_flight,
    "events/synchronize-waits" => synchronize_waits,
    "events/wait-with-timeout" => wait_with_timeout,
    "events/no-time-to-wait" => no_time_to_wait,
    "events/fires-before-later-work" => fires_before_later_work,
    "events/recorded-again" => recorded_again,
    "events/recorded-again-elsewhere" => recorded_elsewhere,
    "events/destroyed-while-in-flight" => destroyed_in_flight,
}

const NO_TIME: Duration = Duration::ZERO;
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(60);

const NOT_FIRED: &str = "the event has not fired after the wait";
const FIRED: &str = "the event fired behind a closed gate";

fn create_and_destroy_many(rig: &Rig) -> Outcome {
    for _ in 0..5 {
        for event in rig.events(50)? {
            rig.destroy_event(event)?;
        }
    }
    Ok(())
}

fn handles_differ(rig: &Rig) -> Outcome {
    let handles: HashSet<_> = rig.events(32)?.into_iter().collect();
    check_eq!(handles.len(), 32, "different handles");
    Ok(())
}

fn unrecorded(rig: &Rig) -> Outcome {
    let event = rig.event()?;
    check!(rig.event_query(event)?, "it has not fired");
    rig.event_synchronize(event)?;
    let fired = rig.event_wait_timeout(event, NO_TIME)?;
    check!(fired, "the wait timed out");
    let stream = rig.stream()?;
    rig.stream_wait_event(stream, event)?;
    Ok(rig.stream_synchronize(stream)?)
}

fn fires_when_idle(rig: &Rig) -> Outcome {
    let event = rig.event()?;
    for stream in [rig.stream()?, rig.default_stream()] {
        rig.record_and_wait(event, stream)?;
        check!(rig.event_query(event)?, "{NOT_FIRED}");
    }
    Ok(())
}

fn every_kind_fires(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    for (timing, blocking_sync) in [(false, false), (false, true), (true, false), (true, true)] {
        let event = rig.event_with(EventFlags {
            timing,
            blocking_sync,
        })?;
        rig.spin(kernels, 1_000_000, stream)?;
        rig.record_and_wait(event, stream)?;
        check!(rig.event_query(event)?, "{NOT_FIRED}");
    }
    Ok(())
}

fn query_in_flight(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let (before, after) = (rig.event()?, rig.event()?);
    rig.event_record(before, stream)?;
    let gate = rig.gate(stream)?;
    rig.event_record(after, stream)?;
    rig.event_synchronize(before)?;
    check!(rig.event_query(before)?, "the first has not fired");
    check!(!rig.event_query(after)?, "the second has fired");
    gate.open();
    rig.event_synchronize(after)?;
    check!(rig.event_query(after)?, "the second has not fired");
    Ok(())
}

fn synchronize_waits(rig: &Rig) -> Outcome {
    let kernels = rig.kernels()?;
    let stream = rig.stream()?;
    let event = rig.event()?;
    let data = pattern(30, 50_000);
    let device = rig.upload(&data)?;
    let target = rig.pinned(data.len())?;
    for _ in 0..5 {
        target.fill(0);
        rig.spin(kernels, 2_000_000, stream)?;
        rig.copy_async(target.all(), device.all(), stream)?;
        rig.record_and_wait(event, stream)?;
        rig.check(target.all(), &data, "bytes after the wait")?;
    }
    Ok(())
}

fn wait_with_timeout(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    let gate = rig.gate(stream)?;
    rig.event_record(event, stream)?;
    check!(!rig.event_wait_timeout(event, SHORT)?, "{FIRED}");
    gate.open();
    let fired = rig.event_wait_timeout(event, LONG)?;
    check!(fired, "the event did not fire within a minute");
    check!(rig.event_query(event)?, "{NOT_FIRED}");
    Ok(())
}

fn no_time_to_wait(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    let gate = rig.gate(stream)?;
    rig.event_record(event, stream)?;
    check!(!rig.event_wait_timeout(event, NO_TIME)?, "{FIRED}");
    gate.open();
    rig.event_synchronize(event)?;
    let fired = rig.event_wait_timeout(event, NO_TIME)?;
    check!(fired, "a wait for a fired event blocked");
    Ok(())
}

fn fires_before_later_work(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    let memory = rig.device(1000)?;
    let target = rig.pinned(1000)?;
    rig.memset(memory.all(), 0x31, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.event_record(event, stream)?;
    let gate = rig.gate(stream)?;
    // Work after the record does not delay it.
    rig.event_synchronize(event)?;
    rig.check(target.all(), &[0x31; 1000], "bytes")?;
    gate.open();
    Ok(())
}

fn recorded_again(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let event = rig.event()?;
    for round in 0..3 {
        rig.record_and_wait(event, stream)?;
        let gate = rig.gate(stream)?;
        rig.event_record(event, stream)?;
        let fired = rig.event_query(event)?;
        check!(!fired, "round {round}: the first record still counts");
        gate.open();
        rig.event_synchronize(event)?;
        check!(rig.event_query(event)?, "round {round}: not fired");
    }
    Ok(())
}

fn recorded_elsewhere(rig: &Rig) -> Outcome {
    let (held, free) = (rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let gate = rig.gate(held)?;
    rig.event_record(event, held)?;
    check!(!rig.event_query(event)?, "{FIRED}");
    // Only the last record counts, and its stream is not held.
    rig.record_and_wait(event, free)?;
    check!(rig.event_query(event)?, "{NOT_FIRED}");
    gate.open();
    Ok(rig.stream_synchronize(held)?)
}

fn destroyed_in_flight(rig: &Rig) -> Outcome {
    let stream = rig.stream()?;
    let memory = rig.device(100)?;
    let target = rig.pinned(100)?;
    let event = rig.event()?;
    let gate = rig.gate(stream)?;
    rig.memset(memory.all(), 0x12, stream)?;
    rig.event_record(event, stream)?;
    rig.copy_async(target.all(), memory.all(), stream)?;
    rig.destroy_event(event)?;
    gate.open();
    rig.stream_synchronize(stream)?;
    rig.check(target.all(), &[0x12; 100], "bytes")
}
