//! Actions with the express lane: copies of ordinary memory.

use std::ops::Range;

use bytemuck::cast_slice;
use half::{bf16, f16};
use pinlane::{Conversion, DeviceSliceMut, F32ToBf16, F32ToF16, U8ToF32};

use crate::expected_memory::Shadow;
use crate::program_state::{CHUNK_BYTES, LARGE_WORDS, MOST_WORDS, Program, random_range};

/// Most words of a copy: a few, about a small slot, about a chunk, or all.
const COPY_WORDS_MAX: [usize; 4] = [MOST_WORDS, 5000, CHUNK_BYTES / 4 + 10, LARGE_WORDS];

/// Most pieces of a copy per buffer.
const PIECES: usize = 40;

/// Most words of a typical piece.
const PIECE_WORDS: usize = 20;

impl Program<'_> {
    /// A small ring, so that slots are reused often. One lane, so that runs replay exactly.
    pub(crate) fn configure_express(&mut self) {
        let mut config = self.device.express_config();
        (config.lanes, config.converting_lanes) = (1, 1);
        config.chunk_bytes = CHUNK_BYTES;
        config.ring_chunks = 1 + self.random.index(4);
        config.threshold_bytes = [0, 30 << 10, 512 << 10][self.random.index(3)];
        let set = self.device.set_express_config(config);
        set.expect("a valid configuration");
    }

    /// Takes a random action of the express lane.
    pub(crate) fn express_action(&mut self) -> Result<(), String> {
        match self.random.below(12) {
            0..=3 => {
                let most = *self.random.pick(&COPY_WORDS_MAX);
                return self.copy_one(most);
            }
            4..=5 => self.upload_many(),
            6..=7 => return self.download_many(),
            8..=9 => self.widen(),
            10 => return self.narrow(),
            _ if self.random.below(2) == 0 => self.configure_express(),
            _ => drop(self.device.trim()),
        }
        Ok(())
    }

    /// A copy of up to `most` words, in either direction.
    pub(crate) fn copy_one(&mut self, most: usize) -> Result<(), String> {
        let (at, words) = self.any_range(most);
        let stream = self.any_stream();
        self.transfers += 1;
        if self.random.below(2) == 0 {
            let values = self.any_words(words.len());
            let result = stream.copy_to_device(&values, self.memory[at].0.range_mut(words.clone()));
            self.wrote(result, at, words, &Shadow::of(&values));
            return Ok(());
        }
        let source = self.memory[at].0.range(words.clone());
        let result = match self.random.below(2) {
            0 => stream.copy_to_vec(source),
            _ => {
                let mut target = vec![0; words.len()];
                stream.copy_to_host(source, &mut target).map(|()| target)
            }
        };
        match self.ok_or_note(result) {
            Some(target) => self.check(&self.memory[at].1.part(words), &target),
            None => Ok(()),
        }
    }

    /// Disjoint ranges of a buffer, in order.
    fn pieces(&mut self, len: usize) -> Vec<Range<usize>> {
        let (mut pieces, mut end) = (Vec::new(), 0);
        // Sometimes adjacent ones, sometimes one of several chunks.
        let gap = [1, 3, len][self.random.index(3)];
        for _ in 0..1 + self.random.index(PIECES) {
            let most = if self.random.below(30) == 0 {
                LARGE_WORDS
            } else {
                PIECE_WORDS
            };
            let start = (end + self.random.index(gap)).min(len);
            end = (start + self.random.index(most)).min(len);
            pieces.push(start..end);
        }
        pieces
    }

    fn upload_many(&mut self) {
        let stream = self.any_stream();
        self.transfers += 1;
        let mut sources = Vec::new();
        for at in 0..self.memory.len() {
            let len = self.memory[at].0.len();
            for piece in self.pieces(len) {
                sources.push((at, piece.clone(), self.any_words(piece.len())));
            }
        }
        let mut places = Vec::new();
        for (at, (buffer, _)) in self.memory.iter_mut().enumerate() {
            let of_this = sources.iter().filter(|(of, ..)| *of == at);
            places.extend(cut(buffer.whole_mut(), of_this.map(|(_, piece, _)| piece)));
        }
        let values = sources.iter().map(|(.., values)| &values[..]);
        let mut pairs: Vec<_> = values.zip(places).collect();
        if self.random.below(2) == 0 {
            pairs.reverse();
        }
        let result = stream.upload_many(pairs);
        for (at, piece, values) in sources {
            let content = Shadow::of(&values);
            self.memory[at].1.write(piece, &content, result.is_ok());
        }
        self.ok_or_note(result);
    }

    fn download_many(&mut self) -> Result<(), String> {
        let stream = self.any_stream();
        self.transfers += 1;
        let mut sources = Vec::new();
        for at in 0..self.memory.len() {
            let len = self.memory[at].0.len();
            let pieces = self.pieces(len);
            sources.extend(pieces.into_iter().map(|piece| (at, piece)));
            // Sources may overlap.
            sources.push((at, random_range(self.random, len, PIECE_WORDS)));
        }
        let targets = sources.iter().map(|(_, piece)| vec![0; piece.len()]);
        let mut targets: Vec<Vec<u32>> = targets.collect();
        let places = sources
            .iter()
            .map(|(at, piece)| self.memory[*at].0.range(piece.clone()));
        let result = stream.download_many(places.zip(targets.iter_mut().map(Vec::as_mut_slice)));
        if self.ok_or_note(result).is_none() {
            return Ok(());
        }
        for ((at, piece), target) in sources.into_iter().zip(&targets) {
            self.check(&self.memory[at].1.part(piece), target)?;
        }
        Ok(())
    }

    /// Uploads bytes as floats.
    fn widen(&mut self) {
        let Some((mut buffer, mut shadow)) = self.floats.take() else {
            return;
        };
        let stream = self.any_stream();
        self.transfers += 1;
        let most = *self.random.pick(&COPY_WORDS_MAX);
        let items = random_range(self.random, buffer.len(), most);
        let values = self.any_words(items.len().div_ceil(4));
        let source = &cast_slice::<u32, u8>(&values)[..items.len()];
        let conversion = U8ToF32 {
            scale: 1.0 / 3.0,
            offset: self.random.below(1000) as f32,
        };
        let result = stream.upload_as(conversion, source, buffer.range_mut(items.clone()));
        let U8ToF32 { scale, offset } = conversion;
        let wide = source.iter().map(|&byte| f32::from(byte) * scale + offset);
        let wide = Shadow::of(&wide.collect::<Vec<f32>>());
        shadow.write(items, &wide, result.is_ok());
        self.ok_or_note(result);
        // Sometimes the buffer is dropped while it is written.
        if self.random.below(8) > 0 {
            self.floats = Some((buffer, shadow));
        }
    }

    /// Downloads floats as half-precision numbers.
    fn narrow(&mut self) -> Result<(), String> {
        match self.random.below(2) {
            0 => self.narrow_as(F32ToBf16, |word| {
                bf16::from_f32(f32::from_le_bytes(word)).to_le_bytes()
            }),
            _ => self.narrow_as(F32ToF16, |word| {
                f16::from_f32(f32::from_le_bytes(word)).to_le_bytes()
            }),
        }
    }

    fn narrow_as<C: Conversion<From = f32>>(
        &mut self,
        conversion: C,
        reference: impl Fn([u8; 4]) -> [u8; 2],
    ) -> Result<(), String> {
        let Some((buffer, shadow)) = self.floats.take() else {
            return Ok(());
        };
        let stream = self.any_stream();
        self.transfers += 1;
        let most = *self.random.pick(&COPY_WORDS_MAX);
        let items = random_range(self.random, buffer.len(), most);
        let mut target = vec![<C::To as bytemuck::Zeroable>::zeroed(); items.len()];
        let result = stream.download_as(conversion, buffer.range(items.clone()), &mut target);
        let expected = shadow.part(items).map_words(reference);
        self.floats = Some((buffer, shadow));
        match self.ok_or_note(result) {
            Some(()) => self.check_bytes(&expected, cast_slice(&target)),
            None => Ok(()),
        }
    }
}

/// Splits a buffer into pieces, which are disjoint and in order.
fn cut<'a, 'b>(
    whole: DeviceSliceMut<'a, u32>,
    pieces: impl Iterator<Item = &'b Range<usize>>,
) -> Vec<DeviceSliceMut<'a, u32>> {
    let (mut rest, mut at, mut cut) = (whole, 0, Vec::new());
    for piece in pieces {
        let (_, tail) = rest.split_at(piece.start - at);
        let (place, tail) = tail.split_at(piece.len());
        cut.push(place);
        (rest, at) = (tail, piece.end);
    }
    cut
}
