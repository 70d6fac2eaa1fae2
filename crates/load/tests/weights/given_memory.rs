//! Loads into given memory: the same bytes as in memory of the load's own, behind the earlier work of its owner.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use pinlane::load::{DeviceTarget, Dtype, FilledTensor, LoadConfig, LoadErrorKind, Weights};
use pinlane::{DeviceBuf, Error};
use pinlane_sim::Sim;

use super::other_library::{Block, Library};
use super::rig::{MODEL, Rig, config, expected, file, model};
use super::support::{Scratch, data};
use pinlane_testing::{assert_clean, must_return, open, seeded, sim};

/// Adversarial schedules.
const SEEDS: u64 = if cfg!(miri) { 2 } else { 40 };

/// Compares a tensor with its file.
#[track_caller]
fn check(library: &Library, weights: &Weights, tensor: &FilledTensor<Block>, config: &LoadConfig) {
    let (dtype, bytes) = expected(weights, &tensor.info, config.convert);
    assert_eq!(tensor.dtype, dtype);
    assert_eq!(weights.tensors()[tensor.number], tensor.info);
    let found = library.read(tensor.owner.ptr, bytes.len());
    pinlane_testing::assert_same(&found, &bytes, tensor.info.name());
}

/// Loads everything into blocks of a library, and compares every byte.
fn load_into_blocks(sim: &Sim, weights: &Weights, config: &LoadConfig) {
    let library = Library::new(sim);
    let device = open(sim);
    let stream = library.stream_of(&device);
    let asked = RefCell::new(Vec::new());
    let tensors = weights.start_into(&stream, config, |tensor| {
        asked.borrow_mut().push(tensor.number());
        Ok(library.target(&stream, tensor))
    });
    let tensors: Vec<_> = tensors.expect("it starts").collect();
    assert_eq!(tensors.len(), weights.tensors().len());
    for tensor in tensors {
        check(&library, weights, &tensor.expect("no fault"), config);
    }
    let mut asked = asked.into_inner();
    asked.sort_unstable();
    let all: Vec<_> = (0..weights.tensors().len()).collect();
    assert_eq!(asked, all, "once per tensor");
    pinlane_testing::assert_empty(&device);
    assert_eq!(device.take_stray_errors(), []);
    drop((stream, device));
    library.close();
    assert_clean(sim);
}

#[test]
fn every_byte_arrives_with_any_window_and_conversion() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for threads in [1, 3] {
        for window in [None, Some(1), Some(20_000), Some(100_000), Some(u64::MAX)] {
            for convert in [None, Some(Dtype::Bf16), Some(Dtype::F64)] {
                for rank in ["0/1", "1/2", "3/4"] {
                    let rank = rank.parse().expect("a rank");
                    let mut config = config(threads).local_rank(rank);
                    (config.convert, config.device_bytes) = (convert, window);
                    let weights = weights.clone();
                    must_return(move || load_into_blocks(&sim(), &weights, &config));
                }
            }
        }
    }
}

#[test]
fn rows_shards_and_repeated_tensors() {
    let scratch = Scratch::new();
    let all = Weights::open(model(&scratch)).expect("a good file");
    let tensor = |name| all.catalog().tensor(name).expect("it exists").clone();
    let whole = tensor("h.0.w");
    let overlapping = vec![
        whole.clone(),
        whole.rows(3..60).expect("rows"),
        tensor("deep"),
        whole.rows(59..70).expect("rows"),
        whole.clone(),
        whole.rows(5..5).expect("no rows"),
        tensor("h.0.b"),
        tensor("tail"),
    ];
    let sharded = all.clone().shard(1, 3).expect("shards");
    for weights in [sharded, all.clone().only(overlapping)] {
        for window in [None, Some(1), Some(30_000), Some(60_000)] {
            for convert in [None, Some(Dtype::F16)] {
                let mut config = config(2);
                (config.convert, config.device_bytes) = (convert, window);
                let weights = weights.clone();
                must_return(move || load_into_blocks(&sim(), &weights, &config));
            }
        }
    }
}

#[test]
fn several_files_and_none() {
    let weights = Weights::open(data().join("npy")).expect("a good folder");
    load_into_blocks(&sim(), &weights, &config(3).device_bytes(64));
    load_into_blocks(&sim(), &weights.only(Vec::new()), &config(2));
}

/// The library reads what was in the memory before, on its stream, without a wait. The load overwrites it only
/// after that.
#[test]
fn earlier_work_of_the_owner_comes_first() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for seed in 0..SEEDS {
        let sim = seeded(seed);
        let library = Library::new(&sim);
        let device = open(&sim);
        let stream = library.stream_of(&device);
        let config = config(2).device_bytes(40_000);
        let saved = RefCell::new(Vec::new());
        let tensors = weights.start_into(&stream, &config, |tensor| {
            let (target, bytes) = (library.target(&stream, tensor), tensor.len_bytes());
            if bytes > 0 {
                let block = *library.newest.borrow();
                let copy = library.alloc(bytes);
                library.fill(block, 7, bytes);
                library.copy(block, copy.ptr, bytes);
                saved.borrow_mut().push((copy, bytes));
            }
            Ok(target)
        });
        for tensor in tensors.expect("it starts") {
            check(&library, &weights, &tensor.expect("no fault"), &config);
        }
        for (copy, bytes) in saved.into_inner() {
            assert_eq!(library.read(copy.ptr, bytes), vec![7; bytes], "seed {seed}");
        }
        drop((stream, device));
        library.close();
        assert_clean(&sim);
    }
}

/// Buffers of ours, some of them in use on another stream when they are given.
#[test]
fn device_buffers_are_written_behind_their_earlier_uses() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for seed in 0..SEEDS {
        let sim = seeded(seed);
        let rig = Rig::with(sim.clone(), open(&sim));
        let (given, other) = (rig.device.stream().unwrap(), rig.device.stream().unwrap());
        let mut earlier = Vec::new();
        let tensors = weights.start_into(&given, &config(2), |tensor| {
            let mut buffer = match tensor.number() % 2 {
                0 => given.alloc::<u8>(tensor.len_bytes())?,
                _ => rig.device.alloc::<u8>(tensor.len_bytes())?,
            };
            other.fill_bytes(&mut buffer, 9)?;
            let pinned = rig.device.pinned::<u8>(buffer.len())?;
            earlier.push(other.download(&buffer, pinned)?);
            Ok(DeviceTarget::buffer(buffer))
        });
        for tensor in tensors.expect("it starts") {
            let FilledTensor { info, owner, .. } = tensor.expect("no fault");
            let found = rig.stream.copy_to_vec(&owner).expect("alive");
            assert_eq!(found, expected(&weights, &info, None).1, "{}", info.name());
        }
        for download in earlier {
            let bytes = download.wait().expect("alive");
            assert!(bytes.iter().all(|byte| *byte == 9), "seed {seed}");
        }
        drop((given, other));
        rig.assert_clean();
    }
}

#[test]
fn typed_buffers_that_exist_already() {
    let rig = Rig::new();
    let scratch = Scratch::new();
    let tensors: &[(&str, Dtype, &[u64])] = &[("a", Dtype::F32, &[9]), ("b", Dtype::F32, &[3])];
    let weights = Weights::open(file(&scratch, "two.safetensors", tensors, 1)).expect("good");
    let mut buffers: Vec<Option<DeviceBuf<f32>>> = [9, 3]
        .map(|len| Some(rig.device.alloc(len).expect("room")))
        .into();
    let loaded = weights.start_into(&rig.stream, &config(1), |tensor| {
        let buffer = buffers[tensor.number()].take().expect("once");
        Ok(DeviceTarget::buffer(buffer))
    });
    for tensor in loaded.expect("it starts") {
        let tensor = tensor.expect("no fault");
        let found = rig.stream.copy_to_vec(&tensor.owner).expect("alive");
        let (_, bytes) = expected(&weights, &tensor.info, None);
        assert_eq!(bytemuck::cast_slice::<f32, u8>(&found), bytes);
    }
    rig.assert_clean();
}

#[test]
fn a_target_of_another_size_device_or_stream_is_refused() {
    let rig = Rig::new();
    let scratch = Scratch::new();
    let path = model(&scratch);
    let weights = Weights::open(&path).expect("a good file");
    let other = open(&rig.sim);
    let refused = |bytes: usize, of: &pinlane::Device| {
        let tensors = weights.start_into(&rig.stream, &config(2), |tensor| {
            let buffer = of.alloc::<u8>(tensor.len_bytes() + bytes)?;
            Ok(DeviceTarget::buffer(buffer))
        });
        tensors.map(drop).expect_err("refused")
    };
    let error = refused(1, &rig.device);
    let (found, expected) = (1, 0);
    assert_eq!(error.kind(), &LoadErrorKind::TargetSize { found, expected });
    assert_eq!(error.tensor(), Some("none"), "empty tensors come first");
    assert_eq!(error.file(), Some(path.as_path()));
    let error = refused(0, &other);
    assert_eq!(super::rig::device_error(&error), &Error::WrongDevice);
    let library = Library::new(&rig.sim);
    let (one, two) = (
        library.stream_of(&rig.device),
        library.stream_of(&rig.device),
    );
    let tensors = weights.start_into(&one, &config(2), |tensor| Ok(library.target(&two, tensor)));
    let error = tensors.map(drop).expect_err("refused");
    assert_eq!(error.kind(), &LoadErrorKind::TargetStream);
    drop((one, two, other));
    library.close();
    rig.assert_clean();
}

#[test]
fn a_window_is_for_given_memory_and_not_empty() {
    let rig = Rig::new();
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let is_window = |kind: &LoadErrorKind| matches!(kind, LoadErrorKind::InvalidConfig { field, .. } if *field == "device_bytes");
    let error = weights.load(&rig.device, &config(1).device_bytes(1 << 20));
    assert!(is_window(error.expect_err("no window here").kind()));
    let tensors = weights.start_into(&rig.stream, &config(1).device_bytes(0), |tensor| {
        Ok(DeviceTarget::buffer(
            rig.device.alloc::<u8>(tensor.len_bytes())?,
        ))
    });
    assert!(is_window(
        tensors.map(drop).expect_err("nothing fits").kind()
    ));
    rig.assert_clean();
}

#[test]
fn waiting_with_a_timeout_progress_and_statistics() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let progress = Arc::clone(&seen);
    let config = config(2)
        .device_bytes(50_000)
        .on_progress(move |now| progress.lock().expect("no panic").push(now));
    let rig = Rig::new();
    rig.sim.hold(); // no copy completes
    let mut tensors = weights
        .start_into(&rig.stream, &config, |tensor| {
            let buffer = rig.device.alloc::<u8>(tensor.len_bytes())?;
            Ok(DeviceTarget::buffer(buffer))
        })
        .expect("it starts");
    let first = tensors.next_within(Duration::from_millis(1));
    let Poll::Ready(Some(Ok(first))) = first else {
        panic!("an empty tensor is complete: {first:?}");
    };
    assert_eq!(first.info.name(), "none");
    assert!(tensors.next_within(Duration::from_millis(1)).is_pending());
    rig.sim.release();
    let mut count = 1;
    loop {
        match tensors.next_within(Duration::from_millis(1)) {
            Poll::Pending => {}
            Poll::Ready(None) => break,
            Poll::Ready(Some(tensor)) => {
                tensor.expect("no fault");
                count += 1;
            }
        }
    }
    assert_eq!(count, MODEL.len());
    let last = tensors.progress();
    assert_eq!((last.tensors, last.bytes), (MODEL.len(), last.total_bytes));
    assert_eq!(tensors.stats().bytes(), last.total_bytes);
    assert_eq!(seen.lock().expect("no panic").last(), Some(&last));
    drop((tensors, first));
    rig.assert_clean();
}
