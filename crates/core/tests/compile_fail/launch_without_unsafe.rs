use pinlane::{Kernel, LaunchShape, Stream};

fn job(stream: &Stream, kernel: &Kernel<(u64,)>) {
    let _ = stream.launch(kernel, LaunchShape::for_items(1), (1,));
}

fn main() {}
