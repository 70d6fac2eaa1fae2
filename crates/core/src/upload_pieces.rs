//! Uploads of one pinned buffer to several places on the device.

use std::mem::ManuallyDrop;
use std::ops::Range;

use crate::copy::{enqueue, upload_op};
use crate::memory::{DeviceSliceMut, PinnedSource};
use crate::stream::SubmitError;
use crate::{Stream, Transfer, TransferError};

impl Stream {
    /// Copies ranges of a pinned buffer to the device, asynchronously. The transfer owns the buffer until
    /// all copies are done. An error comes with the index of the piece it concerns.
    ///
    /// # Panics
    /// If a range is out of bounds, or differs in length from its target.
    #[doc(hidden)]
    pub fn upload_pieces<B: PinnedSource<u8>>(
        &self,
        source: B,
        pieces: &[(Range<usize>, DeviceSliceMut<'_, u8>)],
    ) -> Result<Transfer<B>, (TransferError<B>, usize)> {
        if let Err(error) = source.pinned_for().check_usable_by(&self.shared().core) {
            return Err((TransferError::new(error, source), 0));
        }
        let (start, len) = (source.start(), source.len());
        let source = ManuallyDrop::new(source); // leaked if the driver panics
        let mut last = None;
        for (number, (range, target)) in pieces.iter().enumerate() {
            assert!(range.end <= len && range.len() == target.len(), "{range:?}");
            // SAFETY: the range was checked to be inside the buffer.
            let first = unsafe { start.add(range.start) };
            let copy = upload_op(first, target.device_ptr(), range.len());
            // SAFETY: both sides hold that many bytes; the transfer owns the source until the fence of
            // the last copy has fired, when all earlier copies on the same stream are done too; the
            // target's ledger keeps the target.
            let submitted = self.submit(&[target.touch()], unsafe { enqueue(copy) });
            match (submitted, last.take()) {
                (Ok(fence), _) => last = Some(fence),
                // The earlier pieces are in flight.
                (Err(SubmitError::Refused(error)), Some(before)) => {
                    let source = ManuallyDrop::into_inner(source);
                    let transfer = self.in_flight(Ok(before), source);
                    let failure = match transfer.and_then(Transfer::wait) {
                        Ok(source) => TransferError::new(error, source),
                        Err(failure) => {
                            self.shared().core.keep_stray_error(failure.error);
                            TransferError { error, ..failure }
                        }
                    };
                    return Err((failure, number));
                }
                (refused, _) => {
                    let source = ManuallyDrop::into_inner(source);
                    let transfer = self.in_flight(refused, source);
                    return transfer.map_err(|failure| (failure, number));
                }
            }
        }
        let submitted = match last {
            Some(fence) => Ok(fence),
            None => self.submit(&[], |_, _| Ok(())),
        };
        let transfer = self.in_flight(submitted, ManuallyDrop::into_inner(source));
        transfer.map_err(|failure| (failure, 0))
    }
}
