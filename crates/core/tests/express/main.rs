//! The express lane on simulated devices: every byte right, in order, whatever the sizes, the
//! number of lanes and the size of the ring; and what happens when something goes wrong.

mod aside;
mod bytes;
mod convert;
mod failures;
mod fork;
mod in_flight;
mod locked_in_part;
mod many;
mod no_pinned;
mod order;
mod panics;
mod refusals;
mod ring_memory;
mod threads;
