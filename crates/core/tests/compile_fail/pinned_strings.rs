use pinlane::Device;

fn job(device: &Device) {
    let _ = device.pinned::<String>(1);
}

fn main() {}
