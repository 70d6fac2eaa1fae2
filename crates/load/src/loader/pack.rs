//! Moving what was written together, in place.

use super::layout::{Layout, Places, aligned, elements, offsets_bytes};

/// A batch as it is copied.
#[derive(Debug)]
pub(super) struct Packed {
    /// Samples that are in it.
    pub(super) samples: usize,
    /// Where each field lies.
    pub(super) fields: Vec<PackedField>,
    /// Bytes in all.
    pub(super) bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct PackedField {
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// For a variable field: where its offsets start, and what they are, in elements.
    pub(super) offsets: Option<(usize, Vec<u64>)>,
}

/// Move the samples `kept`, in ascending order, together. `length` says what a sample has of a variable
/// field, in bytes.
///
/// Everything moves down or stays, in the order in which it lies in memory: so nothing is written over
/// that is still to be moved.
pub(super) fn pack(
    layout: &Layout,
    places: &Places,
    memory: &mut [u8],
    kept: &[usize],
    length: impl Fn(usize, usize) -> usize,
) -> Packed {
    let whole = "the packed batch is no larger than its places";
    let mut fields: Vec<PackedField> = Vec::new();
    fields.resize_with(layout.fields().len(), PackedField::default);
    let mut end = 0;
    for field in layout.of_kind(false) {
        let stride = layout.stride(field);
        let start = aligned(end).expect(whole);
        for (to, &sample) in kept.iter().enumerate() {
            let from = places.starts[field] + sample * stride;
            shift(memory, from, start + to * stride, stride);
        }
        end = start + kept.len() * stride;
        (fields[field].start, fields[field].bytes) = (start, end - start);
    }
    for field in layout.of_kind(true) {
        let start = aligned(end).expect(whole);
        end = start + offsets_bytes(kept.len()).expect(whole);
        fields[field].offsets = Some((start, Vec::with_capacity(kept.len() + 1)));
    }
    for field in layout.of_kind(true) {
        let dtype = layout.fields()[field].dtype();
        let start = aligned(end).expect(whole);
        let PackedField { offsets, .. } = &mut fields[field];
        let (offsets_start, offsets) = offsets.as_mut().expect("set above");
        end = start;
        offsets.push(0);
        for &sample in kept {
            let from = places.starts[field] + sample * layout.stride(field);
            let bytes = length(field, sample);
            shift(memory, from, end, bytes);
            end += bytes;
            offsets.push(elements(dtype, end - start).expect("whole elements were written"));
        }
        for (at, offset) in offsets.iter().enumerate() {
            let place = *offsets_start + at * size_of::<u64>();
            memory[place..][..size_of::<u64>()].copy_from_slice(&offset.to_le_bytes());
        }
        (fields[field].start, fields[field].bytes) = (start, end - start);
    }
    Packed {
        samples: kept.len(),
        fields,
        bytes: end,
    }
}

fn shift(memory: &mut [u8], from: usize, to: usize, bytes: usize) {
    if from != to {
        memory.copy_within(from..from + bytes, to);
    }
}
