//! Environment variables that set the budget.

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
    parse_bytes(&value).map(Some).ok_or(Error::BadSetting {
        variable: PINNED_LIMIT,
        value,
        expected: "a number of bytes, such as 1073741824, 512M or 8GiB, or none",
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

fn parse_bytes(value: &str) -> Option<u64> {
    let value = value.trim().to_ascii_lowercase();
    if value == "none" {
        return Some(u64::MAX);
    }
    let digits = value.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = value.split_at(digits.unwrap_or(value.len()));
    let unit: u64 = match unit.trim_start() {
        "" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let read = [
            ("0", 0),
            ("4096", 4096),
            ("3K", 3 << 10),
            ("3KiB", 3 << 10),
            ("512m", 512 << 20),
            (" 8 GiB ", 8 << 30),
            ("8G", 8 << 30),
            ("2T", 2 << 40),
            ("none", u64::MAX),
            ("NONE", u64::MAX),
        ];
        for (value, bytes) in read {
            assert_eq!(parse_bytes(value), Some(bytes), "{value:?}");
        }
        for garbage in [
            "-1",
            "1.5G",
            "G",
            "8GB!",
            "99999999999999999999",
            "16777216T",
            "0x10",
        ] {
            assert_eq!(parse_bytes(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn a_limit_that_cannot_be_understood_is_an_error_with_the_name() {
        let limit = |value: &'static str| pinned_limit(move |_| Some(value.to_owned()));
        assert_eq!(limit(""), Ok(None));
        assert_eq!(limit("64K"), Ok(Some(65536)));
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
