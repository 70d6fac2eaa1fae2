//! Uploads of one pinned buffer to several places on the device.

use std::mem::ManuallyDrop;
use std::ops::Range;

use pinlane_driver::{CopyOp, Place};

use crate::memory::{DeviceSliceMut, PinnedSource};
use crate::stream::SubmitError;
use crate::transfer::{copy_unless_empty, host_ptr};
use crate::{Error, Stream, Transfer, TransferError};

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
            let copy = CopyOp {
                // SAFETY: the range was checked to be inside the buffer.
                source: Place::Host(host_ptr(unsafe { start.add(range.start) })),
                target: Place::Device(target.device_ptr()),
                bytes: range.len(),
            };
            let submitted = self.submit(&[target.touch()], |driver, stream| {
                // SAFETY: both sides hold that many bytes; the transfer owns the source until the fence of
                // the last copy has fired, when all earlier copies on the same stream are done too; the
                // target's ledger keeps the target.
                unsafe { copy_unless_empty(driver, copy, stream) }
            });
            match (submitted, last.take()) {
                (Ok(fence), _) => last = Some(fence),
                // The earlier pieces are in flight.
                (Err(SubmitError::Refused(error)), Some(before)) => {
                    let source = ManuallyDrop::into_inner(source);
                    let transfer = self.in_flight(Ok(before), source);
                    let failure = match transfer.and_then(Transfer::wait) {
                        Ok(source) => TransferError::new(error, source),
                        Err(failure) => {
                            if let Error::Driver(other) = failure.error {
                                self.shared().core.keep_stray(other);
                            }
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
