//! Datasets through the loader on simulated devices: every byte right in the right order, whatever
//! number of threads, and what happens when something goes wrong.

mod budget;
mod bytes;
mod calls;
mod causes;
mod consumer;
mod dropped;
mod failures;
mod finish;
mod refusals;
mod restore;
mod seeds;
mod stats;
mod stuck;
mod support;
mod unwritten;
