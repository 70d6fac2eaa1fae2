//! The express lane on simulated devices: every byte arrives, in order, for any size, number of lanes
//! and ring size; and failures are handled.

mod conversion;
mod copied_bytes;
mod copy_stream;
mod failures;
mod fork;
mod in_flight;
mod many_pieces;
mod no_pinned_memory;
mod panics;
mod partly_page_locked;
mod refusals;
mod ring_memory;
mod stream_order;
mod threads;
