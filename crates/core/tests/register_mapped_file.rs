//! Files that are mapped into memory, page-locked in place.

#![cfg(feature = "mmap")]

use std::fs::File;
use std::io::Write;

use memmap2::Mmap;
use pinlane::ReadOnly;

/// A file of 10,000 bytes that nobody else knows, mapped for reading.
fn mapped_file() -> Mmap {
    let name = format!("pinlane-mapping-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut file = File::create(&path).expect("a file");
    let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * 7) as u8).collect();
    file.write_all(&bytes).expect("written");
    let file = File::open(&path).expect("the same file");
    std::fs::remove_file(&path).expect("out of everybody's sight");
    // SAFETY: the file has no name any more, so nobody changes it.
    unsafe { Mmap::map(&file) }.expect("mapped")
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no files")]
fn a_file_goes_to_the_device_from_where_it_is_mapped() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut on_device = device.alloc::<u8>(10_000).unwrap();
    let registered = device.register_read_only(mapped_file()).unwrap();
    assert_eq!(device.stats().registered_bytes, 10_000);
    let registered = stream
        .upload(registered, &mut on_device)
        .unwrap()
        .wait()
        .unwrap();
    let mut back = vec![0; 10_000];
    stream.copy_to_host(&on_device, &mut back).unwrap();
    let ReadOnly(mapping) = registered.into_inner().unwrap();
    assert_eq!(back, mapping[..]);
    drop((on_device, stream, device));
    pinlane_testing::assert_clean(&sim);
}
