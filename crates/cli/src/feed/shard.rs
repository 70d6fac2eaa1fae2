//! Which part of the samples is for this process.

use pinlane::load::Shard;

use super::Args;
use crate::output::UsageError;

/// As the words say, or else a launcher.
pub(super) fn of(args: &Args) -> Result<Shard, UsageError> {
    match args.rank.zip(args.world) {
        Some((rank, world)) => Shard::new(rank, world)
            .map_err(|error| UsageError::new(format!("--rank {rank} --world {world}: {error}"))),
        None => {
            let found = Shard::from_env()
                .map_err(|error| UsageError::new(format!("{error}; or give --rank and --world")))?;
            Ok(found.unwrap_or_default())
        }
    }
}
