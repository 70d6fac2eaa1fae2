//! 2-D copies.

use pinlane_driver::{Copy2d, Place};

use crate::copy::{any_place, device_place, host_place};
use crate::error::{Code, INVALID_VALUE, NOT_SUPPORTED, Outcome};
use crate::exports::exports_by_default_stream;
use crate::ffi::{Host, In};
use crate::stream::StreamRef;

/// Source or target of a 2-D copy, in C layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Side {
    x_bytes: usize,
    y: usize,
    memory_type: u32,
    host: Host,
    device: u64,
    array: usize,
    pitch_bytes: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters {
    source: Side,
    target: Side,
    width_bytes: usize,
    rows: usize,
}

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;

impl Side {
    /// Where the first row begins.
    fn place(&self) -> Outcome<Place> {
        let base = match self.memory_type {
            HOST => host_place(self.host)?,
            DEVICE => device_place(self.device)?,
            UNIFIED => any_place(self.device)?,
            ARRAY => return Err(NOT_SUPPORTED),
            _ => return Err(INVALID_VALUE),
        };
        let rows = self.y.checked_mul(self.pitch_bytes).ok_or(INVALID_VALUE)?;
        let skipped = rows.checked_add(self.x_bytes).ok_or(INVALID_VALUE)?;
        Ok(base.offset(skipped))
    }

    /// Distance between rows. A single row needs no pitch.
    fn pitch(&self, width_bytes: usize, rows: usize) -> Outcome<usize> {
        let needed = self.x_bytes.checked_add(width_bytes).ok_or(INVALID_VALUE)?;
        match self.pitch_bytes {
            0 if rows == 1 && self.y == 0 => Ok(needed),
            pitch if pitch >= needed => Ok(pitch),
            _ => Err(INVALID_VALUE),
        }
    }
}

/// The requested copy; `None` if it is empty.
fn read(parameters: &In<Parameters>) -> Outcome<Option<Copy2d>> {
    let Parameters {
        source,
        target,
        width_bytes,
        rows,
    } = parameters.read()?;
    if width_bytes == 0 || rows == 0 {
        return Ok(None);
    }
    Ok(Some(Copy2d {
        target: target.place()?,
        target_pitch_bytes: target.pitch(width_bytes, rows)?,
        source: source.place()?,
        source_pitch_bytes: source.pitch(width_bytes, rows)?,
        row_bytes: width_bytes,
        rows,
    }))
}

fn submit(parameters: &In<Parameters>, stream: &StreamRef) -> Outcome<()> {
    let Some(copy) = read(parameters)? else {
        return Ok(());
    };
    // SAFETY: the program guarantees that its host memory is valid until the copy is done. The
    // simulator checks device addresses and pinned memory.
    unsafe { stream.driver().copy_2d_async(copy, stream.handle) }.map_err(Code::from)
}

/// Copies, and waits until that is done.
fn copy_and_wait(parameters: &In<Parameters>, stream: &StreamRef) -> Outcome<()> {
    if !stream.is_legacy {
        submit(parameters, stream)?;
        return Ok(stream.driver().stream_synchronize(stream.handle)?);
    }
    let Some(copy) = read(parameters)? else {
        return Ok(());
    };
    // SAFETY: as in `submit`.
    unsafe { stream.driver().copy_2d(copy) }.map_err(Code::from)
}

exports_by_default_stream! {
    /// Copies rows.
    fn cuMemcpy2D_v2, cuMemcpy2D_v2_ptds(parameters: In<Parameters>) |mode| {
        copy_and_wait(&parameters, &StreamRef::default(mode)?)
    }

    /// Copies rows of any pitch.
    fn cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds(parameters: In<Parameters>) |mode| {
        copy_and_wait(&parameters, &StreamRef::default(mode)?)
    }

    /// Copies rows in stream order.
    fn cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz(
        parameters: In<Parameters>, stream: usize,
    ) |mode| {
        submit(&parameters, &StreamRef::find(stream, mode)?)
    }
}
