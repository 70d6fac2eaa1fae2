use pinlane::Device;
use pinlane::driver::{HostFlags, HostPtr, Result};

fn job(device: &Device) -> Result<HostPtr> {
    let driver = pinlane::raw::driver(device);
    driver.host_alloc(1 << 40, HostFlags::default())
}

fn main() {}
