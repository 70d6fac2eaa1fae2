//! Copies of rows with different pitches.

use crate::outcome::check_eq;
use crate::pattern::pattern;
use crate::rig::{DeviceMem, HostKind, HostMem, Rig, Rows, Span};
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("rows/h2d-pinned", |b| {
        shapes(b, End::Host(HostKind::Pinned), End::Device, false)
    }),
    Case::new("rows/h2d-pinned-async", |b| {
        shapes(b, End::Host(HostKind::Pinned), End::Device, true)
    }),
    Case::new("rows/h2d-pageable", |b| {
        shapes(b, End::Host(HostKind::Pageable), End::Device, false)
    }),
    Case::new("rows/h2d-pageable-async", |b| {
        shapes(b, End::Host(HostKind::Pageable), End::Device, true)
    }),
    Case::new("rows/d2h-pinned", |b| {
        shapes(b, End::Device, End::Host(HostKind::Pinned), false)
    }),
    Case::new("rows/d2h-pinned-async", |b| {
        shapes(b, End::Device, End::Host(HostKind::Pinned), true)
    }),
    Case::new("rows/d2h-pageable", |b| {
        shapes(b, End::Device, End::Host(HostKind::Pageable), false)
    }),
    Case::new("rows/d2d", |b| shapes(b, End::Device, End::Device, false)),
    Case::new("rows/d2d-async", |b| {
        shapes(b, End::Device, End::Device, true)
    }),
    Case::new("rows/h2h-pinned", |b| {
        shapes(
            b,
            End::Host(HostKind::Pinned),
            End::Host(HostKind::Pinned),
            false,
        )
    }),
];

#[derive(Clone, Copy)]
enum End {
    Device,
    Host(HostKind),
}

/// The memory at one end of the copy.
enum Memory<'r> {
    Device(DeviceMem<'r>),
    Host(HostMem<'r>),
}

impl Memory<'_> {
    fn holding<'r>(rig: &'r Rig, end: End, data: &[u8]) -> pinlane_driver::Result<Memory<'r>> {
        Ok(match end {
            End::Device => Memory::Device(rig.upload(data)?),
            End::Host(kind) => {
                let memory = rig.host(kind, data.len())?;
                memory.write(0, data);
                Memory::Host(memory)
            }
        })
    }

    fn all(&self) -> Span<'_> {
        match self {
            Self::Device(memory) => memory.all(),
            Self::Host(memory) => memory.all(),
        }
    }

    fn read(&self, rig: &Rig) -> pinlane_driver::Result<Vec<u8>> {
        match self {
            Self::Device(memory) => rig.download(memory.all()),
            Self::Host(memory) => Ok(memory.read_all()),
        }
    }
}

/// Bytes of a row, rows, source pitch, target pitch.
const SHAPES: [(usize, usize, usize, usize); 7] = [
    (1, 1, 1, 1),
    (100, 1, 128, 100),
    (100, 10, 100, 100),
    (100, 10, 128, 512),
    (33, 57, 64, 33),
    (1, 200, 3, 7),
    (4096, 64, 4160, 8192),
];

fn shapes(test: &TestDevice<'_>, from: End, to: End, in_stream: bool) -> Outcome {
    let rig = test.rig()?;
    let stream = rig.stream()?;
    for (row_bytes, rows, source_pitch, target_pitch) in SHAPES {
        let data = pattern(50, rows * source_pitch);
        let mut expected = vec![0xa5; rows * target_pitch];
        let source = Memory::holding(&rig, from, &data)?;
        let target = Memory::holding(&rig, to, &expected)?;
        rig.copy_rows(
            Rows {
                span: target.all(),
                pitch_bytes: target_pitch,
            },
            Rows {
                span: source.all(),
                pitch_bytes: source_pitch,
            },
            row_bytes,
            rows,
            in_stream.then_some(stream),
        )?;
        rig.driver().stream_synchronize(stream)?;
        for row in 0..rows {
            expected[row * target_pitch..][..row_bytes]
                .copy_from_slice(&data[row * source_pitch..][..row_bytes]);
        }
        // The bytes between the rows must not change.
        let wrong = target
            .read(&rig)?
            .iter()
            .zip(&expected)
            .position(|(f, e)| f != e);
        check_eq!(
            wrong,
            None,
            "first wrong byte of {rows} rows of {row_bytes}, pitches {source_pitch} and {target_pitch}"
        );
    }
    rig.close()
}
