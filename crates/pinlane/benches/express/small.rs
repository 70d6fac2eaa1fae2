//! Where the time of a small copy goes.

use pinlane::Result;
use pinlane::driver::StreamHandle;

use crate::support::{Bench, KIB, in_turns, up};

pub fn run(bench: &Bench) -> Result<()> {
    let source = vec![1u8; 64 * KIB];
    let mut on_device = bench.device.alloc::<u8>(64 * KIB)?;
    for bytes in [4 * KIB, 16 * KIB] {
        let place = on_device.device_ptr();
        let copy = up(&source[..bytes], place);
        let fresh = bench.device.stream()?;
        // SAFETY: a stream that lives as long as it is used here.
        let raw = unsafe { StreamHandle::from_raw(pinlane::raw::stream_handle(&fresh)) };
        let stream = &bench.stream;
        let (mut other, other_stream) = (bench.device.alloc::<u8>(bytes)?, bench.device.stream()?);
        let times = in_turns(
            2000,
            [
                &mut || bench.plain_async(copy),
                &mut || {
                    // SAFETY: both ends and the stream live.
                    unsafe {
                        bench.driver.copy_async(copy, raw).expect("a copy");
                        bench.driver.stream_synchronize(raw).expect("a wait");
                    }
                },
                &mut || {
                    stream
                        .driver_copy_to_device(&source[..bytes], on_device.range_mut(..bytes))
                        .expect("a copy")
                },
                &mut || {
                    other_stream
                        .copy_to_device(&source[..bytes], &mut other)
                        .expect("a copy");
                    other_stream.synchronize().expect("a wait");
                },
                &mut || bench.plain_sync(copy),
                &mut || bench.plain_async(copy),
            ],
        );
        println!(
            "{bytes} bytes: plain, plain on another stream, driver_copy_to_device, copy_to_device and wait, synchronous, plain again: {times:?}"
        );
    }
    Ok(())
}
