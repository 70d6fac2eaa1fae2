use pinlane::Device;

fn job(device: &Device) {
    let _ = device.alloc::<&'static u8>(1);
}

fn main() {}
