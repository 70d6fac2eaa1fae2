use pinlane::Device;
use pinlane_driver::EventHandle;

fn job(device: &Device) {
    let _ = pinlane::raw::driver(device).event_query(EventHandle(7));
}

fn main() {}
