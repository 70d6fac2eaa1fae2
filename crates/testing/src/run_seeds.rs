//! Random jobs under adversarial schedules and injected faults, one seed after the other.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pinlane::model::SplitMix64;
use pinlane::sim::{FaultKind, Faults, Sim, SimBuilder};
use pinlane::{Device, Error};

/// A working device must succeed within this many attempts.
const ATTEMPTS: usize = 60;

/// Outcomes over all seeds.
#[derive(Default)]
pub struct Tally {
    right: u64,
    failed: u64,
    dead: u64,
    faults: BTreeMap<FaultKind, u64>,
}

/// A third of the seeds meets no fault, a third those that a device survives, the rest all. The rates, per
/// thousand calls: of the survivable faults, of all faults, and there of losing the device.
pub type FaultRates = [u16; 3];

fn random_faults([survivable, any, lost]: FaultRates, random: &mut SplitMix64) -> Faults {
    match random.index(3) {
        0 => Faults::none(),
        1 => Faults::all(survivable)
            .with(FaultKind::LateError, 0)
            .with(FaultKind::LostDevice, 0)
            .with(FaultKind::StuckCompletion, 0),
        _ => Faults::all(any).with(FaultKind::LostDevice, lost),
    }
}

/// Runs `live` for every seed, on a device with a schedule and faults of the seed's choice. It returns whether
/// the device survived. Afterwards nothing is left, and nothing was misused. Names the seed that fails.
pub fn run_seeds(
    seeds: u64,
    rates: FaultRates,
    builder: fn() -> SimBuilder,
    live: impl Fn(&Sim, &Device, &mut SplitMix64, &mut Tally) -> bool + Clone + Send + 'static,
) {
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let live = live.clone();
        tally = crate::sim::must_return(move || {
            let run = || tally.run_seed(seed, rates, builder, live);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                eprintln!("seed {seed} fails");
                resume_unwind(panic);
            }
            tally
        });
    }
    let Tally {
        right,
        failed,
        dead,
        faults,
    } = tally;
    println!("{right} jobs right, {failed} failed, {dead} devices died, {faults:?}");
    if cfg!(miri) {
        return;
    }
    assert!(right > seeds, "only {right} jobs gave bytes to compare");
    assert!(failed > seeds / 10, "only {failed} jobs failed");
    for kind in FaultKind::ALL {
        // Rare here: only large memory is registered.
        let struck = faults.contains_key(&kind) || kind == FaultKind::RefusedRegistration;
        assert!(struck, "{kind:?} never struck");
    }
}

impl Tally {
    fn run_seed(
        &mut self,
        seed: u64,
        rates: FaultRates,
        builder: fn() -> SimBuilder,
        live: impl Fn(&Sim, &Device, &mut SplitMix64, &mut Self) -> bool,
    ) {
        let mut random = SplitMix64::new(seed);
        let sim = builder()
            .seed(random.next_u64())
            .faults(random_faults(rates, &mut random))
            .record_timeline(false)
            .idle_progress(false)
            .build();
        let lived = make(|| Device::open(&sim, 0)).is_some_and(|device| {
            let lived = live(&sim, &device, &mut random, self);
            // Twice: the first may hit an injected fault.
            let _ = device.synchronize();
            let _ = device.synchronize();
            crate::sim::assert_empty(&device);
            lived
        });
        self.dead += u64::from(!lived);
        crate::sim::assert_clean(&sim);
        for (kind, count) in sim.faults_hit() {
            *self.faults.entry(kind).or_default() += count;
        }
    }

    /// Repeats a job until it succeeds; it may fail only where a fault struck. Returns whether the device
    /// survived.
    pub fn attempt(
        &mut self,
        sim: &Sim,
        job: &dyn Debug,
        attempt: impl Fn() -> pinlane::Result<()>,
    ) -> bool {
        for _ in 0..ATTEMPTS {
            let before = sim.faults_hit();
            let Err(error) = attempt() else {
                self.right += 1;
                return true;
            };
            self.failed += 1;
            if is_fatal(&error) {
                return false;
            }
            let hit = sim.faults_hit();
            assert_ne!(hit, before, "{job:?}: {error}, with no fault");
        }
        panic!("{job:?}: {ATTEMPTS} attempts failed");
    }
}

/// Retries until it works. `None` if the device is dead.
pub fn make<T>(make: impl Fn() -> pinlane::Result<T>) -> Option<T> {
    for _ in 0..ATTEMPTS {
        match make() {
            Ok(made) => return Some(made),
            Err(error) if is_fatal(&error) => return None,
            Err(_) => {}
        }
    }
    panic!("refused {ATTEMPTS} times");
}

/// Whether the error means that the device is dead.
fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Driver(error) if error.is_fatal())
}
