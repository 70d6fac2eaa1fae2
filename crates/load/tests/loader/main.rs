//! The loader on simulated devices: every byte in the right order with any number of threads, and what
//! happens on errors.

mod awaiting;
mod batch_contents;
mod budget;
mod causes;
mod consumer;
mod device_transform;
mod dropped;
mod failing_calls;
mod foreign_stream;
mod random_schedules_and_faults;
mod refusals;
mod restore;
mod stats;
mod stuck;
mod support;
mod unreadable_samples;
mod unwritten;
