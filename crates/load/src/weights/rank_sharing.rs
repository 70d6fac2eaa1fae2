//! How the ranks of one machine share the files that all of them load.

use super::{Io, LoadConfig};
use crate::{Catalog, Shard, TensorInfo};
use pinlane_core::internal::{available_bytes, cpus};

/// Share of the available memory that files may take in the page cache: the rest is for the program.
const AVAILABLE_SHARE: u64 = 2;

/// How a load shares its files with the other ranks of its machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[non_exhaustive]
pub enum RankSharing {
    /// The process is the only rank of its machine, as far as it knows.
    #[default]
    Alone,
    /// All ranks read through the page cache, and each begins at another place: the disk is read once.
    PageCache,
    /// The files do not fit into the memory that is available, so each rank reads for itself.
    NoRoom,
    /// Most of the bytes are rows of tensors, of which each rank has its own.
    OwnRows,
    /// [`Io::Direct`] was chosen, so each rank reads for itself.
    Direct,
}

impl LoadConfig {
    /// The rank of this process among those of its machine.
    pub(super) fn rank_of_machine(&self) -> Shard {
        let from_env = || Shard::local_from_env().unwrap_or_default();
        self.local_rank.unwrap_or_else(from_env)
    }

    /// How the ranks of this machine share these tensors.
    pub(super) fn rank_sharing(&self, catalog: &Catalog, tensors: &[TensorInfo]) -> RankSharing {
        if self.rank_of_machine() == Shard::whole() {
            return RankSharing::Alone;
        }
        let total_bytes = tensors.iter().map(TensorInfo::len_bytes).sum();
        let is_whole = |tensor: &&TensorInfo| {
            let whole = catalog.tensor(tensor.name());
            whole.is_ok_and(|whole| whole.len_bytes() == tensor.len_bytes())
        };
        let whole_bytes = tensors.iter().filter(is_whole).map(TensorInfo::len_bytes);
        choose(self.io, total_bytes, whole_bytes.sum(), available_bytes())
    }
}

fn choose(io: Io, total: u64, whole: u64, available: Option<u64>) -> RankSharing {
    match io {
        Io::Direct => RankSharing::Direct,
        _ if whole < total.div_ceil(2) => RankSharing::OwnRows,
        Io::Buffered => RankSharing::PageCache,
        Io::Auto if available.is_some_and(|bytes| total <= bytes / AVAILABLE_SHARE) => {
            RankSharing::PageCache
        }
        Io::Auto => RankSharing::NoRoom,
    }
}

/// The threads of one of several ranks that share the CPUs, if it would take `threads` alone.
pub(super) fn threads_of_rank(threads: usize, local_rank: Shard) -> usize {
    share_of(threads, cpus(), local_rank.world())
}

fn share_of(threads: usize, cpus: usize, world: usize) -> usize {
    match world {
        1 => threads,
        _ => threads.min(cpus / world).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_fit_go_through_the_page_cache() {
        for (io, total, whole, available, expected) in [
            (Io::Auto, 50, 50, Some(100), RankSharing::PageCache),
            (Io::Auto, 51, 51, Some(100), RankSharing::NoRoom),
            (Io::Auto, 1, 1, None, RankSharing::NoRoom),
            (Io::Auto, 0, 0, Some(0), RankSharing::PageCache),
            (Io::Auto, 50, 25, Some(100), RankSharing::PageCache),
            (Io::Auto, 50, 24, Some(100), RankSharing::OwnRows),
            (Io::Buffered, 51, 51, Some(1), RankSharing::PageCache),
            (Io::Buffered, 51, 0, Some(1), RankSharing::OwnRows),
            (Io::Direct, 1, 1, Some(100), RankSharing::Direct),
        ] {
            let chosen = choose(io, total, whole, available);
            assert_eq!(chosen, expected, "{io:?} {total} {whole} {available:?}");
        }
    }

    #[test]
    fn ranks_divide_the_cpus() {
        for (threads, cpus, world, expected) in
            [(8, 2, 1, 8), (8, 16, 4, 4), (3, 16, 4, 3), (8, 2, 4, 1)]
        {
            assert_eq!(share_of(threads, cpus, world), expected);
        }
    }
}
