#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinlane_fuzz::profile(data));
