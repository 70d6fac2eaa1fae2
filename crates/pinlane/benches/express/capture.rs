//! A stream that is being captured into a graph is left alone.

use std::ffi::c_void;

use pinlane::Result;
use pinlane::driver::ErrorKind;

use crate::support::{Bench, MIB};

pub fn run(bench: &Bench) -> Result<()> {
    // SAFETY: the library is loaded already; these are its signatures.
    let (library, mut graph) = unsafe {
        (
            libloading::Library::new("libcuda.so.1"),
            std::ptr::null_mut::<c_void>(),
        )
    };
    let library = library.expect("the driver library");
    // SAFETY: as above.
    let (begin, end) = unsafe {
        let begin =
            library.get::<unsafe extern "C" fn(u64, u32) -> u32>(b"cuStreamBeginCapture_v2");
        let end = library
            .get::<unsafe extern "C" fn(u64, *mut *mut c_void) -> u32>(b"cuStreamEndCapture");
        (begin.expect("a symbol"), end.expect("a symbol"))
    };
    let data = vec![1u8; 32 * MIB];
    let mut on_device = bench.device.alloc::<u8>(data.len())?;
    bench.stream.copy_to_device(&data, &mut on_device)?;
    bench.stream.synchronize()?;
    let raw = pinlane::raw::stream_handle(&bench.stream);
    // SAFETY: a stream of ours, captured in relaxed mode and ended below.
    assert_eq!(unsafe { begin(raw, 2) }, 0, "capture began");
    for bytes in [100, MIB, data.len()] {
        let refused = bench
            .stream
            .copy_to_device(&data[..bytes], on_device.range_mut(..bytes));
        let error = refused.expect_err("refused");
        let pinlane::Error::Driver(driver_error) = &error else {
            panic!("another error: {error}");
        };
        assert_eq!(driver_error.kind, ErrorKind::Capturing);
        println!("{bytes} bytes on a captured stream: {error}");
    }
    // SAFETY: as above.
    let ended = unsafe { end(raw, &mut graph) };
    assert_eq!(ended, 0, "the capture was disturbed");
    bench.stream.copy_to_device(&data, &mut on_device)?;
    println!("the capture ended undisturbed, and copies work again");
    Ok(())
}
