//! What is handed out, of which size, and when it is handed out again.

use std::collections::HashSet;

use pinlane::{Device, Error, PinnedPool, PinnedSource, PoolStats};
use pinlane_sim::Sim;

use super::support::{SLAB_BYTES, with_limit};

#[test]
fn a_block_is_reused_after_it_was_given_back_and_not_before() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let pool = PinnedPool::new(&device);
    let first = pool.take::<u32>(1000).unwrap();
    let second = pool.take::<u32>(1000).unwrap();
    let address = first.as_ptr();
    assert_ne!(address, second.as_ptr());
    drop(first);
    let again = pool.take::<f32>(990).unwrap();
    assert_eq!(
        again.as_ptr().cast(),
        address,
        "the warmest, whatever the elements"
    );
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses), (2, 1));
    assert_eq!(stats.in_use_bytes, 2 * 4096);
    assert_eq!(stats.high_water_bytes, 2 * 4096);
    assert_eq!(stats.in_use_bytes + stats.cached_bytes, SLAB_BYTES);
    assert_eq!(stats.pinned_bytes, SLAB_BYTES);
    assert_eq!(device.stats().pinned_bytes, SLAB_BYTES);
    drop((again, second, pool, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_block_in_flight_is_not_handed_out_and_afterwards_it_is() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(512 << 10).unwrap();
    let pool = PinnedPool::new(&device);
    let buffer = pool.take::<u8>(512 << 10).unwrap();
    let address = buffer.as_ptr();
    sim.hold();
    drop(stream.upload(buffer, &mut target).unwrap());
    let other = pool.take::<u8>(512 << 10).unwrap();
    assert_ne!(other.as_ptr(), address, "in flight");
    assert_eq!(pool.stats().misses, 2);
    sim.release();
    while !stream.is_idle().unwrap() {}
    assert_eq!(
        device.stats().parked,
        1,
        "landed, and nobody has looked yet"
    );
    let again = pool.take::<u8>(512 << 10).unwrap();
    assert_eq!(again.as_ptr(), address, "landed");
    assert_eq!((pool.stats().hits, pool.stats().misses), (1, 2));
    drop((other, again, pool, target, stream, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn a_pool_holds_no_device_open_and_a_parked_block_no_pool() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let mut target = device.alloc::<u8>(100).unwrap();
    let pool = PinnedPool::new(&device);
    drop(stream.upload(pool.take(100).unwrap(), &mut target).unwrap());
    drop(pool);
    drop((target, stream, device)); // the shutdown waits for what is parked
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn blocks_outlive_the_pool_and_the_device() {
    let sim = pinlane_testing::sim();
    let (device, budget) = with_limit(&sim, 1 << 30);
    let pool = PinnedPool::new(&device);
    let mut one = pool.take::<u64>(100).unwrap();
    let two = pool.take::<u64>(1 << 17).unwrap();
    drop((pool, device));
    one.fill(5);
    assert_eq!(one.iter().sum::<u64>(), 500);
    drop(one);
    assert!(budget.in_use_bytes() > 0);
    drop(two);
    assert_eq!(budget.in_use_bytes(), 0);
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn waste_is_bounded_for_every_size() {
    let sim = pinlane_testing::sim();
    let (device, _) = with_limit(&sim, 1 << 30);
    let pool = PinnedPool::new(&device);
    let mut bytes = 64;
    while bytes <= 16 << 20 {
        let buffer = pool.take::<u8>(bytes).unwrap();
        assert_eq!(buffer.len(), bytes);
        assert_eq!(buffer.as_ptr().addr() % 64, 0);
        let block = pool.stats().in_use_bytes;
        let waste = block - bytes as u64;
        // Below 512 bytes the blocks are whole cache lines.
        assert!(waste <= block / 8 || waste < 64, "{bytes} in {block}");
        drop(buffer);
        pool.trim(0);
        bytes += 1 + bytes / if cfg!(miri) { 2 } else { 29 };
    }
    drop((pool, device));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn elements_are_aligned_or_refused() {
    #[derive(Clone, Copy)]
    #[repr(C, align(1024))]
    struct Page([u8; 1024]);
    #[derive(Clone, Copy)]
    #[repr(C, align(8192))]
    struct TwoPages([u8; 8192]);
    // SAFETY: plain bytes without padding, any values of which are valid.
    unsafe impl bytemuck::Zeroable for Page {}
    // SAFETY: as above.
    unsafe impl pinlane::Pod for Page {}
    // SAFETY: as above.
    unsafe impl bytemuck::Zeroable for TwoPages {}
    // SAFETY: as above.
    unsafe impl pinlane::Pod for TwoPages {}

    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let pool = PinnedPool::new(&device);
    let blocks: Vec<_> = (1..20).map(|len| pool.take::<Page>(len).unwrap()).collect();
    for block in &blocks {
        assert_eq!(block.as_ptr().addr() % 1024, 0);
        assert_eq!(block[0].0.len(), 1024);
    }
    let refused = pool.take::<TwoPages>(1).map(|buffer| buffer[0].0[0]);
    assert_eq!(refused.unwrap_err(), Error::TooAligned { align: 8192 });
}

#[test]
fn nothing_costs_nothing() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let pool = PinnedPool::new(&device);
    let nothing = pool.take::<u64>(0).unwrap();
    assert!(nothing.is_empty());
    drop(nothing);
    assert_eq!(pool.stats(), PoolStats::default());
    assert!(matches!(
        pool.take::<u64>(usize::MAX / 4),
        Err(Error::TooLarge { .. })
    ));
}

#[test]
fn blocks_are_for_every_device() {
    let sim = Sim::builder()
        .profile(pinlane_testing::profile())
        .devices(2)
        .build();
    let one = Device::open(&sim, 0).unwrap();
    let two = Device::open(&sim, 1).unwrap();
    let stream = two.stream().unwrap();
    let mut target = two.alloc::<u8>(100).unwrap();
    let buffer = PinnedPool::new(&one).take::<u8>(100).unwrap();
    let buffer = stream.upload(buffer, &mut target).unwrap().wait().unwrap();
    drop((buffer, target, stream, one, two));
    pinlane_testing::assert_clean(&sim);
}

#[test]
fn pieces_go_through_scopes_and_parts() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let stream = device.stream().unwrap();
    let pool = PinnedPool::new(&device);
    let mut on_device = device.alloc::<u32>(10).unwrap();
    let mut source = pool.take::<u32>(100).unwrap();
    source.iter_mut().zip(0..).for_each(|(value, i)| *value = i);
    let part = stream.upload(source.part(20..30), &mut on_device).unwrap();
    let source = part.wait().unwrap().into_whole();
    let mut back = pool.take::<u32>(10).unwrap();
    device
        .scope(|scope| {
            scope.download(&stream, on_device.range(..5), back.range_mut(..5))?;
            scope.upload(&stream, source.range(..10), &mut on_device)?;
            Ok(())
        })
        .unwrap();
    assert_eq!(back[..5], [20, 21, 22, 23, 24]);
    drop((source, back, pool, on_device, stream, device));
    pinlane_testing::assert_clean(&sim);
}

/// Many threads, any sizes, a tight budget: no block is in two hands, and the books balance.

#[test]
fn blocks_of_one_slab_do_not_overlap() {
    let sim = pinlane_testing::sim();
    let device = pinlane_testing::open(&sim);
    let pool = PinnedPool::new(&device);
    let bytes = 200 << 10;
    let blocks: Vec<_> = (0..25).map(|_| pool.take::<u8>(bytes).unwrap()).collect();
    let mut starts: Vec<_> = blocks.iter().map(|block| block.start().addr()).collect();
    starts.sort_unstable();
    assert!(starts.windows(2).all(|pair| pair[0] + bytes <= pair[1]));
    assert_eq!(starts.iter().collect::<HashSet<_>>().len(), 25);
    for block in &blocks {
        let address = block.start().addr() as u64;
        let allocation = sim.allocation(address).expect("the driver knows it");
        let end = address + bytes as u64;
        assert!(end <= allocation.base + allocation.bytes, "all inside");
    }
}
