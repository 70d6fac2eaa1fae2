//! The memory of a loader's batch, shared by the arrays of its fields.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pinlane::load::Batch;
use pinlane::{DeviceSlice, DeviceSliceMut, Stream};

use crate::fork;

/// A batch. Its memory returns to the loader with the last array of it, here and in other libraries.
pub(crate) struct SharedBatch {
    /// Taken by the drop.
    batch: Option<Batch>,
    device: pinlane::Device,
    /// Streams of torch that use it.
    users: Mutex<Vec<Stream>>,
    /// Whether another library knows an address of it, and may use it on streams that we do not know.
    is_shared: AtomicBool,
}

impl SharedBatch {
    pub(crate) fn new(batch: Batch, device: &pinlane::Device) -> Self {
        Self {
            batch: Some(batch),
            device: device.clone(),
            users: Mutex::default(),
            is_shared: AtomicBool::new(false),
        }
    }

    pub(crate) fn batch(&self) -> &Batch {
        self.batch.as_ref().expect("taken by the drop only")
    }

    /// Lends it to work on a stream, until the last array is dropped: the stream waits for the batch, and the loader
    /// then for what is on the stream.
    pub(crate) fn lend_to(&self, stream: &Stream) -> pinlane::Result<()> {
        self.batch().ready_on(stream)?;
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.push(stream.clone());
        Ok(())
    }
}

impl Drop for SharedBatch {
    fn drop(&mut self) {
        let Some(batch) = self.batch.take() else {
            return;
        };
        if fork::is_child() {
            return std::mem::forget(batch);
        }
        let users = std::mem::take(self.users.get_mut().unwrap_or_else(PoisonError::into_inner));
        let is_known =
            !*self.is_shared.get_mut() && users.iter().all(|stream| batch.used_on(stream).is_ok());
        if !is_known {
            self.device.release_when_idle(batch);
        }
    }
}

/// A field of a batch: its values, or where each sample starts in them.
pub(crate) struct BatchPart {
    pub(crate) batch: Arc<SharedBatch>,
    pub(crate) field: usize,
    pub(crate) is_offsets: bool,
}

impl BatchPart {
    pub(crate) fn slice_mut(&self) -> DeviceSliceMut<'_, u8> {
        let batch = self.batch.batch();
        let offsets = self
            .is_offsets
            .then(|| batch.shared_offsets_mut(self.field))
            .flatten();
        offsets.unwrap_or_else(|| batch.shared_bytes_mut(self.field))
    }

    pub(crate) fn slice(&self) -> DeviceSlice<'_, u8> {
        let mut fields = self.batch.batch().fields();
        let field = fields.nth(self.field).expect("made from this batch");
        match field.device_offsets() {
            Some(offsets) if self.is_offsets => offsets.cast(),
            _ => field.bytes(),
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.batch.is_shared.load(Ordering::Acquire)
    }

    pub(crate) fn set_shared(&self) {
        self.batch.is_shared.store(true, Ordering::Release);
    }
}
