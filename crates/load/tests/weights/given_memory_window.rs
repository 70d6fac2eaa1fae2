//! Loads into given memory: how far ahead of the consumer they are, and how they end.

use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pinlane::load::{DeviceTarget, Dtype, LoadConfig, LoadErrorKind, Shard, Weights};
use pinlane::{Error, ErrorKind};
use pinlane_driver::Call;

use super::other_library::Library;
use super::rig::{MODEL, Rig, config, device_error, expected, model};
use super::support::Scratch;
use pinlane_testing::{Spring, Trap, assert_clean, misuse, must_return, open, seeded, sim};

/// Adversarial schedules.
const SEEDS: u64 = if cfg!(miri) { 2 } else { 60 };

fn largest(weights: &Weights, config: &LoadConfig) -> usize {
    let infos = weights.tensors().iter();
    let bytes = infos.map(|info| expected(weights, info, config.convert).1.len());
    bytes.max().expect("there are tensors")
}

/// The library's memory is exactly what the window allows, whether the consumer keeps or drops tensors.
#[test]
fn the_window_is_never_exceeded() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for seed in 0..SEEDS {
        let weights = weights.clone();
        must_return(move || {
            let windows = [1, 3, 100, 10_000, 28_000, 60_000, 200_000];
            let window = windows[seed as usize % windows.len()];
            let keeps = seed % 3 == 0;
            let mut config = config(1 + seed as usize % 3).device_bytes(window as u64);
            config.convert = [None, Some(Dtype::F32)][seed as usize / 7 % 2];
            config.local_rank = Shard::new(seed as usize % 4, 4).ok();
            let limit = window + largest(&weights, &config);
            let sim = seeded(seed);
            let library = Library::new(&sim);
            let device = open(&sim);
            let stream = library.stream_of(&device);
            // Bytes that the consumer has taken, and the most that was ahead of it.
            let (taken, ahead) = (Cell::new(0), Cell::new(0));
            let mut tensors = weights
                .start_into(&stream, &config, |tensor| {
                    let before = library.live_bytes() - taken.get();
                    assert!(before < window, "no more is asked for than needed");
                    let target = library.target(&stream, tensor);
                    ahead.set(ahead.get().max(library.live_bytes() - taken.get()));
                    Ok(target)
                })
                .expect("it starts");
            let mut kept = Vec::new();
            let mut count = 0;
            for tensor in tensors.by_ref() {
                let tensor = tensor.expect("no fault");
                let (_, bytes) = expected(&weights, &tensor.info, config.convert);
                assert_eq!(library.read(tensor.owner.ptr, bytes.len()), bytes);
                if keeps {
                    taken.set(taken.get() + bytes.len());
                    kept.push(tensor);
                }
                count += 1;
            }
            assert_eq!(count, MODEL.len());
            assert!(ahead.get() < limit, "{} of {limit}", ahead.get());
            assert!(ahead.get() >= window.min(limit - window), "it is used");
            drop((tensors, kept));
            drop((stream, device));
            library.close();
            assert_clean(&sim);
        });
    }
}

/// Without the consumer, nothing is asked for.
#[test]
fn a_consumer_that_takes_nothing_stops_the_load() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let rig = Rig::new();
    let asked = Cell::new(0);
    let tensors = weights.start_into(&rig.stream, &config(2).device_bytes(1), |tensor| {
        asked.set(asked.get() + 1);
        let buffer = rig.device.alloc::<u8>(tensor.len_bytes())?;
        Ok(DeviceTarget::buffer(buffer))
    });
    let tensors = tensors.expect("it starts");
    assert_eq!(asked.get(), 2, "the empty tensor, and one ahead");
    drop(tensors);
    rig.assert_clean();
}

/// How a load into blocks of a library ends when the callback fails at a tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Error,
    Panic,
    Drop,
}

#[test]
fn errors_and_panics_of_the_callback_and_drops_at_every_tensor() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for at in 0..=MODEL.len() {
        for (number, end) in [End::Error, End::Panic, End::Drop].into_iter().enumerate() {
            for window in [None, Some(1), Some(40_000)] {
                let weights = weights.clone();
                must_return(move || {
                    let sim = seeded((at * 3 + number) as u64);
                    let library = Library::new(&sim);
                    let device = open(&sim);
                    let stream = library.stream_of(&device);
                    let mut config = config(1 + at % 3);
                    config.device_bytes = window;
                    run_to(end, at, &library, &stream, &weights, &config);
                    pinlane_testing::assert_empty(&device);
                    assert_eq!(device.take_stray_errors(), []);
                    drop((stream, device));
                    library.close();
                    assert_clean(&sim);
                });
            }
        }
    }
}

fn run_to(
    end: End,
    at: usize,
    library: &Library,
    stream: &pinlane::Stream,
    weights: &Weights,
    config: &LoadConfig,
) {
    let mut asked = 0;
    let run = || {
        let mut tensors = weights.start_into(stream, config, |tensor| {
            asked += 1;
            match end {
                End::Error if asked == at + 1 => {
                    let error = std::io::Error::other("full");
                    Err(Error::other(ErrorKind::OutOfMemory, error))
                }
                End::Panic if asked == at + 1 => panic!("on purpose"),
                _ => Ok(library.target(stream, tensor)),
            }
        })?;
        let take = if end == End::Drop { at } else { usize::MAX };
        let taken = tensors.by_ref().take(take).collect::<Result<Vec<_>, _>>();
        if taken.is_err() {
            assert!(tensors.next().is_none(), "an error is the end");
        }
        taken.map(|taken| taken.len())
    };
    let ran = catch_unwind(AssertUnwindSafe(run));
    match (end, ran) {
        (End::Drop, Ok(Ok(taken))) => assert_eq!(taken, at),
        (_, Ok(Ok(taken))) => assert_eq!((taken, at), (MODEL.len(), MODEL.len())),
        (End::Error, Ok(Err(error))) => {
            assert_eq!(device_error(&error).kind(), ErrorKind::OutOfMemory);
            assert!(
                device_error(&error)
                    .downcast_ref::<std::io::Error>()
                    .is_some()
            );
            assert!(error.tensor().is_some());
        }
        (End::Panic, Err(_)) => assert!(at < MODEL.len()),
        (end, ran) => panic!("{end:?} at {at}: {ran:?}"),
    }
}

/// A callback that panics can be called again: the load goes on where it was.
#[test]
fn a_load_goes_on_after_a_caught_panic_of_the_callback() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let rig = Rig::new();
    let mut asked = 0;
    let mut tensors = weights
        .start_into(&rig.stream, &config(2).device_bytes(1), |tensor| {
            asked += 1;
            assert!(asked % 3 != 0, "on purpose");
            let buffer = rig.device.alloc::<u8>(tensor.len_bytes())?;
            Ok(DeviceTarget::buffer(buffer))
        })
        .expect("it starts");
    let (mut panics, mut taken) = (0, 0);
    loop {
        match catch_unwind(AssertUnwindSafe(|| tensors.next())) {
            Err(_) => panics += 1,
            Ok(None) => break,
            Ok(Some(tensor)) => {
                tensor.expect("no fault");
                taken += 1;
            }
        }
    }
    assert!(panics > 0);
    assert_eq!(taken, MODEL.len());
    drop(tensors);
    rig.assert_clean();
}

#[test]
fn a_file_that_changes_midway_ends_the_load() {
    for threads in [1, 3] {
        must_return(move || {
            let scratch = Scratch::new();
            let path = model(&scratch);
            let weights = Weights::open(&path).expect("a good file");
            let rig = Rig::new();
            let mut tensors = weights
                .start_into(&rig.stream, &config(threads).device_bytes(1), |tensor| {
                    let buffer = rig.device.alloc::<u8>(tensor.len_bytes())?;
                    Ok(DeviceTarget::buffer(buffer))
                })
                .expect("it starts");
            let first: Vec<_> = tensors.by_ref().take(3).collect();
            assert!(first.iter().all(Result::is_ok));
            let file = File::options().write(true).open(&path).expect("the file");
            file.set_len(file.metadata().expect("its size").len() + 1)
                .expect("our own file");
            let error = tensors.find_map(Result::err).expect("it has changed");
            assert_eq!(error.kind(), &LoadErrorKind::FileChanged);
            assert!(tensors.next().is_none());
            drop((tensors, first));
            rig.assert_clean();
        });
    }
}

/// Every driver call fails or panics in turn: the load ends, blocks are freed only when nothing writes to them.
#[test]
fn driver_calls_that_fail_or_panic() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let calls = [
        Call::CopyAsync,
        Call::StreamCreate,
        Call::StreamWaitEvent,
        Call::StreamSynchronize,
        Call::EventCreate,
        Call::EventRecord,
        Call::EventQuery,
        Call::EventSynchronize,
        Call::HostAlloc,
    ];
    let mut sprung = 0;
    for call in calls {
        for spring in [Spring::Fail, Spring::Panic] {
            for at in 0..6 {
                let (weights, seed) = (weights.clone(), at * 2);
                sprung += must_return(move || {
                    let sim = match at {
                        0 => sim(),
                        _ => seeded(seed),
                    };
                    let (device, trap) = Trap::under(&sim);
                    let library = Library::new(&sim);
                    let stream = library.stream_of(&device);
                    let config = config(1 + at as usize % 3).device_bytes(30_000);
                    trap.set(call, at, spring);
                    let load = || {
                        let tensors = weights.start_into(&stream, &config, |tensor| {
                            Ok(library.target(&stream, tensor))
                        })?;
                        tensors.collect::<Result<Vec<_>, _>>().map(drop)
                    };
                    // The consumer's own calls panic on its thread.
                    let ran = catch_unwind(AssertUnwindSafe(load));
                    let sprung = trap.disarm();
                    let stray = !device.take_stray_errors().is_empty();
                    let reported = stray || !matches!(ran, Ok(Ok(())));
                    assert_eq!(reported, sprung > 0, "{call:?} {at}: {ran:?}");
                    assert_eq!(library.live_bytes(), 0, "{call:?} {at}");
                    drop((stream, device));
                    assert_eq!(misuse(&sim), [""; 0], "{call:?} {at}");
                    sprung
                });
            }
        }
    }
    assert!(sprung > 40, "only {sprung} calls");
}
