//! Many threads on two devices, with fewer slots than threads.

use std::thread;

use half::{bf16, f16};
use pinlane::{Device, F32ToBf16, F32ToF16, Stream, U8ToF32};
use pinlane_sim::Sim;

use pinlane_testing::must_return;
use pinlane_testing::{CHUNK_BYTES, SplitMix64, assert_same, pattern, set_up};

/// A random kind of copy, to the device and back.
fn random_copy(device: &Device, stream: &Stream, random: &mut SplitMix64) {
    let seed = random.next_u64();
    match random.index(5) {
        0 | 1 => {
            let most = [1000, CHUNK_BYTES, 6 * CHUNK_BYTES][random.index(3)];
            let bytes = 1 + random.index(most);
            let source = pattern(bytes, seed);
            let mut on_device = device.alloc::<u8>(bytes).unwrap();
            stream.copy_to_device(&source, &mut on_device).unwrap();
            let mut back = vec![0; bytes];
            stream.copy_to_host(&on_device, &mut back).unwrap();
            assert_same(&back, &source, "plain");
        }
        2 => {
            let source = pattern(200 * 700, seed);
            let mut on_device = device.alloc::<u8>(200 * 1000).unwrap();
            let places = on_device
                .whole_mut()
                .chunks(1000)
                .map(|place| place.range(3..703));
            stream.upload_many(source.chunks(700).zip(places)).unwrap();
            let mut back = vec![0; source.len()];
            let sources = (0..200).map(|at| on_device.range(1000 * at + 3..1000 * at + 703));
            stream
                .download_many(sources.zip(back.chunks_mut(700)))
                .unwrap();
            assert_same(&back, &source, "pieces");
        }
        3 => {
            let source = pattern(1 + random.index(3 * CHUNK_BYTES), seed);
            let mut on_device = device.alloc::<f32>(source.len()).unwrap();
            let conversion = U8ToF32 {
                scale: 0.5,
                offset: 1.0,
            };
            stream
                .upload_as(conversion, &source, &mut on_device)
                .unwrap();
            let expected: Vec<f32> = source.iter().map(|&x| f32::from(x) * 0.5 + 1.0).collect();
            let mut narrow = vec![f16::ZERO; source.len()];
            stream
                .download_as(F32ToF16, &on_device, &mut narrow)
                .unwrap();
            let found: Vec<f32> = narrow.iter().map(|x| x.to_f32()).collect();
            assert_same(&found, &expected, "from bytes"); // all values fit f16 exactly
        }
        _ => {
            let source: Vec<f32> = pattern(2 * CHUNK_BYTES, seed)
                .into_iter()
                .map(f32::from)
                .collect();
            let mut on_device = device.alloc::<bf16>(source.len()).unwrap();
            stream
                .upload_as(F32ToBf16, &source, &mut on_device)
                .unwrap();
            let back = stream.copy_to_vec(&on_device).unwrap();
            let found: Vec<f32> = back.iter().map(|x| x.to_f32()).collect();
            assert_same(&found, &source, "narrowed"); // bytes fit bf16 exactly
        }
    }
}

/// Eight threads, four per device; half of them share a stream.
fn copy_on_two_devices(sim: &Sim, lanes: usize, ring_chunks: usize, rounds: usize) {
    let devices = [0, 1].map(|ordinal| {
        let device = Device::open(sim, ordinal).unwrap();
        set_up(&device, lanes, ring_chunks);
        device
    });
    let shared = devices.each_ref().map(|device| device.stream().unwrap());
    thread::scope(|scope| {
        for number in 0..8 {
            let (device, shared) = (&devices[number % 2], &shared[number % 2]);
            scope.spawn(move || {
                let stream = match number / 4 {
                    0 => shared.clone(),
                    _ => device.stream().unwrap(),
                };
                let mut random = SplitMix64::new(number as u64);
                for _ in 0..rounds {
                    random_copy(device, &stream, &mut random);
                }
            });
        }
    });
    drop(shared);
    for device in devices {
        device.synchronize().unwrap();
        assert_eq!(device.take_stray_errors(), []);
        pinlane_testing::assert_empty(&device);
    }
}

fn two_devices(seed: Option<u64>) -> Sim {
    let builder = Sim::builder()
        .profile(pinlane_testing::profile())
        .devices(2);
    match seed {
        Some(seed) => builder.seed(seed).build(),
        None => builder.build(),
    }
}

#[test]
fn eight_threads_on_two_devices_with_three_slots_each() {
    must_return(|| {
        let sim = two_devices(None);
        copy_on_two_devices(&sim, 4, 3, 12);
        pinlane_testing::assert_clean(&sim);
    });
}

#[test]
fn eight_threads_with_one_or_two_slots_and_random_schedules() {
    for (seed, ring_chunks) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        must_return(move || {
            let sim = two_devices(Some(seed));
            copy_on_two_devices(&sim, 4, ring_chunks, 4);
            pinlane_testing::assert_clean(&sim);
        });
    }
}

#[test]
fn threads_that_wait_for_a_slot_are_not_starved() {
    must_return(|| {
        let sim = pinlane_testing::sim();
        let device = pinlane_testing::open(&sim);
        set_up(&device, 2, 2);
        let long = pattern(60 * CHUNK_BYTES, 1);
        thread::scope(|scope| {
            for _ in 0..2 {
                // Long copies, which would take more slots than there are.
                scope.spawn(|| {
                    let stream = device.stream().unwrap();
                    let mut on_device = device.alloc::<u8>(long.len()).unwrap();
                    for _ in 0..5 {
                        stream.copy_to_device(&long, &mut on_device).unwrap();
                        let back = stream.copy_to_vec(&on_device).unwrap();
                        assert_same(&back, &long, "long");
                    }
                });
            }
            for seed in 0..4 {
                let device = &device;
                scope.spawn(move || {
                    let stream = device.stream().unwrap();
                    let source = pattern(CHUNK_BYTES, seed);
                    let mut on_device = device.alloc::<u8>(source.len()).unwrap();
                    for _ in 0..40 {
                        stream.copy_to_device(&source, &mut on_device).unwrap();
                        let back = stream.copy_to_vec(&on_device).unwrap();
                        assert_same(&back, &source, "short");
                    }
                });
            }
        });
        device.synchronize().unwrap();
        pinlane_testing::assert_empty(&device);
        drop(device);
        pinlane_testing::assert_clean(&sim);
    });
}
