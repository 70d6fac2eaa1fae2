//! The kernels that copy many pieces at once.

use pinlane_driver::{FunctionHandle, KernelArg, Result, StreamHandle};
use pinlane_kernels::Piece;

use crate::Outcome;
use crate::case::cases;
use crate::pattern::pattern;
use crate::rig::{Rig, Span, blocks};

cases! {
    "kernels/scatter" => |rig| mixed(rig, Way::Scatter),
    "kernels/gather" => |rig| mixed(rig, Way::Gather),
    "kernels/scatter-at-every-alignment" => |rig| any_alignment(rig, Way::Scatter),
    "kernels/gather-at-every-alignment" => |rig| any_alignment(rig, Way::Gather),
    "kernels/scatter-one-large-piece-in-parts" => large_in_parts,
    "kernels/scatter-to-several-allocations" => several_targets,
}

/// The kernel, and so the direction.
#[derive(Clone, Copy)]
enum Way {
    Scatter,
    Gather,
}

/// A piece's offset among the places and in the staged buffer, and its length.
type Layout = (usize, usize, usize);

/// Pieces of all sizes, split into many parts and few, with many threads and few.
fn mixed(rig: &Rig, way: Way) -> Outcome {
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
    let mover = Mover::new(rig, way)?;
    for splits in [1, 2, 7, 400] {
        for (grid, block) in [(1, 1), (3, 33), (64, 256)] {
            mover.check(&layout, splits, [grid, block])?;
        }
    }
    Ok(())
}

/// Both addresses with every remainder modulo 16, with lengths from less than a word to many.
fn any_alignment(rig: &Rig, way: Way) -> Outcome {
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
    let mover = Mover::new(rig, way)?;
    mover.check(&layout, 1, [100, 32])?;
    mover.check(&layout, 3, [100, 32])
}

fn large_in_parts(rig: &Rig) -> Outcome {
    let mover = Mover::new(rig, Way::Scatter)?;
    for (place, offset) in [(0, 0), (5, 21), (4, 8), (1, 2)] {
        let layout = [(place, offset, 2_000_003)];
        mover.check(&layout, 64, [40, 256])?;
    }
    Ok(())
}

fn several_targets(rig: &Rig) -> Outcome {
    let data = pattern(91, 3 * 1000);
    let staged = rig.upload(&data)?;
    let targets = [rig.device(1000)?, rig.device(1000)?, rig.device(1000)?];
    let table: Vec<Piece> = (targets.iter().enumerate())
        .map(|(i, target)| Piece::new(target.all().device(), 1000 * i, 1000))
        .collect();
    Mover::new(rig, Way::Scatter)?.launch(&table, 1, staged.all(), [3, 64])?;
    for (target, expected) in targets.iter().zip(data.chunks(1000)) {
        rig.check(target.all(), expected, "a target")?;
    }
    Ok(())
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
            let at = places.span(place, bytes).device();
            table.push(Piece::new(at, offset, bytes));
            let at_place = &mut in_places[place..place + bytes];
            let staged = &mut in_buffer[offset..offset + bytes];
            match self.way {
                Way::Scatter => at_place.copy_from_slice(staged),
                Way::Gather => staged.copy_from_slice(at_place),
            }
        }
        self.launch(&table, splits, buffer.all(), [grid, block])?;
        let what = format!("{splits} splits, {grid} blocks of {block}");
        rig.check(places.all(), &in_places, &what)?;
        rig.check(buffer.all(), &in_buffer, &what)?;
        rig.free_memory(places)?;
        Ok(rig.free_memory(buffer)?)
    }

    /// Launches and waits. The pieces are in live memory.
    fn launch(
        &self,
        table: &[Piece],
        splits: u32,
        staged: Span<'_>,
        [grid, block]: [u32; 2],
    ) -> Result<()> {
        let words = |p: &Piece| [p.place, p.offset_bytes, p.bytes];
        let words = table.iter().flat_map(words);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let in_device = self.rig.upload(&bytes)?;
        let args = [
            KernelArg::U64(table.len() as u64),
            KernelArg::U32(splits),
            KernelArg::Ptr(in_device.all().device()),
            KernelArg::Ptr(staged.device()),
            KernelArg::U64(table.iter().map(|piece| piece.bytes).sum()),
        ];
        self.rig
            .launch(self.kernel, blocks(grid, block), &args, self.stream)?;
        self.rig.stream_synchronize(self.stream)?;
        self.rig.free_memory(in_device)
    }
}
