//! The kernels that copy many pieces.

use pinlane_driver::KernelArg;
use pinlane_kernels::{MemoryFault, Piece, find};

use crate::bounded_memory::{Flat, run};

const STAGED_AT: usize = 0;
const STAGED_BYTES: usize = 200_000;
const PLACES_AT: usize = STAGED_BYTES;
const PLACES_BYTES: usize = 250_000;
const TABLE_AT: usize = PLACES_AT + PLACES_BYTES;

/// Place and offset within their parts of the memory, and bytes: aligned alike and not, empty ones,
/// one larger than a twin holds at a time, places in another order than the buffer.
const PIECES: [(usize, usize, usize); 9] = [
    (100_000, 0, 4096),
    (16, 4096, 1),
    (33, 4097, 255),
    (0, 4352, 0),
    (1_003, 4352, 7),
    (2_000, 4359, 2),
    (110_000, 4361, 100_001),
    (240_001, 104_362, 9_999),
    (PLACES_BYTES, STAGED_BYTES, 0),
];

/// Staged buffer, places and table in one memory; its bytes differ from their neighbours.
fn memory() -> Flat {
    let mut memory = Flat::new((0..TABLE_AT).map(|i| (i * 31 / 7) as u8).collect());
    let table = PIECES
        .map(|(place, offset, bytes)| Piece::new(memory.address(PLACES_AT + place), offset, bytes));
    memory.bytes.extend_from_slice(bytemuck::cast_slice(&table));
    memory
}

fn go(name: &str, memory: &mut Flat, splits: u32) -> Result<(), MemoryFault> {
    let args = [
        KernelArg::U64(PIECES.len() as u64),
        KernelArg::U32(splits),
        memory.at(TABLE_AT),
        memory.at(STAGED_AT),
        KernelArg::U64(PIECES.iter().map(|(_, _, bytes)| *bytes as u64).sum()),
    ];
    run(name, memory, &args)
}

#[test]
fn scatter_brings_each_piece_to_its_place() {
    let mut expected = memory().bytes;
    for (place, offset, bytes) in PIECES {
        expected.copy_within(
            STAGED_AT + offset..STAGED_AT + offset + bytes,
            PLACES_AT + place,
        );
    }
    for splits in [1, 3, 1000] {
        let mut memory = memory();
        go("pinlane_scatter", &mut memory, splits).expect("in bounds");
        assert!(memory.bytes == expected, "{splits} splits");
    }
}

#[test]
fn gather_brings_each_piece_into_the_buffer() {
    let mut expected = memory().bytes;
    for (place, offset, bytes) in PIECES {
        expected.copy_within(
            PLACES_AT + place..PLACES_AT + place + bytes,
            STAGED_AT + offset,
        );
    }
    for splits in [1, 3, 1000] {
        let mut memory = memory();
        go("pinlane_gather", &mut memory, splits).expect("in bounds");
        assert!(memory.bytes == expected, "{splits} splits");
    }
}

#[test]
fn no_splits_and_no_pieces_are_no_work() {
    for name in ["pinlane_scatter", "pinlane_gather"] {
        let mut memory = memory();
        let before = memory.bytes.clone();
        go(name, &mut memory, 0).expect("nothing is accessed");
        let nowhere = KernelArg::Ptr(pinlane_driver::DevicePtr(0));
        let none = [
            KernelArg::U64(0),
            KernelArg::U32(1),
            nowhere,
            nowhere,
            KernelArg::U64(0),
        ];
        run(name, &mut memory, &none).expect("nothing is accessed");
        assert!(memory.bytes == before, "{name}");
    }
}

#[test]
fn a_place_out_of_bounds_is_a_fault_with_its_address() {
    let mut memory = memory();
    let nowhere = pinlane_driver::DevicePtr(0x10);
    let piece = Piece::new(nowhere, 0, 48);
    let end = memory.bytes.len();
    memory.bytes[end - 24..].copy_from_slice(bytemuck::bytes_of(&piece));
    for name in ["pinlane_scatter", "pinlane_gather"] {
        let fault = go(name, &mut memory, 1).expect_err("there is no such place");
        assert_eq!((fault.address, fault.bytes), (nowhere, 48), "{name}");
    }
}

#[test]
fn a_table_too_short_is_a_fault() {
    let mut memory = memory();
    let last = memory.address(memory.bytes.len() - 24);
    memory.bytes.pop();
    let fault = go("pinlane_scatter", &mut memory, 1).expect_err("out of bounds");
    assert_eq!((fault.address, fault.bytes), (last, 24));
}

#[test]
fn costs_are_the_table_and_each_byte_twice() {
    let null = KernelArg::Ptr(pinlane_driver::DevicePtr(0));
    let args = [
        KernelArg::U64(10),
        KernelArg::U32(4),
        null,
        null,
        KernelArg::U64(1_000),
    ];
    for name in ["pinlane_scatter", "pinlane_gather"] {
        let kernel = find(name).expect("built in");
        assert_eq!((kernel.bytes_touched)(&args), 2_240, "{name}");
    }
}
