//! Invalid calls fail with a typed error before anything is submitted.

use half::bf16;
use pinlane::{DeviceInfo, Error, ExpressConfig, F32ToBf16, Stream};
use pinlane_driver::{Call, ErrorKind, StreamHandle};
use pinlane_sim::Sim;

use pinlane_testing::{CHUNK_BYTES, Trap, assert_same, set_up, small};

#[test]
fn empty_copies_do_nothing() {
    let (sim, device, stream) = small(2, 1);
    let mut nothing = device.alloc::<u32>(0).unwrap();
    let mut some = device.alloc::<u32>(10).unwrap();
    stream.copy_to_device(&[], &mut nothing).unwrap();
    stream.copy_to_device(&[], some.range_mut(3..3)).unwrap();
    stream.copy_to_host(&nothing, &mut []).unwrap();
    assert!(stream.copy_to_vec(&nothing).unwrap().is_empty());
    stream.upload_many::<u32>([]).unwrap();
    stream.download_many::<u32>([]).unwrap();
    let empties = some
        .whole_mut()
        .chunks(2)
        .map(|place| (&[][..], place.range(..0)));
    stream.upload_many(empties).unwrap();
    stream
        .download_many([(some.range(5..5), &mut [][..])])
        .unwrap();
    let mut narrow = device.alloc::<bf16>(0).unwrap();
    stream.upload_as(F32ToBf16, &[], &mut narrow).unwrap();
    let floats = device.alloc::<f32>(0).unwrap();
    stream.download_as(F32ToBf16, &floats, &mut []).unwrap();
    assert_eq!(sim.timeline(), []);
    assert_eq!(device.stats().express_bytes, 0, "nothing is pinned");
    drop((stream, nothing, some, narrow, floats, device));
    pinlane_testing::assert_clean(&sim);
}

/// Every call, with `len` elements on the host and `other` on the device.
fn each_call(
    stream: &Stream,
    buffers: &mut Buffers,
    len: usize,
    other: usize,
) -> [pinlane::Result<()>; 6] {
    let (words, mut back) = (vec![1u32; len], vec![1u32; len]);
    let (floats, mut narrow) = (vec![1f32; len], vec![bf16::ONE; len]);
    [
        stream.copy_to_device(&words, buffers.words.range_mut(..other)),
        stream.copy_to_host(buffers.words.range(..other), &mut back),
        stream.upload_many([(&words[..], buffers.words.range_mut(..other))]),
        stream.download_many([(buffers.words.range(..other), &mut back[..])]),
        stream.upload_as(F32ToBf16, &floats, buffers.narrow.range_mut(..other)),
        stream.download_as(F32ToBf16, buffers.floats.range(..other), &mut narrow),
    ]
}

struct Buffers {
    words: pinlane::DeviceBuf<u32>,
    narrow: pinlane::DeviceBuf<bf16>,
    floats: pinlane::DeviceBuf<f32>,
}

impl Buffers {
    fn new(device: &pinlane::Device, len: usize) -> Self {
        Self {
            words: device.alloc(len).unwrap(),
            narrow: device.alloc(len).unwrap(),
            floats: device.alloc(len).unwrap(),
        }
    }
}

#[test]
fn lengths_must_match() {
    let (sim, device, stream) = small(1, 1);
    let mut buffers = Buffers::new(&device, 30_000);
    for (len, other) in [(10, 11), (0, 1), (1, 0), (30_000, 29_999)] {
        let refused = each_call(&stream, &mut buffers, len, other);
        for (call, result) in refused.into_iter().enumerate() {
            let up = call % 2 == 0;
            let (source_len, target_len) = if up { (len, other) } else { (other, len) };
            let expected = Error::LengthMismatch {
                source_len,
                target_len,
            };
            assert_eq!(result, Err(expected), "call {call} of {len} and {other}");
        }
    }
    // One wrong piece stops all of them.
    let pieces = buffers.words.whole_mut().chunks(10).take(3);
    let sources = [&[1u32; 10][..], &[1; 9], &[1; 10]];
    let refused = stream.upload_many(sources.into_iter().zip(pieces));
    assert!(matches!(refused, Err(Error::LengthMismatch { .. })));
    assert_eq!(sim.timeline(), []);
}

#[test]
fn memory_of_another_device_is_refused() {
    let sim = Sim::builder()
        .profile(pinlane_testing::profile())
        .devices(2)
        .build();
    let (one, two) = (
        pinlane::Device::open(&sim, 0).unwrap(),
        pinlane::Device::open(&sim, 1).unwrap(),
    );
    set_up(&one, 2, 2);
    let stream = one.stream().unwrap();
    let mut foreign = Buffers::new(&two, 3 * CHUNK_BYTES);
    for len in [0, 10, 3 * CHUNK_BYTES / 4, 3 * CHUNK_BYTES] {
        for (call, result) in each_call(&stream, &mut foreign, len, len)
            .into_iter()
            .enumerate()
        {
            assert_eq!(result, Err(Error::WrongDevice), "call {call} of {len}");
        }
    }
    assert_eq!(sim.timeline(), []);
    // The slots are free for the next copy.
    let mut own = Buffers::new(&one, 3 * CHUNK_BYTES);
    for result in each_call(&stream, &mut own, 3 * CHUNK_BYTES, 3 * CHUNK_BYTES) {
        result.unwrap();
    }
    stream.synchronize().unwrap();
    drop((stream, own, foreign));
    pinlane_testing::assert_empty(&one);
    drop((one, two));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_capturing_stream_is_refused() {
    let sim = pinlane_testing::sim();
    let (device, trap) = Trap::under(&sim);
    set_up(&device, 2, 2);
    let stream = device.stream().unwrap();
    let mut buffers = Buffers::new(&device, 3 * CHUNK_BYTES);
    for result in each_call(&stream, &mut buffers, 100, 100) {
        result.unwrap();
    }
    stream.synchronize().unwrap();
    // SAFETY: the handle of a live stream.
    let handle = unsafe { StreamHandle::from_raw(pinlane::raw::stream_handle(&stream)) };
    sim.set_capturing(handle, true);
    let (stats, done) = (device.stats(), sim.timeline());
    trap.watch();
    for len in [10, 3 * CHUNK_BYTES / 4, 3 * CHUNK_BYTES] {
        for result in each_call(&stream, &mut buffers, len, len) {
            assert_captured(result);
        }
    }
    assert_captured(stream.copy_to_vec(&buffers.words).map(drop));
    let calls = trap.calls();
    assert!(
        calls.iter().all(|&call| call == Call::StreamIsCapturing),
        "{calls:?}"
    );
    assert_eq!((device.stats(), sim.timeline()), (stats, done));

    trap.disarm();
    sim.set_capturing(handle, false);
    stream
        .copy_to_device(&[7; 100], buffers.words.range_mut(..100))
        .unwrap();
    let found = stream.copy_to_vec(buffers.words.range(..100)).unwrap();
    assert_same(&found, &[7; 100], "after the capture");
}

fn assert_captured(result: pinlane::Result<()>) {
    match result {
        Err(Error::Driver(error)) => {
            assert_eq!(error.kind, ErrorKind::Capturing);
            assert!(error.to_string().contains("capture"), "{error}");
        }
        other => panic!("expected an error, found {other:?}"),
    }
}

#[test]
fn an_invalid_config_names_the_field_and_changes_nothing() {
    let (_sim, device, stream) = small(2, 3);
    let before = device.express_config();
    let refused = |change: &dyn Fn(&mut ExpressConfig)| {
        let mut config = before.clone();
        change(&mut config);
        let refused = device.set_express_config(config);
        assert_eq!(device.express_config(), before);
        match refused {
            Err(Error::InvalidConfig { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|config| config.lanes = 0), "lanes");
    let field = refused(&|config| config.converting_lanes = 0);
    assert_eq!(field, "converting_lanes");
    for chunk_bytes in [
        0,
        1,
        60 << 10,
        (64 << 10) + 1,
        (64 << 10) + 2048,
        usize::MAX,
    ] {
        let field = refused(&|config| config.chunk_bytes = chunk_bytes);
        assert_eq!(field, "chunk_bytes", "{chunk_bytes}");
    }
    assert_eq!(refused(&|config| config.ring_chunks = 0), "ring_chunks");
    assert_eq!(
        refused(&|config| config.ring_chunks = usize::MAX),
        "ring_chunks"
    );
    let mut target = device.alloc::<u8>(200_000).unwrap();
    stream
        .copy_to_device(&vec![1; 200_000], &mut target)
        .unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn the_defaults_are_valid_and_small() {
    let (_sim, device, _) = small(1, 1);
    for info in [DeviceInfo::new(0, "real"), device.info().clone()] {
        let config = ExpressConfig::for_device(&info);
        assert!(config.lanes >= 1 && config.chunk_bytes * config.ring_chunks < 100 << 20);
        device.set_express_config(config).unwrap();
    }
}
