//! The kernels that copy many pieces at once.

use pinlane_driver::{DevicePtr, FunctionHandle, KernelArg, LaunchShape, Result, StreamHandle};
use pinlane_kernels::Piece;

use crate::pattern::{check_bytes, pattern};
use crate::rig::Rig;
use crate::{Case, Outcome, TestDevice};

pub(super) const CASES: &[Case] = &[
    Case::new("kernels/scatter", scatter),
    Case::new("kernels/gather", gather),
    Case::new("kernels/scatter-at-every-alignment", scatter_any_alignment),
    Case::new("kernels/gather-at-every-alignment", gather_any_alignment),
    Case::new("kernels/scatter-one-large-piece-in-parts", large_in_parts),
    Case::new("kernels/scatter-to-several-allocations", several_targets),
];

/// The kernel, and so the direction.
#[derive(Clone, Copy)]
enum Way {
    Scatter,
    Gather,
}

/// A piece's offset among the places and in the staged buffer, and its length.
type Layout = (usize, usize, usize);

fn scatter(test: &TestDevice<'_>) -> Outcome {
    mixed(test, Way::Scatter)
}

fn gather(test: &TestDevice<'_>) -> Outcome {
    mixed(test, Way::Gather)
}

/// Pieces of all sizes, split into many parts and few, with many threads and few.
fn mixed(test: &TestDevice<'_>, way: Way) -> Outcome {
    let layout = [
        (9_000, 0, 4096),
        (16, 4096, 1),
        (33, 4097, 255),
        (0, 4352, 0),
        (1_003, 4352, 7),
        (2_000, 4368, 16),
        (2_016, 4384, 15),
        (20_000, 4400, 5_003),
        (40_001, 9_403, 9_999),
        (60_000, 19_402, 0),
    ];
    let rig = test.rig()?;
    let mover = Mover::new(&rig, way)?;
    for splits in [1, 2, 7, 400] {
        for (grid, block) in [(1, 1), (3, 33), (64, 256)] {
            mover.check(&layout, splits, [grid, block])?;
        }
    }
    rig.close()
}

fn scatter_any_alignment(test: &TestDevice<'_>) -> Outcome {
    any_alignment(test, Way::Scatter)
}

fn gather_any_alignment(test: &TestDevice<'_>) -> Outcome {
    any_alignment(test, Way::Gather)
}

/// Both addresses with every remainder modulo 16, with lengths from less than a word to many.
fn any_alignment(test: &TestDevice<'_>, way: Way) -> Outcome {
    let mut layout = Vec::new();
    for place in 0..16 {
        for offset in 0..16 {
            for bytes in [1, 13, 40, 100] {
                // 128 bytes each, to detect writes beside a piece.
                let slot = 128 * layout.len();
                layout.push((slot + place, slot + offset, bytes));
            }
        }
    }
    let rig = test.rig()?;
    let mover = Mover::new(&rig, way)?;
    mover.check(&layout, 1, [100, 32])?;
    mover.check(&layout, 3, [100, 32])?;
    rig.close()
}

fn large_in_parts(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let mover = Mover::new(&rig, Way::Scatter)?;
    for (place, offset) in [(0, 0), (5, 21), (4, 8), (1, 2)] {
        let layout = [(place, offset, 2_000_003)];
        mover.check(&layout, 64, [40, 256])?;
    }
    rig.close()
}

fn several_targets(test: &TestDevice<'_>) -> Outcome {
    let rig = test.rig()?;
    let data = pattern(91, 3 * 1000);
    let staged = rig.upload(&data)?;
    let targets = [rig.device(1000)?, rig.device(1000)?, rig.device(1000)?];
    let table: Vec<Piece> = (targets.iter().enumerate())
        .map(|(i, target)| Piece::new(target.base(), 1000 * i, 1000))
        .collect();
    Mover::new(&rig, Way::Scatter)?.launch(&table, 1, staged.base(), [3, 64])?;
    for (target, expected) in targets.iter().zip(data.chunks(1000)) {
        check_bytes(&rig.download(target.all())?, expected, "a target")?;
    }
    rig.close()
}

/// One of the kernels, with a stream to run it on.
struct Mover<'r> {
    rig: &'r Rig,
    way: Way,
    kernel: FunctionHandle,
    stream: StreamHandle,
}

impl<'r> Mover<'r> {
    fn new(rig: &'r Rig, way: Way) -> Result<Self> {
        let name = match way {
            Way::Scatter => "pinlane_scatter",
            Way::Gather => "pinlane_gather",
        };
        Ok(Self {
            rig,
            way,
            kernel: rig.function(name)?,
            stream: rig.stream()?,
        })
    }

    /// Copies these pieces and compares both buffers, including the bytes beside the pieces.
    fn check(&self, layout: &[Layout], splits: u32, [grid, block]: [u32; 2]) -> Outcome {
        let rig = self.rig;
        let end = |of: fn(&Layout) -> usize| layout.iter().map(of).max().unwrap_or(0) + 20;
        let mut in_places = pattern(92, end(|(place, _, bytes)| place + bytes));
        let mut in_buffer = pattern(93, end(|(_, offset, bytes)| offset + bytes));
        let (places, buffer) = (rig.upload(&in_places)?, rig.upload(&in_buffer)?);
        let mut table = Vec::new();
        for &(place, offset, bytes) in layout {
            table.push(Piece::new(places.base().offset(place), offset, bytes));
            let at_place = &mut in_places[place..place + bytes];
            let staged = &mut in_buffer[offset..offset + bytes];
            match self.way {
                Way::Scatter => at_place.copy_from_slice(staged),
                Way::Gather => staged.copy_from_slice(at_place),
            }
        }
        self.launch(&table, splits, buffer.base(), [grid, block])?;
        let what = format!("{splits} splits, {grid} blocks of {block}");
        check_bytes(&rig.download(places.all())?, &in_places, &what)?;
        check_bytes(&rig.download(buffer.all())?, &in_buffer, &what)?;
        rig.free_device(places)?;
        Ok(rig.free_device(buffer)?)
    }

    /// Launches and waits. The pieces are in live memory.
    fn launch(
        &self,
        table: &[Piece],
        splits: u32,
        staged: DevicePtr,
        [grid, block]: [u32; 2],
    ) -> Result<()> {
        let words = table
            .iter()
            .flat_map(|p| [p.place, p.offset_bytes, p.bytes]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let in_device = self.rig.upload(&bytes)?;
        let shape = LaunchShape {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            shared_bytes: 0,
        };
        let args = [
            KernelArg::U64(table.len() as u64),
            KernelArg::U32(splits),
            KernelArg::Ptr(in_device.base()),
            KernelArg::Ptr(staged),
            KernelArg::U64(table.iter().map(|piece| piece.bytes).sum()),
        ];
        self.rig
            .launch_shaped(self.kernel, shape, &args, self.stream)?;
        self.rig.driver().stream_synchronize(self.stream)?;
        self.rig.free_device(in_device)
    }
}
