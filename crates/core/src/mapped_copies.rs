//! Copies by a kernel that accesses mapped host memory.

use pinlane_kernels::Piece;

use crate::driver_copy::same_len;
use crate::fence::DeviceFence;
use crate::kernel::In;
use crate::memory::{PinnedSource, Touch};
use crate::stream::SubmitError;
use crate::{
    Device, DeviceBuf, DevicePtr, DeviceSlice, DeviceSliceMut, Error, Kernel, LaunchShape,
    MappedBuf, Result, Stream, Transfer, TransferError,
};

/// Threads per block, and bytes per block: a few large loads per thread.
const THREADS: u32 = 256;
const BLOCK_BYTES: usize = 16 << 10;

/// Enough blocks to keep any GPU busy.
const BLOCKS_AT_MOST: usize = 1024;

/// (pieces, parts per piece, table, mapped memory, total bytes)
type Pieces = (u64, u32, In<Piece>, DevicePtr, u64);

/// Copies between device memory and mapped host memory by a kernel that accesses host memory over the link,
/// instead of by a copy engine.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let device = pinlane::Device::sim("pcie3-x16")?;
/// # let stream = device.stream()?;
/// let mut copies = pinlane::MappedCopies::load(&device)?;
/// let mut mapped = device.mapped::<u8>(1000)?;
/// mapped.fill(7);
/// let mut on_device = device.alloc::<u8>(1000)?;
/// let mapped = copies.to_device(&stream, mapped, &mut on_device)?.wait()?;
/// # assert_eq!(stream.copy_to_vec(&on_device)?, mapped[..]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MappedCopies {
    up: Way,
    down: Way,
}

/// One direction.
#[derive(Debug)]
struct Way {
    kernel: Kernel<Pieces>,
    /// A single piece, which covers the whole copy.
    table: DeviceBuf<Piece>,
    /// Contents of the table, so that a copy like the previous one need not write it again.
    written: Option<Piece>,
}

impl MappedCopies {
    /// Loads the kernels onto a device.
    pub fn load(device: &Device) -> Result<Self> {
        let module = device.load_ptx(pinlane_kernels::PTX)?;
        let way = |name| {
            Ok::<_, Error>(Way {
                kernel: module.kernel(name)?,
                table: device.alloc(1)?,
                written: None,
            })
        };
        Ok(Self {
            up: way("pinlane_scatter")?,
            down: way("pinlane_gather")?,
        })
    }

    /// Fills `target` from the start of `source` with a kernel that reads host memory. The transfer owns
    /// `source` until it is done.
    pub fn to_device<'a>(
        &mut self,
        stream: &Stream,
        source: MappedBuf<u8>,
        target: impl Into<DeviceSliceMut<'a, u8>>,
    ) -> Result<Transfer<MappedBuf<u8>>, TransferError<MappedBuf<u8>>> {
        let target = target.into();
        let (place, bytes) = (target.device_ptr(), target.len());
        let touch = target.touch();
        stream.in_flight(source, |source| {
            self.up.submit(stream, source, (place, bytes), touch)
        })
    }

    /// Writes all of `source` to the start of `target` with a kernel that writes host memory. The transfer
    /// owns `target` until it is done.
    pub fn to_host<'a>(
        &mut self,
        stream: &Stream,
        source: impl Into<DeviceSlice<'a, u8>>,
        target: MappedBuf<u8>,
    ) -> Result<Transfer<MappedBuf<u8>>, TransferError<MappedBuf<u8>>> {
        let source = source.into();
        let (place, bytes) = (source.device_ptr(), source.len());
        let touch = source.touch();
        stream.in_flight(target, |target| {
            self.down.submit(stream, target, (place, bytes), touch)
        })
    }
}

impl Way {
    fn submit(
        &mut self,
        stream: &Stream,
        mapped: &MappedBuf<u8>,
        (place, bytes): (DevicePtr, usize),
        touch: Touch<'_>,
    ) -> Result<DeviceFence, SubmitError> {
        let checked = match mapped.len() < bytes {
            true => same_len(mapped.len(), bytes),
            // On another device the memory may have a different address.
            false => mapped.pinned_for().check_same_device(&stream.shared().core),
        };
        checked
            .and_then(|()| self.write_table(stream, Piece::new(place, 0, bytes)))
            .map_err(SubmitError::Refused)?;
        let splits = (bytes / BLOCK_BYTES).clamp(1, BLOCKS_AT_MOST) as u32;
        let shape = LaunchShape {
            grid: [splits, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: 0,
        };
        let table = self.table.whole();
        let values = (1, splits, table, mapped.device_ptr(), bytes as u64);
        // SAFETY: these are its parameters. It stays within `bytes` on both sides: `touch` records the
        // device side, and the transfer that gets the fence owns the host side.
        unsafe { stream.launch_touching(&self.kernel, shape, &values, &[touch]) }
    }

    fn write_table(&mut self, stream: &Stream, piece: Piece) -> Result<()> {
        if self.written == Some(piece) {
            return Ok(());
        }
        self.written = None;
        stream.copy_to_device(&[piece], &mut self.table)?;
        self.written = Some(piece);
        Ok(())
    }
}
