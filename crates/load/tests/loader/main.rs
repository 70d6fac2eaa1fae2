//! The loader on simulated devices: every byte in the right order with any number of threads, and what
//! happens on errors.

mod awaiting;
mod budget;
mod bytes;
mod calls;
mod causes;
mod consumer;
mod device_transform;
mod dropped;
mod failures;
mod foreign_stream;
mod refusals;
mod restore;
mod seeds;
mod stats;
mod stuck;
mod support;
mod unwritten;
