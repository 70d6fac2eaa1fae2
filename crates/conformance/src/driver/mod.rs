//! What every implementation of [`Driver`](pinlane_driver::Driver) must do, by topic.

mod batch_copies;
mod callbacks;
mod convert_kernels;
mod copies;
mod default_stream;
mod device;
mod device_memory;
mod dot_kernels;
mod event_waits;
mod events;
mod kernel_launches;
mod mapped;
mod memset;
mod modules;
mod normalize_kernels;
mod pinned;
mod pointer_attributes;
mod registered;
mod registration_errors;
mod row_copies;
mod scatter_gather_kernels;
mod stream_ordered_memory;
mod streams;
mod threads;
mod timing;

use crate::Case;

/// All cases of the trait, by topic.
pub(crate) fn cases() -> Vec<Case> {
    [
        device::CASES,
        device_memory::CASES,
        stream_ordered_memory::CASES,
        pinned::CASES,
        registered::CASES,
        registration_errors::CASES,
        pointer_attributes::CASES,
        mapped::CASES,
        streams::CASES,
        default_stream::CASES,
        events::CASES,
        event_waits::CASES,
        timing::CASES,
        copies::CASES,
        row_copies::CASES,
        batch_copies::CASES,
        memset::CASES,
        callbacks::CASES,
        modules::CASES,
        kernel_launches::CASES,
        convert_kernels::CASES,
        normalize_kernels::CASES,
        scatter_gather_kernels::CASES,
        dot_kernels::CASES,
        threads::CASES,
    ]
    .concat()
}
