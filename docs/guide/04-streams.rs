//! Work on one stream runs in order. Work on different streams overlaps, except where it shares a buffer.

use pinlane::record::Recorder;
use pinlane::{Builtin, Device, Result};

const LEN: usize = 4 << 20;

fn main() -> Result<()> {
    let (device, recorder) = Recorder::new(&Device::sim("pcie3-x16")?);
    let kernels = Builtin::load(&device)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let mut a = device.alloc::<u32>(LEN)?;
    let mut b = device.alloc::<u32>(LEN)?;
    // Allocated before anything is submitted: pinning can make the device wait.
    let (ones, twos) = (
        device.pinned_from(&vec![1; LEN])?,
        device.pinned_from(&vec![2; LEN])?,
    );
    let result = device.pinned::<u32>(LEN)?;

    // Different buffers, different streams: the copy of `b` runs beside the kernel on `a`.
    let up_a = first.upload(ones, &mut a)?;
    kernels.churn(&first, 20_000, &mut a)?; // 20,000 rounds of arithmetic per element
    let up_b = second.upload(twos, &mut b)?;

    // The same buffer: the download on `second` waits for the kernel on `first` by itself.
    let down_a = second.download(&a, result)?;

    up_a.wait()?;
    up_b.wait()?;
    down_a.wait()?;
    print!("{}", recorder.finish("Two streams")?);
    Ok(())
}
