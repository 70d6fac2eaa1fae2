//! Several ranks of one machine: every rank has every byte, and each begins at another place.

use pinlane::load::{Dtype, Io, LoadConfig, RankSharing, Shard, Tensors, Weights};

use super::rig::{MODEL, Rig, config, expected, model};
use super::support::Scratch;

fn ranks(world: usize) -> impl Iterator<Item = Shard> {
    (0..world).map(move |rank| Shard::new(rank, world).expect("below the world"))
}

fn load(rig: &Rig, weights: &Weights, config: &LoadConfig) -> Tensors {
    let tensors = rig.load(weights, config);
    assert_eq!(tensors.len(), weights.tensors().len());
    tensors
}

#[test]
fn every_rank_loads_every_byte_once_through_the_page_cache() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let total: u64 = weights.tensors().iter().map(|info| info.len_bytes()).sum();
    for world in [2, 3, 4, 16] {
        for rank in ranks(world) {
            for (threads, convert) in [(1, None), (3, None), (2, Some(Dtype::F32))] {
                let mut config = config(threads).local_rank(rank);
                config.convert = convert;
                let stats = *load(&rig, &weights, &config).stats();
                assert_eq!((stats.buffered_bytes, stats.direct_bytes), (total, 0));
                let expected = (rank, RankSharing::PageCache);
                assert_eq!((stats.local_rank, stats.sharing), expected);
            }
        }
    }
    rig.assert_clean();
}

#[test]
fn each_rank_completes_its_own_part_first() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let not_empty = |tensor: &pinlane::load::Tensor| tensor.info().len_bytes() > 0;
    let firsts = ranks(4).map(|rank| {
        let config = config(1).local_rank(rank);
        let stream = weights.start(&rig.device, &config).expect("it starts");
        let tensors: Vec<_> = stream.map(|tensor| tensor.expect("no fault")).collect();
        let first = tensors.iter().find(|tensor| not_empty(tensor));
        first.expect("there are tensors").name().to_owned()
    });
    let firsts: Vec<_> = firsts.collect();
    assert_eq!(firsts, ["odd", "h.0.b", "h.1.ids", "deep"]);
    rig.assert_clean();
}

#[test]
fn what_ranks_cannot_share_each_reads_for_itself() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let rank = Shard::new(1, 2).expect("one of two");
    let rows = ["h.0.w", "h.1.w", "deep"].map(|name| {
        let whole = weights.catalog().tensor(name).expect("there");
        whole.shard(1, 2).expect("it has rows")
    });
    let rows = weights.clone().only(rows.to_vec());
    let shared = config(2).local_rank(rank);
    let stats = *load(&rig, &rows, &shared).stats();
    assert_eq!(stats.sharing, RankSharing::OwnRows);
    let alone = config(2).local_rank(Shard::whole());
    let stats = *load(&rig, &weights, &alone).stats();
    assert_eq!(stats.sharing, RankSharing::Alone);
    // Where the file system has direct reads.
    if let Ok(tensors) = weights.load(&rig.device, &shared.io(Io::Direct)) {
        let stats = tensors.stats();
        assert_eq!(stats.sharing, RankSharing::Direct);
        assert_eq!(stats.buffered_bytes, 0);
    }
    rig.assert_clean();
}

#[test]
fn host_memory_gets_every_byte_too() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for rank in ranks(5) {
        let infos = weights.tensors().iter();
        let bytes: Vec<_> = infos.map(|info| expected(&weights, info, None).1).collect();
        let mut memory: Vec<_> = bytes.iter().map(|bytes| vec![0xee; bytes.len()]).collect();
        let mut targets: Vec<_> = memory.iter_mut().map(Vec::as_mut_slice).collect();
        let config = LoadConfig::default().local_rank(rank);
        weights
            .read_into(&config, &mut targets)
            .expect("good files");
        assert!(memory == bytes, "{rank}");
    }
    assert_eq!(weights.tensors().len(), MODEL.len());
}
