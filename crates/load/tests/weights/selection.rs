//! Selections of tensors, rows, and shards.

use pinlane::load::{Dtype, LoadErrorKind, Selection, Weights};

use super::rig::{MODEL, Rig, config, expected, file, model};
use super::support::Scratch;

#[test]
fn names_and_patterns() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let wanted = Selection::new()
        .name("tail")
        .glob("h.*.w")
        .expect("a pattern");
    let some = weights.clone().select(&wanted).expect("they are there");
    let tensors = rig.load(&some, &config(2));
    let names: Vec<_> = tensors.iter().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["h.0.w", "h.1.w", "tail"]);
    let read: u64 = some.tensors().iter().map(|tensor| tensor.len_bytes()).sum();
    assert_eq!(tensors.stats().bytes(), read, "nothing else is read");
    let missing = weights.select(&Selection::new().name("h.9"));
    let fault = missing.expect_err("not there").kind().clone();
    assert_eq!(fault, LoadErrorKind::UnknownTensor);
    drop(tensors);
    rig.assert_clean();
}

#[test]
fn ranks_cover_all_rows_once() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    for (world, to) in [
        (1, None),
        (2, Some(Dtype::F32)),
        (3, None),
        (7, Some(Dtype::F16)),
    ] {
        let mut config = config(2);
        config.convert = to;
        let ranks: Vec<_> = (0..world)
            .map(|rank| {
                let shard = weights.clone().shard(rank, world).expect("rows");
                rig.load(&shard, &config)
            })
            .collect();
        for info in weights.tensors() {
            let (_, whole) = expected(&weights, info, to);
            let parts = ranks.iter().map(|rank| {
                let bytes = rank[info.name()].bytes();
                rig.stream.copy_to_vec(bytes).expect("the device is alive")
            });
            match info.shape() {
                [] => parts.for_each(|part| assert_eq!(part, whole)),
                _ => assert_eq!(parts.collect::<Vec<_>>().concat(), whole, "{}", info.name()),
            }
        }
    }
    let refused = weights
        .clone()
        .shard(3, 3)
        .expect_err("there is no such rank");
    assert_eq!(
        refused.kind(),
        &LoadErrorKind::InvalidRank { rank: 3, world: 3 }
    );
    rig.assert_clean();
}

/// Each gets its own memory, converted or not.
#[test]
fn the_same_rows_several_times() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let deep = weights.catalog().tensor("deep").expect("there").clone();
    let first = weights.catalog().tensor("h.0.w").expect("there").clone();
    let rows = |start, end| deep.rows(start..end).expect("rows");
    let mut wanted = vec![
        deep.clone(),
        rows(2, 9),
        rows(5, 11),
        rows(5, 5),
        first.clone(),
        deep.clone(),
        rows(0, 1),
        first,
        deep.clone(),
    ];
    // More than a slot holds if each were converted separately.
    wanted.extend(vec![deep.clone(); 12]);
    let weights = weights.only(wanted.clone());
    for to in [None, Some(Dtype::F16), Some(Dtype::F32), Some(Dtype::F64)] {
        for threads in [1, 3] {
            let mut config = config(threads);
            config.convert = to;
            let landing = weights.start(&rig.device, &config).expect("it starts");
            let tensors: Result<Vec<_>, _> = landing.collect();
            let tensors = tensors.unwrap_or_else(|error| panic!("{to:?}: {error}"));
            let mut shapes: Vec<_> = wanted.iter().map(|tensor| tensor.shape()).collect();
            let mut found: Vec<_> = tensors.iter().map(|tensor| tensor.shape()).collect();
            shapes.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, shapes);
            for tensor in &tensors {
                rig.check(&weights, tensor, &config);
            }
        }
    }
    rig.assert_clean();
}

#[test]
fn tensors_of_other_catalogs_are_refused() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let small = file(&scratch, "small.safetensors", &[("w", Dtype::F32, &[3])], 1);
    let two = Weights::open_all([small.clone(), model(&scratch)]).expect("good files");
    let large = file(
        &scratch,
        "large.safetensors",
        &[("w", Dtype::F16, &[9000])],
        1,
    );
    let large = Weights::open(large).expect("a good file");
    let one = Weights::open(&small).expect("a good file");
    let twin = file(&scratch, "twin.safetensors", &[("w", Dtype::F32, &[3])], 2);
    let twin = Weights::open(twin).expect("a good file");
    let foreign = [
        twin.catalog().tensor("w").expect("there").clone(), // another file with the same contents
        two.catalog().tensor("deep").expect("there").clone(), // a file number that does not exist
        large.catalog().tensor("w").expect("there").clone(), // another type and length
    ];
    for tensor in foreign {
        let name = tensor.name().to_owned();
        let only = one.clone().only(vec![tensor]);
        let config = config(1).convert(Dtype::F64);
        let refused = only
            .load(&rig.device, &config)
            .expect_err("of another catalog");
        assert_eq!(refused.kind(), &LoadErrorKind::OtherCatalog, "{refused}");
        assert_eq!(refused.tensor(), Some(name.as_str()));
    }
    assert_eq!(MODEL.len(), two.tensors().len() - 1);
    rig.assert_clean();
}

#[test]
fn a_selection_narrows_an_earlier_one() {
    let scratch = Scratch::new();
    let weights = Weights::open(model(&scratch)).expect("a good file");
    let pattern = |text| Selection::new().glob(text).expect("a pattern");
    let shapes = |weights: &Weights| -> Vec<Vec<u64>> {
        let tensors = weights.tensors().iter();
        tensors.map(|tensor| tensor.shape().to_vec()).collect()
    };
    let rows = weights.clone().shard(1, 10).expect("a rank");
    let some = rows.select(&pattern("h.*.w")).expect("they are there");
    assert_eq!(shapes(&some), [[7, 100], [10, 83]]);
    let one = some.select(&pattern("h.0.*")).expect("they are there");
    assert_eq!(shapes(&one), [[7, 100]]);
}
