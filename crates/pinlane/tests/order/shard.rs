//! Ranks, given and found.

use pinlane::load::{OrderError, Shard};

/// The shard that these variables give.
fn from(vars: &[(&str, &str)]) -> Result<Option<Shard>, OrderError> {
    Shard::from_vars(|name| {
        let found = vars.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn shard(rank: usize, world: usize) -> Shard {
    Shard::new(rank, world).expect("a rank")
}

#[test]
fn ranks_are_less_than_the_world() {
    assert_eq!(Shard::new(0, 0), Err(OrderError::WorldZero));
    let outside = OrderError::RankOutsideWorld { rank: 4, world: 4 };
    assert_eq!(Shard::new(4, 4), Err(outside));
    assert_eq!((shard(3, 4).rank(), shard(3, 4).world()), (3, 4));
    assert_eq!(Shard::whole(), shard(0, 1));
    assert_eq!(Shard::default(), Shard::whole());
}

#[test]
fn every_launcher_is_known_in_this_order() {
    let launchers = [
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ];
    let ranks = ["0", "1", "2", "3"];
    let vars: Vec<(&str, &str)> = launchers
        .iter()
        .zip(ranks)
        .flat_map(|((rank, world), value)| [(*rank, value), (*world, "4")])
        .collect();
    for first in 0..4 {
        assert_eq!(from(&vars[2 * first..]), Ok(Some(shard(first, 4))));
        assert_eq!(from(&vars[2 * first..][..2]), Ok(Some(shard(first, 4))));
    }
    assert_eq!(from(&[]), Ok(None));
    assert_eq!(from(&[("LOCAL_RANK", "1")]), Ok(None));
}

#[test]
fn half_set_variables_name_the_other() {
    let missing = |missing, set| Err(OrderError::MissingVariable { missing, set });
    assert_eq!(from(&[("RANK", "0")]), missing("WORLD_SIZE", "RANK"));
    assert_eq!(from(&[("WORLD_SIZE", "2")]), missing("RANK", "WORLD_SIZE"));
    let under_slurm = [("RANK", "0"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")];
    assert_eq!(from(&under_slurm), missing("WORLD_SIZE", "RANK"));
    assert_eq!(from(&[("PMI_SIZE", "2")]), missing("PMI_RANK", "PMI_SIZE"));
}

#[test]
fn nonsense_names_the_variable() {
    let bad = |rank: &str, world: &str| {
        let error = from(&[("PMI_RANK", rank), ("PMI_SIZE", world)]).expect_err("nonsense");
        let words = error.to_string();
        match error {
            OrderError::BadVariable {
                variable, value, ..
            } => {
                assert!(words.contains(variable) && words.contains(&format!("{value:?}")));
                (variable, value)
            }
            other => panic!("{other}"),
        }
    };
    for value in [
        "",
        " 1",
        "-1",
        "+1",
        "one",
        "1.0",
        "99999999999999999999",
        "4",
        "5",
    ] {
        assert_eq!(bad(value, "4"), ("PMI_RANK", value.to_owned()));
    }
    for value in ["", "0", "-4", "four", "\u{fffd}"] {
        assert_eq!(bad("0", value), ("PMI_SIZE", value.to_owned()));
    }
}
