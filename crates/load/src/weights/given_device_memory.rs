//! Device memory that a load is given, one target per tensor.

use bytemuck::Pod;

use crate::{Dtype, LoadErrorKind, TensorInfo};
use pinlane_core::internal::{Touch, same_stream};
use pinlane_core::memory::DeviceBuf;
use pinlane_core::{DevicePtr, Stream};

/// A tensor that needs device memory.
#[derive(Clone, Copy, Debug)]
pub struct TargetRequest<'a> {
    pub(super) info: &'a TensorInfo,
    pub(super) number: usize,
    pub(super) dtype: Dtype,
    pub(super) len_bytes: usize,
}

/// Device memory for one tensor, with its owner: a buffer, or an object of another library. The load hands the
/// owner back with the tensor, or drops it when nothing uses the memory any more.
pub struct DeviceTarget<O> {
    pub(super) ptr: DevicePtr,
    pub(super) len_bytes: usize,
    pub(super) owner: O,
    earlier: EarlierUses<O>,
}

/// What must be done before the memory is written.
enum EarlierUses<O> {
    /// All work that this stream has been given.
    On(Stream),
    /// What the ledger of the owner knows.
    Tracked(fn(&mut O) -> Touch<'_>),
}

/// A tensor on the device, in the memory that was given for it. All its bytes are there: work on any stream
/// may use them, without a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FilledTensor<O> {
    /// The tensor in its file.
    pub info: TensorInfo,
    /// Its position in [`Weights::tensors`](crate::Weights::tensors).
    pub number: usize,
    /// Type of the elements on the device.
    pub dtype: Dtype,
    /// The owner of the memory, as it was given.
    pub owner: O,
}

impl<'a> TargetRequest<'a> {
    /// The tensor in its file.
    #[must_use]
    pub fn info(&self) -> &'a TensorInfo {
        self.info
    }

    /// Its position in [`Weights::tensors`](crate::Weights::tensors).
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Type of the elements on the device.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Size on the device.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}

impl<O> DeviceTarget<O> {
    /// Memory of another library. It is written once the work that `stream` was given before is done; this is
    /// the stream that the load is given.
    ///
    /// # Safety
    /// The memory belongs to the stream's device and has `len_bytes` bytes. It stays valid until `owner` is
    /// dropped or handed back; for good, if `owner` is leaked. From here until then nothing else uses it. Earlier work
    /// on it is on `stream`, ordered before it, or done.
    pub unsafe fn from_raw(stream: &Stream, ptr: DevicePtr, len_bytes: usize, owner: O) -> Self {
        Self {
            ptr,
            len_bytes,
            owner,
            earlier: EarlierUses::On(stream.clone()),
        }
    }

    /// Checks size and stream. Returns the earlier uses that the load's copies must wait for, other than those
    /// on the load's stream.
    pub(super) fn check(
        &mut self,
        stream: &Stream,
        expected: usize,
    ) -> Result<Option<Touch<'_>>, LoadErrorKind> {
        let found = self.len_bytes;
        if found != expected {
            return Err(LoadErrorKind::TargetSize { found, expected });
        }
        match &self.earlier {
            EarlierUses::On(used_on) if !same_stream(used_on, stream) => {
                Err(LoadErrorKind::TargetStream)
            }
            EarlierUses::On(_) => Ok(None),
            EarlierUses::Tracked(touch) => Ok(Some(touch(&mut self.owner))),
        }
    }
}

impl<T: Pod> DeviceTarget<DeviceBuf<T>> {
    /// A whole device buffer. It is written once all earlier work on it is done.
    #[must_use]
    pub fn buffer(buffer: DeviceBuf<T>) -> Self {
        Self {
            ptr: buffer.device_ptr(),
            len_bytes: buffer.len() * size_of::<T>(),
            owner: buffer,
            earlier: EarlierUses::Tracked(|buffer| buffer.whole_mut().touch()),
        }
    }
}

impl<O> std::fmt::Debug for DeviceTarget<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceTarget")
            .field("ptr", &self.ptr)
            .field("len_bytes", &self.len_bytes)
            .finish_non_exhaustive()
    }
}
