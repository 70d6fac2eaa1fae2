//! Pipelines on simulated devices: every byte right whatever flows from where to where, overlap
//! that the clock shows, and what happens when something goes wrong.

mod budget;
mod checked_job;
mod edge_cases;
mod failing_calls;
mod failing_user_code;
mod host_threads;
mod in_place;
mod input_and_output_kinds;
mod large;
mod mismatched_lengths;
mod mixing_kernel;
mod output_bytes;
mod overlap;
mod panics;
mod plan_is_best;
mod planned_pipeline;
mod predictions;
mod random_schedules_and_faults;
mod reuse;
mod rig;
mod threads;
mod tuples;
