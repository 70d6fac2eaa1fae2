//! Pipelines on simulated devices: every byte right whatever flows from where to where, overlap
//! that the clock shows, and what happens when something goes wrong.

mod budget;
mod bytes;
mod calls;
mod failures;
mod host_threads;
mod in_place;
mod jobs;
mod kinds;
mod large;
mod lengths;
mod mix;
mod odd;
mod overlap;
mod panics;
mod plan_is_best;
mod planned_pipeline;
mod predictions;
mod reuse;
mod rig;
mod seeds;
mod threads;
mod tuples;
