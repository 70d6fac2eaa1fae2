//! Our verdict on a file, compared with the reference implementation's.

use pinlane::load::{Catalog, Dtype};
use pinlane_fuzz::compare_with_reference;

use super::support::{Scratch, SplitMix64, safetensors};

/// Small headers with small numbers: many are nearly valid.
#[test]
fn small_random_headers() {
    let (scratch, mut accepted) = (Scratch::new(), 0);
    let dtypes = [Dtype::U8, Dtype::F4, Dtype::F16, Dtype::F6E2M3];
    for seed in 0..6000 {
        let mut random = SplitMix64::new(seed);
        let mut at = 0;
        let entries: Vec<String> = (0..random.below(4))
            .map(|n| {
                let dtype = random.pick(&dtypes);
                let shape: Vec<u64> = (0..random.below(3)).map(|_| random.below(5)).collect();
                let bytes = shape.iter().product::<u64>() * dtype.bits() / 8;
                let nudge = |random: &mut SplitMix64| u64::from(random.below(12) == 0);
                let (start, end) = (at + nudge(&mut random), at + bytes + nudge(&mut random));
                at += bytes;
                let fields = format!("\"shape\":{shape:?},\"data_offsets\":[{start},{end}]");
                format!("\"{n}\":{{\"dtype\":\"{dtype}\",{fields}}}")
            })
            .collect();
        let mut order = entries;
        if random.below(2) == 0 {
            order.reverse();
        }
        let data = vec![0; (at + u64::from(random.below(12) == 0)) as usize];
        let file = safetensors(&format!("{{{}}}", order.join(",")), &data);
        let opened = Catalog::open(scratch.file("w.safetensors", &file));
        accepted += usize::from(opened.is_ok());
        compare_with_reference(&file, &opened);
    }
    assert!((1000..5000).contains(&accepted), "{accepted} accepted");
}
