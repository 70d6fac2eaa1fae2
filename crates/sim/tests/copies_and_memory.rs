//! Copies of every kind, pageable memory, device memory, mapped memory and kernels.

mod common;

use common::{bytes_at, fill, plain, rig, seeded};
use pinlane_driver::{
    Copy2d, CopyOp, DevicePtr, ErrorKind, HostFlags, HostPtr, KernelArg, LaunchShape, ParamKind,
    Place, PointerKind, RegisterFlags,
};
use pinlane_kernels::Kernel;
use pinlane_sim::{FindingKind, Sim};

const BYTES: usize = 4096;
const PTX: &str = ".version 8.0\n.target sm_70\n// .entry commented_out()\n\
    .visible .entry pinlane_add_u32(.param .u64 n) { ret; }\n\
    .visible .entry pinlane_copy_u8() { ret; }\n\
    .visible .entry doubled() { ret; }\n.visible .entry orphan() { ret; }\n";

fn host(bytes: &mut [u8]) -> HostPtr {
    HostPtr::new(bytes.as_mut_ptr()).unwrap()
}

#[test]
fn an_async_copy_from_pageable_memory_reads_during_the_call() {
    let rig = plain();
    let stream = rig.stream();
    let mut source = vec![5_u8; BYTES];
    let device = rig.device(BYTES);
    let start_ns = rig.sim.now_ns();
    rig.upload(host(&mut source), device, BYTES, stream)
        .unwrap();
    // Submission, then staging at 6 GB/s in the calling thread.
    assert_eq!(rig.sim.now_ns() - start_ns, 2_000 + 4_000 + 682);
    source.fill(6);
    assert_eq!(rig.device_bytes(device, BYTES), [5; BYTES]);
    assert!(rig.sim.findings().is_empty());
}

#[test]
fn an_async_copy_to_pageable_memory_blocks_until_done() {
    for seed in common::seeds(20) {
        let rig = seeded(seed);
        let stream = rig.stream();
        let device = rig.device(BYTES);
        // SAFETY: device memory that nothing else uses.
        unsafe { rig.driver.memset_async(device, 3, BYTES, stream).unwrap() };
        let mut target = vec![0_u8; BYTES];
        rig.download(device, host(&mut target), BYTES, stream)
            .unwrap();
        assert_eq!(target, [3; BYTES], "seed {seed}");
    }
}

#[test]
fn two_dimensional_copies_move_rows_only() {
    for seed in common::seeds(20) {
        let rig = seeded(seed);
        let stream = rig.stream();
        let source = rig.pinned(64);
        fill(source, 64, 1);
        let device = rig.device(64);
        // SAFETY: device memory that nothing else uses.
        unsafe { rig.driver.memset_async(device, 9, 64, stream).unwrap() };
        let copy = Copy2d {
            target: Place::Device(device),
            target_pitch_bytes: 16,
            source: Place::Host(source),
            source_pitch_bytes: 12,
            row_bytes: 10,
            rows: 4,
        };
        // SAFETY: all rows are inside both ranges, which live until the copy is done.
        unsafe { rig.driver.copy_2d_async(copy, stream).unwrap() };
        rig.driver.stream_synchronize(stream).unwrap();
        let bytes = rig.device_bytes(device, 64);
        for (row, bytes) in bytes.chunks(16).enumerate() {
            assert_eq!(bytes[..10], [1; 10], "row {row}, seed {seed}");
            assert_eq!(bytes[10..], [9; 6], "row {row}, seed {seed}");
        }
    }
}

#[test]
fn a_batch_is_one_operation() {
    let rig = plain();
    let stream = rig.stream();
    let (source, device) = (rig.pinned(BYTES), rig.device(BYTES));
    fill(source, BYTES, 4);
    let copies: Vec<_> = (0..8)
        .map(|i| CopyOp {
            target: Place::Device(device.offset(i * 512)),
            source: Place::Host(source),
            bytes: 256,
        })
        .collect();
    // SAFETY: all pieces are inside both ranges, which live until the copy is done.
    unsafe { rig.driver.copy_batch(&copies, stream).unwrap() };
    rig.driver.stream_synchronize(stream).unwrap();
    assert_eq!(rig.sim.timeline().len(), 1);
    assert_eq!(rig.sim.timeline()[0].bytes, 8 * 256);
    assert_eq!(rig.device_bytes(device.offset(7 * 512), 256), [4; 256]);
}

#[test]
fn copies_inside_the_device_cross_storage_chunks() {
    let rig = plain();
    let bytes = 3 << 20;
    let (a, b) = (rig.device(bytes), rig.device(bytes));
    let stream = rig.driver.default_stream();
    let copy = CopyOp {
        target: Place::Device(b.offset(77)),
        source: Place::Device(a.offset(500_000)),
        bytes: 2 << 20,
    };
    // SAFETY: device memory that nothing else uses.
    unsafe {
        rig.driver.memset_async(a, 8, bytes, stream).unwrap();
        rig.driver.copy_async(copy, stream).unwrap();
    }
    let found = rig.device_bytes(b, bytes);
    assert!(found[77..77 + (2 << 20)] == vec![8; 2 << 20]);
    assert_eq!(found[..77], [0xcb; 77], "memory that was never written");
    assert_eq!(found[77 + (2 << 20)], 0xcb);
}

#[test]
fn device_memory_is_limited_by_the_profile_and_costs_nothing_until_used() {
    let rig = rig(Sim::builder().profile(common::profile("h200")));
    let all = rig.driver.memory_info().unwrap();
    assert_eq!(all.free_bytes, all.total_bytes);
    let big = rig.device(100 << 30);
    let left = rig.driver.memory_info().unwrap().free_bytes;
    assert_eq!(left, all.total_bytes - (100 << 30));
    let error = rig.driver.device_alloc(100 << 30).unwrap_err();
    assert_eq!(error.kind, ErrorKind::OutOfMemory);
    let stream = rig.driver.default_stream();
    // SAFETY: the last byte of the block, which nothing else uses.
    unsafe {
        rig.driver
            .memset_async(big.offset((100 << 30) - 1), 1, 1, stream)
            .unwrap()
    };
    assert_eq!(rig.device_bytes(big.offset((100 << 30) - 2), 2), [0xcb, 1]);
    rig.device_free(big).unwrap();
    assert_eq!(rig.driver.memory_info().unwrap(), all);
    assert_eq!(
        rig.driver.device_alloc(0).unwrap_err().kind,
        ErrorKind::InvalidValue
    );
}

#[test]
fn pointer_kinds_are_distinguished() {
    let rig = plain();
    let (pinned, device) = (rig.pinned(BYTES), rig.device(BYTES));
    let mut vector = vec![0_u8; BYTES];
    let ordinary = host(&mut vector);
    let kind = |address: u64| rig.driver.pointer_kind(address).unwrap();
    assert_eq!(kind(pinned.addr().get() as u64 + 9), PointerKind::Pinned);
    assert_eq!(
        kind(pinned.addr().get() as u64 + BYTES as u64),
        PointerKind::Pageable
    );
    assert_eq!(kind(device.0 + BYTES as u64 - 1), PointerKind::Device);
    let address = ordinary.addr().get() as u64;
    assert_eq!(kind(address), PointerKind::Pageable);
    // SAFETY: the vector stays until it is unregistered.
    unsafe {
        rig.driver
            .host_register(ordinary, BYTES, RegisterFlags::default())
            .unwrap()
    };
    assert_eq!(kind(address + 5), PointerKind::Registered);
    assert_eq!(rig.sim.allocation(address + 5).unwrap().base, address);
    // SAFETY: nothing uses it.
    unsafe { rig.driver.host_unregister(ordinary).unwrap() };
    assert_eq!(kind(address), PointerKind::Pageable);
}

#[test]
fn registration_refuses_overlapping_and_empty_ranges() {
    let rig = plain();
    let mut vector = vec![0_u8; 3 * BYTES];
    let base = host(&mut vector);
    let at = |offset: usize| base.with_addr(base.addr().checked_add(offset).unwrap());
    let register = |offset, bytes| {
        // SAFETY: parts of the vector, which outlives the machine.
        unsafe {
            rig.driver
                .host_register(at(offset), bytes, RegisterFlags::default())
        }
    };
    register(BYTES, BYTES).unwrap();
    for (offset, bytes) in [
        (BYTES, BYTES),
        (0, BYTES + 1),
        (0, 3 * BYTES),
        (2 * BYTES - 1, 8),
    ] {
        let error = register(offset, bytes).unwrap_err();
        assert_eq!(error.kind, ErrorKind::AlreadyRegistered);
    }
    assert_eq!(register(0, 0).unwrap_err().kind, ErrorKind::InvalidValue);
    register(0, BYTES).unwrap();
    let error = rig
        .upload(at(100), rig.device(2 * BYTES), BYTES, rig.stream())
        .unwrap_err();
    assert_eq!(
        error.kind,
        ErrorKind::InvalidValue,
        "a copy across two registrations"
    );
    let overlaps = [FindingKind::OverlappingRegistration; 4];
    assert_eq!(common::kinds(&rig.sim.findings()), overlaps);
    // SAFETY: nothing uses them.
    unsafe {
        rig.driver.host_unregister(at(0)).unwrap();
        rig.driver.host_unregister(at(BYTES)).unwrap();
    }
}

#[test]
fn the_device_does_not_write_memory_that_was_registered_read_only() {
    let rig = plain();
    let mut vector = vec![0_u8; BYTES];
    let base = host(&mut vector);
    let flags = RegisterFlags {
        read_only: true,
        ..RegisterFlags::default()
    };
    // SAFETY: the vector stays until it is unregistered.
    unsafe { rig.driver.host_register(base, BYTES, flags).unwrap() };
    let (device, stream) = (rig.device(BYTES), rig.stream());
    rig.upload(base, device, BYTES, stream).unwrap();
    let error = rig.download(device, base, BYTES, stream).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue);
    rig.driver.stream_synchronize(stream).unwrap();
    // SAFETY: nothing uses it.
    unsafe { rig.driver.host_unregister(base).unwrap() };
}

#[test]
fn kernels_access_mapped_memory_and_no_other_host_memory() {
    let rig = plain();
    let flags = HostFlags {
        mapped: true,
        ..HostFlags::default()
    };
    let mapped = rig.driver.host_alloc(BYTES, flags).unwrap();
    let plain_pinned = rig.pinned(BYTES);
    fill(mapped, BYTES, 0);
    let error = rig.driver.host_device_ptr(plain_pinned).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue);
    let address = rig.driver.host_device_ptr(mapped).unwrap();
    let module = rig.driver.module_load(PTX).unwrap();
    let add = rig
        .driver
        .module_function(module, "pinlane_add_u32")
        .unwrap();
    let run = |target: DevicePtr| {
        let args = [
            KernelArg::U64(2),
            KernelArg::U32(0x0101_0101),
            KernelArg::Ptr(target),
        ];
        let stream = rig.driver.default_stream();
        // SAFETY: the arguments match; illegal accesses are faults.
        unsafe {
            rig.driver
                .launch(add, LaunchShape::for_items(2), &args, stream)
                .unwrap()
        };
        rig.driver.synchronize()
    };
    run(address).unwrap();
    assert_eq!(bytes_at(mapped, 12), [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    let error = run(DevicePtr(plain_pinned.addr().get() as u64)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeviceFault);
    assert!(error.detail.contains("pinlane_add_u32"), "{error}");
}

#[test]
fn modules_know_their_kernels_and_twins() {
    fn double(
        memory: &mut dyn pinlane_kernels::Memory,
        _: LaunchShape,
        args: &[KernelArg],
    ) -> Result<(), pinlane_kernels::MemoryFault> {
        let KernelArg::Ptr(at) = args[0] else {
            panic!("checked by the launch");
        };
        let mut byte = [0];
        memory.read(at, &mut byte)?;
        memory.write(at, &[byte[0] * 2])
    }
    let kernel = Kernel {
        name: "doubled",
        params: &[ParamKind::Ptr],
        run: double,
        bytes_touched: |_| 2,
        fixed_ns: |_| 1_000,
        tail_ns: |_| 0,
    };
    let rig = rig(Sim::builder().kernel(kernel));
    let stream = rig.driver.default_stream();
    for bad in [
        "",
        "no ptx",
        ".version 8.0",
        ".version 8.0 /* .entry x() */",
    ] {
        let error = rig.driver.module_load(bad).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidPtx);
    }
    let module = rig.driver.module_load(PTX).unwrap();
    let kind = |name: &str| rig.driver.module_function(module, name).unwrap_err().kind;
    assert_eq!(kind("commented_out"), ErrorKind::NotFound);
    let orphan = rig.driver.module_function(module, "orphan").unwrap_err();
    assert_eq!(orphan.kind, ErrorKind::NotSupported);
    for part in ["`orphan`", "Sim::builder().kernel(", "SimBuilder::kernel"] {
        assert!(orphan.detail.contains(part), "{orphan}");
    }
    let function = rig.driver.module_function(module, "doubled").unwrap();
    let device = rig.device(1);
    // SAFETY: the arguments match the kernel, and its memory is allocated.
    unsafe {
        rig.driver.memset_async(device, 21, 1, stream).unwrap();
        let args = [KernelArg::Ptr(device)];
        rig.driver
            .launch(function, LaunchShape::for_items(1), &args, stream)
            .unwrap();
        let wrong = [KernelArg::U64(device.0)];
        let error = rig
            .driver
            .launch(function, LaunchShape::for_items(1), &wrong, stream);
        assert_eq!(error.unwrap_err().kind, ErrorKind::InvalidValue);
        let error = rig
            .driver
            .launch(function, LaunchShape::for_items(1), &[], stream);
        assert_eq!(error.unwrap_err().kind, ErrorKind::InvalidValue);
    }
    assert_eq!(rig.device_bytes(device, 1), [42]);
    let span = rig.sim.timeline()[1];
    assert_eq!(span.end_ns - span.start_ns, 2_000 + 1_000);
    // SAFETY: the module is not used again, except to check that it is gone.
    unsafe { rig.driver.module_unload(module).unwrap() };
    assert_eq!(kind("doubled"), ErrorKind::InvalidHandle);
}

#[test]
fn stream_ordered_memory_lives_from_allocation_to_free_in_the_stream() {
    for seed in common::seeds(30) {
        let rig = seeded(seed);
        let (stream, other) = (rig.non_blocking_stream(), rig.non_blocking_stream());
        let source = rig.pinned(BYTES);
        let block = rig.driver.device_alloc_async(BYTES, stream).unwrap();
        rig.upload(source, block, BYTES, stream).unwrap();
        // SAFETY: the use comes before the free in the same stream.
        unsafe { rig.driver.device_free_async(block, stream).unwrap() };
        let error = rig.upload(source, block, BYTES, other).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidValue);
        rig.driver.synchronize().unwrap();
        assert_eq!(
            common::kinds(&rig.sim.findings()),
            [FindingKind::UseAfterFree]
        );
        let info = rig.driver.memory_info().unwrap();
        assert_eq!(info.free_bytes, info.total_bytes);
    }
}
