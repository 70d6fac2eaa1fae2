use pinlane::kernel::Out;
use pinlane::{DeviceBuf, Kernel, LaunchShape, Stream};

fn job(stream: &Stream, kernel: &Kernel<(u64, Out<f32>)>, buffer: &DeviceBuf<f32>) {
    // SAFETY: does not compile.
    let _ = unsafe { stream.launch(kernel, LaunchShape::for_items(1), (1, buffer.whole())) };
}

fn main() {}
