//! Environment variables that set the budget.

use crate::parse_number::parse_size;
use crate::{Error, Result};

/// Sets the limit of the process.
const PINNED_LIMIT: &str = "PINLANE_PINNED_LIMIT";

/// Variables in which launchers put the number of processes on this machine, most reliable first: torchrun,
/// Open MPI, Intel MPI and MPICH, SLURM.
const LOCAL_WORLD_SIZES: [&str; 4] = [
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_NTASKS_PER_NODE",
];

/// More processes than any machine has GPUs and CPUs for. A larger value is a mistake.
const LOCAL_WORLD_SIZE_MAX: u64 = 4096;

/// The limit set in the environment; `u64::MAX` for `none`.
pub(super) fn pinned_limit(variable: impl Fn(&str) -> Option<String>) -> Result<Option<u64>> {
    let Some(value) = variable(PINNED_LIMIT).filter(|value| !value.trim().is_empty()) else {
        return Ok(None);
    };
    if value.trim().eq_ignore_ascii_case("none") {
        return Ok(Some(u64::MAX));
    }
    parse_size(&value).map(Some).map_err(|_| Error::BadSetting {
        variable: PINNED_LIMIT,
        value,
        expected: "a number of bytes, such as 1073741824, 512M or 3.5GiB, or none",
    })
}

/// Number of processes that share this machine; 1 if unknown.
pub fn local_world_size(variable: impl Fn(&str) -> Option<String>) -> u64 {
    let sane = |size: &u64| (1..=LOCAL_WORLD_SIZE_MAX).contains(size);
    LOCAL_WORLD_SIZES
        .iter()
        .filter_map(|name| variable(name)?.trim().parse().ok())
        .find(sane)
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_cannot_be_understood_is_an_error_with_the_name() {
        let limit = |value: &'static str| pinned_limit(move |_| Some(value.to_owned()));
        assert_eq!(limit(""), Ok(None));
        assert_eq!(limit("64K"), Ok(Some(65536)));
        assert_eq!(limit(" 1.5 mb "), Ok(Some(1_500_000)));
        assert_eq!(limit(" None"), Ok(Some(u64::MAX)));
        let error = limit("lots").unwrap_err().to_string();
        assert!(
            error.starts_with("invalid PINLANE_PINNED_LIMIT=\"lots\""),
            "{error}"
        );
        assert_eq!(pinned_limit(|_| None), Ok(None));
    }

    #[test]
    fn the_first_sane_world_size_counts() {
        let size = |set: &[(&str, &str)]| {
            local_world_size(|name| {
                let found = set.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(size(&[]), 1);
        assert_eq!(size(&[("LOCAL_WORLD_SIZE", "8")]), 8);
        assert_eq!(size(&[("SLURM_NTASKS_PER_NODE", " 4 ")]), 4);
        let both = [
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("MPI_LOCALNRANKS", "3"),
        ];
        assert_eq!(size(&both), 2);
        for insane in ["0", "-4", "many", "", "1000000"] {
            let set = [("LOCAL_WORLD_SIZE", insane), ("MPI_LOCALNRANKS", "3")];
            assert_eq!(size(&set), 3, "{insane:?}");
        }
    }
}
