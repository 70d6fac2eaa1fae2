use pinlane::{Device, DeviceBuf, PinnedBuf, Stream};

fn job(device: &Device, stream: &Stream, pinned: &PinnedBuf<u8>, mut target: DeviceBuf<u8>) {
    let _ = device.scope(|scope| {
        let transfer = scope.upload(stream, pinned, &mut target)?;
        std::thread::spawn(move || transfer.wait().is_ok());
        Ok(())
    });
}

fn main() {}
