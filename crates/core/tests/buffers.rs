//! What every buffer offers: pieces, and the traits of slices.

use pinlane::{
    Device, DeviceBuf, HostBuf, MappedBuf, Part, PinnedBuf, PinnedPool, PinnedSource, PinnedTarget,
    PoolBuf, RegisterError, Registered, Result, Stream, TransferError, WriteCombinedBuf,
};

const LEN: u32 = 100;

fn numbers() -> Vec<u32> {
    (0..LEN).collect()
}

struct Rig {
    device: Device,
    stream: Stream,
}

impl Rig {
    fn new() -> Result<Self> {
        let device = Device::open(&pinlane_testing::sim(), 0)?;
        let stream = device.stream()?;
        Ok(Self { device, stream })
    }

    /// Elements 10..20 go to the device as a part of the buffer.
    fn upload<B: PinnedSource<u32>>(&self, part: Part<B>) -> Result<B> {
        let mut target = self.device.alloc(10)?;
        let part = self.stream.upload(part, &mut target)?.wait()?;
        assert_eq!(part.bounds(), 10..20);
        assert_eq!(self.stream.copy_to_vec(&target)?, numbers()[10..20]);
        Ok(part.into_whole())
    }

    /// A download writes elements 10..20 only.
    fn download<B: PinnedTarget<u32>>(&self, part: Part<B>) -> Result<B> {
        let mut source = self.device.alloc(10)?;
        self.stream.copy_to_device(&[7; 10], &mut source)?;
        let part = self.stream.download(&source, part)?.wait()?;
        Ok(part.into_whole())
    }
}

fn after_download() -> Vec<u32> {
    let mut expected = numbers();
    expected[10..20].fill(7);
    expected
}

/// The traits of slices, for all who have them.
fn reads_like_a_slice<B>(mut buffer: B)
where
    B: AsRef<[u32]> + AsMut<[u32]> + std::fmt::Debug,
    for<'a> &'a B: IntoIterator<Item = &'a u32>,
    for<'a> &'a mut B: IntoIterator<Item = &'a mut u32>,
{
    buffer.as_mut().copy_from_slice(&numbers());
    assert_eq!(buffer.as_ref(), numbers());
    for number in &mut buffer {
        *number += 1;
    }
    let sum: u32 = (&buffer).into_iter().sum();
    assert_eq!(sum, LEN * (LEN + 1) / 2);
    let text = format!("{buffer:?}");
    assert!(text.contains("99, 100]"), "{text}");
}

#[test]
fn pinned() -> Result<()> {
    let rig = Rig::new()?;
    let buffer: PinnedBuf<u32> = rig.device.pinned_from(&numbers())?;
    let buffer = rig.upload(buffer.part(10..20))?;
    let mut buffer = rig.download(buffer.part(10..20))?;
    assert_eq!(buffer[..], after_download());
    assert_eq!(
        (buffer.range(5..).len(), buffer.range_mut(..5).len()),
        (95, 5)
    );
    reads_like_a_slice(buffer);
    Ok(())
}

#[test]
fn from_a_pool() -> Result<()> {
    let rig = Rig::new()?;
    let pool = PinnedPool::new(&rig.device);
    let mut buffer: PoolBuf<u32> = pool.take(LEN as usize)?;
    buffer.copy_from_slice(&numbers());
    let buffer = rig.upload(buffer.part(10..20))?;
    let mut buffer = rig.download(buffer.part(10..20))?;
    assert_eq!(buffer[..], after_download());
    assert_eq!(
        (buffer.range(5..).len(), buffer.range_mut(..5).len()),
        (95, 5)
    );
    reads_like_a_slice(buffer);
    let host: HostBuf<u32> = pool.take_or_pageable(LEN as usize)?;
    assert!(host.is_pinned());
    let HostBuf::Pinned(_) = &host else {
        panic!("there is room");
    };
    reads_like_a_slice(HostBuf::Pageable(numbers()));
    Ok(())
}

#[test]
fn mapped() -> Result<()> {
    let rig = Rig::new()?;
    let mut buffer: MappedBuf<u32> = rig.device.mapped(LEN as usize)?;
    buffer.copy_from_slice(&numbers());
    let buffer = rig.upload(buffer.part(10..20))?;
    let mut buffer = rig.download(buffer.part(10..20))?;
    assert_eq!(buffer[..], after_download());
    assert_eq!(
        (buffer.range(5..).len(), buffer.range_mut(..5).len()),
        (95, 5)
    );
    reads_like_a_slice(buffer);
    Ok(())
}

#[test]
fn registered() -> Result<()> {
    let rig = Rig::new()?;
    let buffer: Registered<Vec<u32>> = rig.device.register(numbers())?;
    let buffer = rig.upload(buffer.part(10..20))?;
    let mut buffer = rig.download(buffer.part(10..20))?;
    assert_eq!(buffer[..], after_download());
    assert_eq!(
        (buffer.range(5..).len(), buffer.range_mut(..5).len()),
        (95, 5)
    );
    reads_like_a_slice(buffer);
    Ok(())
}

#[test]
fn write_combined() -> Result<()> {
    let rig = Rig::new()?;
    let mut buffer: WriteCombinedBuf<u32> = rig.device.write_combined(LEN as usize)?;
    buffer.write(0, &numbers());
    let buffer = rig.upload(buffer.part(10..20))?;
    let mut target = rig.device.alloc(10)?;
    rig.device.scope(|scope| {
        scope.upload(&rig.stream, buffer.range(20..30), &mut target)?;
        Ok(())
    })?;
    assert_eq!(rig.stream.copy_to_vec(&target)?, numbers()[20..30]);
    Ok(())
}

#[test]
fn on_the_device() -> Result<()> {
    let rig = Rig::new()?;
    let mut buffer: DeviceBuf<u32> = rig.device.alloc(LEN as usize)?;
    rig.stream.copy_to_device(&numbers(), &mut buffer)?;
    let mut part = buffer.part(10..20);
    assert_eq!(rig.stream.copy_to_vec(&part)?, numbers()[10..20]);
    rig.stream.copy_to_device(&[7; 10], &mut part)?;
    let buffer = part.into_whole();
    assert_eq!(rig.stream.copy_to_vec(&buffer)?, after_download());
    let text = format!("{:?}", buffer.range(3..5));
    assert!(text.contains("start: 3, len: 2"), "{text}");
    Ok(())
}

#[test]
#[should_panic(expected = "range 5..101 of a buffer of 100")]
fn a_part_beyond_the_end() {
    let rig = Rig::new().expect("it opens");
    let buffer = rig.device.pinned::<u32>(LEN as usize).expect("enough");
    let _ = buffer.part(5..101);
}

/// What wraps a library error shows that error's cause, not the error itself a second time.
/// No call counts elements that have no bytes.
#[test]
fn any_number_of_elements_of_no_bytes_takes_no_time() {
    fn all_calls<T: pinlane::Pod + Send + Sync>(rig: &Rig) -> Result<()> {
        const MANY: usize = usize::MAX;
        let Rig { device, stream } = rig;
        let (mut source, mut target) = (device.alloc::<T>(MANY)?, device.alloc::<T>(MANY)?);
        let pinned = stream
            .download(&source, device.pinned::<T>(MANY)?)?
            .wait()?;
        let mut combined = device.write_combined::<T>(MANY)?;
        combined.fill(T::zeroed());
        combined.write(0, &pinned);
        stream.upload(combined, &mut source)?.wait()?;
        stream.copy_on_device(&source, &mut target)?;
        stream.fill_bytes(&mut target, 1)?;
        let mut values = stream.copy_to_vec(&target)?;
        assert_eq!(values.len(), MANY);
        stream.copy_to_device(&values, &mut target)?;
        stream.copy_to_host(&target, &mut values)?;
        stream.driver_copy_to_device(&values, &mut target)?;
        stream.driver_copy_to_host(&target, &mut values)?;
        stream.upload_many([(&values[..], target.whole_mut())])?;
        stream.download_many([(target.whole(), &mut values[..])])?;
        device.scope(|scope| {
            let registered = scope.register_read_only(&values)?;
            scope.upload(stream, registered, &mut target)?;
            Ok(())
        })?;
        assert_eq!(device.pinned_from(&values)?.len(), MANY);
        let pool = PinnedPool::new(device);
        assert_eq!(pool.take::<T>(MANY)?.len(), MANY);
        assert_eq!(pool.take_or_pageable::<T>(MANY)?.len(), MANY);
        assert_eq!(device.mapped::<T>(MANY)?.len(), MANY);
        assert_eq!(device.register(values)?.into_inner()?.len(), MANY);
        Ok(())
    }
    pinlane_testing::must_return(|| {
        let rig = Rig::new()?;
        all_calls::<()>(&rig)?;
        all_calls::<[u64; 0]>(&rig)
    })
    .unwrap();
}

#[test]
fn failed_transfers_and_registrations_pass_on_the_cause() {
    use std::error::Error as _;

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is gone")]
    struct Gone(#[source] std::io::Error);

    let io = std::io::Error::other("no such disk");
    let error = pinlane::Error::other(pinlane::ErrorKind::Io, Gone(io));
    let cause = error.source().expect("the disk").to_string();
    let failed = TransferError {
        error: error.clone(),
        buffer: Some(()),
    };
    let refused = RegisterError { error, memory: () };
    for wrapped in [&failed as &dyn std::error::Error, &refused] {
        assert_eq!(wrapped.to_string(), "the disk is gone");
        assert_eq!(wrapped.source().expect("the cause").to_string(), cause);
    }
}
