//! Types, ways and shards as people write them.

use pinlane::load::{self, Dtype, Glob};

use crate::{dtype, number};

/// Types of floating-point numbers that become each other.
pub(super) const FLOATS: [Dtype; 4] = [Dtype::Bf16, Dtype::F16, Dtype::F32, Dtype::F64];

/// One of them.
pub(super) fn float(text: &str) -> Result<Dtype, String> {
    dtype::one_of(text, &FLOATS)
}

/// Threads that read.
pub(super) fn threads(text: &str) -> Result<u32, String> {
    small(text, 256)
}

/// How often to load.
pub(super) fn repeat(text: &str) -> Result<u32, String> {
    small(text, 1000)
}

fn small(text: &str, at_most: u32) -> Result<u32, String> {
    let number = number::within(text, 1..=u64::from(at_most))?;
    Ok(u32::try_from(number).expect("at most one of 32 bits"))
}

/// How files are read.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Io {
    /// Through the page cache what is in it, past it what is not
    Auto,
    /// Through the page cache
    Buffered,
    /// Past the page cache
    Direct,
}

impl From<Io> for load::Io {
    fn from(io: Io) -> Self {
        match io {
            Io::Auto => Self::Auto,
            Io::Buffered => Self::Buffered,
            Io::Direct => Self::Direct,
        }
    }
}

/// One rank of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shard {
    pub(super) rank: u64,
    pub(super) world: u64,
}

/// The most ranks: more share no tensor.
const WORLD_MAX: u64 = 1 << 20;

pub(super) fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.trim().split_once('/');
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (rank, world) = parts
        .and_then(|(rank, world)| Some((number(rank)?, number(world)?)))
        .ok_or("write a rank and how many there are, such as 0/8 for the first of eight")?;
    if world == 0 || world > WORLD_MAX {
        return Err(format!("choose from 1 to {WORLD_MAX} ranks, such as 0/8"));
    }
    if rank >= world {
        let last = world - 1;
        return Err(format!(
            "there is no rank {rank} of {world}; ranks go from 0 to {last}"
        ));
    }
    Ok(Shard { rank, world })
}

/// A pattern that can be understood.
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
        assert_eq!(shard("0/1"), Ok(Shard { rank: 0, world: 1 }));
        assert_eq!(shard(" 7 / 8 "), Ok(Shard { rank: 7, world: 8 }));
        for (text, part) in [
            ("", "such as 0/8"),
            ("3", "such as 0/8"),
            ("1/2/3", "such as 0/8"),
            ("-1/2", "such as 0/8"),
            ("a/b", "such as 0/8"),
            ("3/2", "ranks go from 0 to 1"),
            ("2/2", "ranks go from 0 to 1"),
            ("0/0", "from 1 to"),
            ("0/1048577", "from 1 to"),
        ] {
            let error = shard(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
