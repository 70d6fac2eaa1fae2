use pinlane::{DeviceBuf, DeviceSlice};

fn job(buffer: DeviceBuf<u8>) -> DeviceSlice<'static, u8> {
    buffer.range(0..8)
}

fn main() {}
