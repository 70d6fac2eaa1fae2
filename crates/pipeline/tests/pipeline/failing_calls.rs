//! A driver that refuses each call in turn: the error is told, nothing hangs or is left, and the
//! next run works.

use pinlane::pipeline::{Cause, PipelineError, PipelineOrder};
use pinlane_driver::Call;

use super::checked_job::Job;
use super::input_and_output_kinds::{From, To};
use super::rig::{ORDERS, Rig, config};
use pinlane_testing::must_return;
use pinlane_testing::{Spring, is_injected};

/// Calls that a run makes.
const CALLS: [Call; 14] = [
    Call::CopyAsync,
    Call::Copy,
    Call::StreamWaitEvent,
    Call::StreamSynchronize,
    Call::EventCreate,
    Call::EventRecord,
    Call::EventQuery,
    Call::EventSynchronize,
    Call::EventElapsed,
    Call::Launch,
    Call::ModuleFunction,
    Call::HostAlloc,
    Call::DeviceAlloc,
    Call::DeviceFreeAsync,
];

/// Fewer buffers will do.
const MAKING: [Call; 2] = [Call::HostAlloc, Call::DeviceAlloc];

/// Which end of a pipeline is looked at.
const KINDS: [(From, To); 6] = [
    (From::Pinned, To::Pinned),
    (From::Pageable, To::Pageable),
    (From::Reader, To::Writer),
    (From::Batches, To::Each),
    (From::Device, To::Pageable),
    (From::Fill, To::Device),
];

fn injected(error: &PipelineError) -> bool {
    matches!(&error.cause, Cause::Pinlane(error) if is_injected(error))
}

/// Whether the trap sprang.
fn fail_once(
    order: PipelineOrder,
    (from, to): (From, To),
    record: bool,
    call: Call,
    at: u64,
) -> bool {
    let what = format!("{order:?}, {from:?} to {to:?}, recorded: {record}, {call:?} {at}");
    let (rig, trap) = Rig::trapped();
    let mut config = config(order, 40);
    config.record = record;
    let pipeline = rig.pipeline(config);
    let job = Job {
        from,
        to,
        items: 35,
        width_in: 1,
        width_out: 1,
        seed: 1,
    };
    trap.set(call, at, Spring::Fail);
    let ran = job.run::<u32, u32>(&rig, &pipeline);
    let sprung = trap.disarm() > 0;
    let stray = rig.device.take_stray_errors();
    match &ran {
        Ok((_, found, expected)) => {
            assert_eq!(found, expected, "{what}");
            let told = MAKING.contains(&call) || stray.iter().any(is_injected);
            assert!(told || !sprung, "{what}: nobody was told");
        }
        Err(error) => assert!(sprung && injected(error), "{what}: {error}"),
    }
    let ran = job.run::<u32, u32>(&rig, &pipeline);
    let (_, found, expected) = ran.unwrap_or_else(|error| panic!("{what}, then {error}"));
    assert_eq!(found, expected, "{what}, then");
    drop(pipeline);
    rig.assert_clean();
    sprung
}

fn fail_each(order: PipelineOrder) {
    let mut sprung = 0;
    for kinds in KINDS {
        for record in [false, true] {
            sprung += must_return(move || {
                let mut sprung = 0;
                for call in CALLS {
                    // Until there is no such call any more.
                    let strikes = |at: &u64| fail_once(order, kinds, record, call, *at);
                    sprung += (0..60).take_while(strikes).count();
                }
                sprung
            });
        }
    }
    assert!(sprung > 500, "only {sprung} failures");
}

#[test]
fn depth_first() {
    fail_each(ORDERS[0]);
}

#[test]
fn breadth_first() {
    fail_each(ORDERS[1]);
}

#[test]
fn stage_streams() {
    fail_each(ORDERS[2]);
}

#[test]
fn a_pipeline_that_cannot_be_made() {
    for order in ORDERS {
        for at in 0.. {
            let (rig, trap) = Rig::trapped();
            trap.set(Call::StreamCreate, at, Spring::Fail);
            let made = pinlane::pipeline::Pipeline::new(&rig.device, config(order, 40));
            let sprung = trap.disarm() > 0;
            assert_eq!(made.as_ref().is_err_and(is_injected), sprung);
            drop(made);
            rig.assert_clean();
            if !sprung {
                assert!(at >= 3, "two streams and one for what comes back at least");
                break;
            }
        }
    }
}
