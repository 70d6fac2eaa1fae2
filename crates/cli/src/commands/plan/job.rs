//! The job that the words describe.

use pinlane_model::pipeline::{Job, KernelTime, Memory, PlanError};
use pinlane_model::search::Limits;
use pinlane_model::{Direction, HostKind, Profile};

use super::words::Args;
use crate::duration::LONGEST_NS;
use crate::output::UsageError;

const GIB: u128 = 1 << 30;
const NS_PER_S: u128 = 1_000_000_000;

/// The job.
pub(super) fn job(args: &Args) -> Result<Job, UsageError> {
    let bytes_in = args.bytes_in as u64;
    let kernel = KernelTime {
        fixed_ns: 0,
        ns_per_gib: ns_per_gib(args, bytes_in)?,
    };
    let too_long = || {
        let flag = kernel_flag(args);
        UsageError::new(format!(
            "{flag}: the kernel takes more than 1000 hours in all; make it faster or --in smaller"
        ))
    };
    match kernel.ns(bytes_in) {
        Ok(ns) if ns <= LONGEST_NS => {}
        _ => return Err(too_long()),
    }
    Ok(Job {
        bytes_in,
        bytes_out: args.bytes_out as u64,
        kernel,
        input: args.input.into(),
        output: args.output.into(),
        host_ns_per_chunk: 0,
    })
}

fn ns_per_gib(args: &Args, bytes_in: u64) -> Result<u64, UsageError> {
    let ns_per_gib = match (args.kernel, args.kernel_rate) {
        // Rounded up, so that all of the input takes no less than was said.
        (Some(ns), _) => (u128::from(ns) * GIB).div_ceil(u128::from(bytes_in.max(1))),
        (None, Some(bytes_per_s)) => GIB * NS_PER_S / u128::from(bytes_per_s.max(1)),
        (None, None) => 0,
    };
    u64::try_from(ns_per_gib).map_err(|_| {
        let flag = kernel_flag(args);
        UsageError::new(format!(
            "{flag}: too slow for so few bytes; choose a faster kernel or a larger --in"
        ))
    })
}

fn kernel_flag(args: &Args) -> &'static str {
    match args.kernel {
        Some(_) => "--kernel",
        None => "--kernel-rate",
    }
}

/// What a plan may use.
pub(super) fn limits(args: &Args, profile: &Profile) -> Limits {
    let or = |given: Option<usize>, otherwise| given.map_or(otherwise, |bytes| bytes as u64);
    Limits {
        device_bytes: or(args.device_memory, profile.device.memory_bytes),
        pinned_bytes: or(args.pinned_memory, u64::MAX),
        ..Limits::default()
    }
}

/// Refuses a time that is too long to be counted, with the flags that make it so.
pub(super) fn check_time(ns: u64, flags: &str) -> Result<(), UsageError> {
    match ns {
        u64::MAX => Err(UsageError::new(format!(
            "{flags}: the job takes longer than can be counted"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a profile on which the job's copies cost nothing: there is nothing to overlap.
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

/// The model's refusal with the flag that it is about.
pub(super) fn refusal(error: &PlanError, args: &Args) -> UsageError {
    let PlanError::Invalid { field, reason } = error else {
        return UsageError::new(format!(
            "--in, --out, --profile: no schedule can be computed: {error}"
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
            "--in, --out: the profile's device memory"
        }
        "device_bytes" => "--device-memory",
        "pinned_bytes" => "--pinned-memory",
        other => other,
    };
    let remedy = match *field {
        "input" | "output" => "; choose pinned or pageable, or another --profile",
        _ => "",
    };
    UsageError::new(format!("{flag}: {reason}{remedy}"))
}
