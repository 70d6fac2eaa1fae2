//! Every kind of input and output, by name.

use std::io;

use pinlane::pipeline::{Input, IntoInput, Output};
use pinlane::{Device, DeviceBuf, PinnedBuf, Pod};

use pinlane_testing::SplitMix64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    Pinned,
    Pageable,
    Device,
    Reader,
    Fill,
    Batches,
}

impl From {
    pub const ALL: [Self; 6] = [
        Self::Pinned,
        Self::Pageable,
        Self::Device,
        Self::Reader,
        Self::Fill,
        Self::Batches,
    ];
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    Pinned,
    Pageable,
    Device,
    Writer,
    Each,
}

impl To {
    pub const ALL: [Self; 5] = [
        Self::Pinned,
        Self::Pageable,
        Self::Device,
        Self::Writer,
        Self::Each,
    ];
}

/// The elements of an input, in memory of its kind.
pub enum Source<T> {
    Host(From, Vec<T>),
    Pinned(PinnedBuf<T>),
    Device(DeviceBuf<T>),
}

impl<T: Pod + Send> Source<T> {
    pub fn new(kind: From, device: &Device, elements: &[T]) -> pinlane::Result<Self> {
        Ok(match kind {
            From::Pinned => Self::Pinned(device.pinned_from(elements)?),
            From::Device => {
                let mut buffer = device.alloc(elements.len())?;
                device.stream()?.copy_to_device(elements, &mut buffer)?;
                Self::Device(buffer)
            }
            other => Self::Host(other, elements.to_vec()),
        })
    }

    /// As an input of items of `width` elements, of which a chunk holds at most `chunk_items`.
    /// Readers give little at a time; `fill` and batches hold any number of items.
    pub fn input(&self, width: usize, chunk_items: usize, seed: u64) -> Input<'_, T> {
        let mut random = SplitMix64::new(seed);
        let mut some = move |left: usize| match left {
            0 => 0,
            _ => width * (1 + random.index(chunk_items.min(left / width))),
        };
        let input = match self {
            Self::Pinned(buffer) => buffer.into_input(),
            Self::Device(buffer) => buffer.into_input(),
            Self::Host(From::Pageable, elements) => elements.into_input(),
            Self::Host(From::Reader, elements) => Input::reader(Halting {
                rest: bytemuck::cast_slice(elements),
                random: SplitMix64::new(seed),
            }),
            Self::Host(From::Fill, elements) => {
                let mut rest = &elements[..];
                Input::fill(move |chunk| {
                    let take = some(rest.len()).min(chunk.len());
                    chunk[..take].copy_from_slice(&rest[..take]);
                    rest = &rest[take..];
                    Ok(take)
                })
            }
            Self::Host(_, elements) => {
                let mut rest = &elements[..];
                let mut empty = false;
                Input::batches(std::iter::from_fn(move || {
                    empty = !empty;
                    let take = if empty { 0 } else { some(rest.len()) };
                    if rest.is_empty() {
                        return None;
                    }
                    let (batch, later) = rest.split_at(take);
                    rest = later;
                    Some(batch.to_vec())
                }))
            }
        };
        input.wide(width)
    }
}

/// Gives a few bytes at a time, and is interrupted now and then.
struct Halting<'a> {
    rest: &'a [u8],
    random: SplitMix64,
}

impl io::Read for Halting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.random.index(5) == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = buffer.len().min(self.rest.len());
        let take = most.min(1 + self.random.index(40.max(buffer.len() / 2)));
        let (here, later) = self.rest.split_at(take);
        buffer[..take].copy_from_slice(here);
        self.rest = later;
        Ok(take)
    }
}

/// Where results go, in memory of its kind.
pub enum Target<T> {
    Host(To, Vec<T>),
    Pinned(PinnedBuf<T>),
    Device(DeviceBuf<T>),
}

impl<T: Pod + Send> Target<T> {
    /// Room for so many elements.
    pub fn new(kind: To, device: &Device, len: usize) -> pinlane::Result<Self> {
        Ok(match kind {
            To::Pinned => {
                let mut buffer = device.pinned(len)?;
                buffer.fill(T::zeroed());
                Self::Pinned(buffer)
            }
            To::Device => Self::Device(device.alloc(len)?),
            To::Pageable => Self::Host(kind, vec![T::zeroed(); len]),
            To::Writer | To::Each => Self::Host(kind, Vec::with_capacity(len)),
        })
    }

    /// As an output of items of `width` elements.
    pub fn output(&mut self, width: usize) -> Output<'_, T> {
        let output = match self {
            Self::Pinned(buffer) => Output::from(buffer),
            Self::Device(buffer) => Output::from(buffer),
            Self::Host(To::Pageable, elements) => Output::from(elements),
            Self::Host(To::Writer, elements) => Output::writer(Bytes(elements)),
            Self::Host(_, elements) => Output::each(|chunk| {
                elements.extend_from_slice(chunk);
                Ok(())
            }),
        };
        output.wide(width)
    }

    /// What arrived.
    pub fn bytes(&self, device: &Device) -> pinlane::Result<Vec<u8>> {
        Ok(match self {
            Self::Host(_, elements) => bytemuck::cast_slice(elements).to_vec(),
            Self::Pinned(buffer) => bytemuck::cast_slice(buffer).to_vec(),
            Self::Device(buffer) => {
                let elements = device.stream()?.copy_to_vec(buffer)?;
                bytemuck::cast_slice(&elements).to_vec()
            }
        })
    }
}

/// Elements as a writer of their bytes, whole elements at a time.
struct Bytes<'a, T>(&'a mut Vec<T>);

impl<T: Pod> io::Write for Bytes<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytemuck::cast_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
