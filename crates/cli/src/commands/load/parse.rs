//! Values of the flags.

use pinlane::load::{Dtype, Glob, Shard};

use crate::parse::{dtype, number};

/// Floating-point types that can be converted to each other.
pub(super) const FLOATS: [Dtype; 4] = [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::F64];

/// The most ranks. No tensor has this many rows to share.
const WORLD_MAX: usize = 1 << 20;

pub(super) fn float(text: &str) -> Result<Dtype, String> {
    dtype::one_of(text, &FLOATS)
}

pub(super) fn threads(text: &str) -> Result<usize, String> {
    number::within(text, 1..=256).and_then(number::to_usize)
}

pub(super) fn repeat(text: &str) -> Result<u64, String> {
    number::within(text, 1..=1000)
}

pub(super) fn shard(text: &str) -> Result<Shard, String> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let (rank, world) = text
        .split_once('/')
        .and_then(|(rank, world)| Some((number(rank)?, number(world)?)))
        .ok_or("must be a rank and the number of ranks, such as 0/8 for the first of eight")?;
    if world == 0 || world > WORLD_MAX {
        return Err(format!("must have 1 to {WORLD_MAX} ranks, such as 0/8"));
    }
    Shard::new(rank, world)
        .map_err(|_| format!("rank {rank} of {world} must be from 0 to {}", world - 1))
}

pub(super) fn pattern(text: &str) -> Result<String, String> {
    match Glob::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards() {
        let parsed = |text| shard(text).map(|shard| (shard.rank(), shard.world()));
        assert_eq!(parsed("0/1"), Ok((0, 1)));
        assert_eq!(parsed(" 7 / 8 "), Ok((7, 8)));
        for (text, part) in [
            ("", "such as 0/8"),
            ("3", "such as 0/8"),
            ("1/2/3", "such as 0/8"),
            ("-1/2", "such as 0/8"),
            ("a/b", "such as 0/8"),
            ("3/2", "from 0 to 1"),
            ("2/2", "from 0 to 1"),
            ("0/0", "1 to 1048576"),
            ("0/1048577", "1 to 1048576"),
        ] {
            let error = shard(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
