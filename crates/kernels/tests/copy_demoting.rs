//! Copies that demote cache lines write the right bytes and no others.

use pinlane_kernels::copy_demoting_raw;

#[test]
fn every_length_and_alignment() {
    let source: Vec<u8> = (0..5000u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let lengths = (0..700).chain([1023, 1024, 1025, 2048, 4000, 4097]);
    for bytes in lengths {
        for offset in [0, 1, 31, 63] {
            let mut target = vec![0xee; 5000];
            let from = (bytes * 7) % 64;
            // SAFETY: both are large enough for offset and length.
            unsafe {
                let source = source.as_ptr().add(from);
                copy_demoting_raw(source, target.as_mut_ptr().add(offset), bytes);
            }
            assert_eq!(target[offset..offset + bytes], source[from..from + bytes]);
            assert!(target[..offset].iter().all(|&byte| byte == 0xee));
            assert!(target[offset + bytes..].iter().all(|&byte| byte == 0xee));
        }
    }
}
