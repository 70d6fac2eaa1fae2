//! The job that the flags describe, and errors that name the flags.

use pinlane_model::pipeline::{Job, KernelTime, Memory, PlanError};
use pinlane_model::search::Limits;
use pinlane_model::{Direction, HostKind, Profile};

use super::args::Args;
use crate::output::UsageError;
use crate::parse::duration::DURATION_NS_MAX;

const GIB: u128 = 1 << 30;
const NS_PER_S: u128 = 1_000_000_000;

pub(super) fn job(args: &Args) -> Result<Job, UsageError> {
    let bytes_in = args.bytes_in as u64;
    let kernel = KernelTime {
        fixed_ns: 0,
        ns_per_gib: ns_per_gib(args, bytes_in)?,
    };
    if !kernel.ns(bytes_in).is_ok_and(|ns| ns <= DURATION_NS_MAX) {
        let flag = kernel_flag(args);
        return Err(UsageError::new(format!(
            "{flag}: the kernel takes more than 1000 hours in total; use a faster one or a smaller --in"
        )));
    }
    Ok(Job {
        bytes_in,
        bytes_out: args.bytes_out as u64,
        kernel,
        input: args.input,
        output: args.output,
        host_ns_per_chunk: 0,
    })
}

fn ns_per_gib(args: &Args, bytes_in: u64) -> Result<u64, UsageError> {
    let ns_per_gib = match (args.kernel, args.kernel_rate) {
        // Rounded up, so that the whole input takes no less than given.
        (Some(ns), _) => (u128::from(ns) * GIB).div_ceil(u128::from(bytes_in.max(1))),
        (None, Some(bytes_per_s)) => GIB * NS_PER_S / u128::from(bytes_per_s.max(1)),
        (None, None) => 0,
    };
    u64::try_from(ns_per_gib).map_err(|_| {
        let flag = kernel_flag(args);
        UsageError::new(format!(
            "{flag}: too slow for this few bytes; use a faster kernel or a larger --in"
        ))
    })
}

fn kernel_flag(args: &Args) -> &'static str {
    match args.kernel {
        Some(_) => "--kernel",
        None => "--kernel-rate",
    }
}

/// The limits of a plan.
pub(super) fn limits(args: &Args, profile: &Profile) -> Limits {
    let or = |given: Option<usize>, otherwise| given.map_or(otherwise, |bytes| bytes as u64);
    Limits {
        device_bytes: or(args.device_memory, profile.device.memory_bytes),
        pinned_bytes: or(args.pinned_memory, u64::MAX),
        ..Limits::default()
    }
}

/// Fails if the time is too long to represent. `flags` are the cause.
pub(super) fn check_time(ns: u64, flags: &str) -> Result<(), UsageError> {
    match ns {
        u64::MAX => Err(UsageError::new(format!(
            "{flags}: the job takes too long to represent"
        ))),
        _ => Ok(()),
    }
}

/// Fails if the job's copies take no time on the profile: there is nothing to overlap.
pub(super) fn check_profile(job: &Job, profile: &Profile) -> Result<(), UsageError> {
    let ends = [
        (Direction::HostToDevice, job.input, job.bytes_in),
        (Direction::DeviceToHost, job.output, job.bytes_out),
    ];
    let copies = ends.into_iter().filter_map(|(direction, memory, bytes)| {
        let kind = match memory {
            Memory::Device => return None,
            Memory::Pageable => HostKind::Pageable,
            Memory::Pinned | Memory::Express => HostKind::Pinned,
        };
        (bytes > 0).then(|| profile.copy_ns(direction, kind, bytes))
    });
    if copies.clone().count() > 0 && copies.clone().all(|ns| ns == 0) {
        return Err(UsageError::new(format!(
            "--profile {}: copies take no time on it, so there is nothing to plan",
            profile.name
        )));
    }
    Ok(())
}

/// The model's error, with the flag that caused it.
pub(super) fn refusal(error: &PlanError, args: &Args) -> UsageError {
    let PlanError::Invalid { field, reason } = error else {
        return UsageError::new(format!(
            "--in, --out, --profile: cannot compute a schedule: {error}"
        ));
    };
    let flag = match *field {
        "bytes_in" => "--in",
        "bytes_out" => "--out",
        "kernel" => kernel_flag(args),
        "input" => "--input",
        "output" => "--output",
        "chunk_bytes" => "--chunk",
        "streams" | "streams_at_most" => "--streams",
        "device_bytes" if args.device_memory.is_none() => {
            "--in, --out: device memory of the profile"
        }
        "device_bytes" => "--device-memory",
        "pinned_bytes" => "--pinned-memory",
        other => other,
    };
    let remedy = match *field {
        "input" | "output" => "; use pinned or pageable, or another --profile",
        _ => "",
    };
    UsageError::new(format!("{flag}: {reason}{remedy}"))
}
