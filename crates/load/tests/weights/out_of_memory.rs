//! Devices without enough memory.

use std::fs::File;

use pinlane::load::{Dtype, Weights};
use pinlane::{Device, Error};
use pinlane_driver::ErrorKind;
use pinlane_sim::Sim;

use super::rig::{Rig, config, device_error, model};
use super::support::{Scratch, safetensors};
use pinlane_testing::profile;

/// A device with this much memory.
fn with_memory(memory_bytes: u64) -> Rig {
    let mut profile = profile();
    profile.device.memory_bytes = memory_bytes;
    let sim = Sim::new(profile);
    let device = Device::open(&sim, 0).expect("the simulated device opens");
    Rig::with(sim, device)
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if matches!(error.kind, ErrorKind::OutOfMemory))
}

#[test]
fn the_error_names_the_tensor_that_does_not_fit() {
    let scratch = Scratch::new();
    let path = model(&scratch);
    let weights = Weights::open(&path).expect("a good file");
    let rig = with_memory(200_000);
    // Twice the size of the file, which would fit.
    let error = weights.load(&rig.device, &config(2).convert(Dtype::F64));
    let error = error.expect_err("no room");
    assert!(is_full(device_error(&error)), "{error}");
    assert_eq!(error.file(), Some(path.as_path()));
    assert_eq!(error.tensor(), Some("odd"), "the first of the allocation");
    assert_eq!(rig.device.stats().device_bytes, 0);
    drop(
        weights
            .load(&rig.device, &config(2))
            .expect("there is room"),
    );
    rig.assert_clean();
}

/// If one allocation fails, the earlier ones are freed.
#[test]
fn earlier_allocations_are_freed() {
    let scratch = Scratch::new();
    let bytes: u64 = 900 << 20;
    let entry = |name: &str, at: u64| {
        let (start, end) = (at * bytes, (at + 1) * bytes);
        format!(
            "{name:?}:{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":[{start},{end}]}}"
        )
    };
    let header = format!("{{{},{},{}}}", entry("a", 0), entry("b", 1), entry("c", 2));
    let file = safetensors(&header, &[]);
    let path = scratch.file("large.safetensors", &file);
    // After the header, the file is sparse.
    let open = File::options().write(true).open(&path).expect("the file");
    if open.set_len(file.len() as u64 + 3 * bytes).is_err() {
        println!("skipped: a file system without holes");
        return;
    }
    let weights = Weights::open(&path).expect("a good file");
    let rig = with_memory(2 << 30);
    let error = weights.load(&rig.device, &config(2)).expect_err("no room");
    assert!(is_full(device_error(&error)), "{error}");
    assert_eq!(error.tensor(), Some("c"));
    assert_eq!(rig.device.stats().device_bytes, 0);
    rig.assert_clean();
}
