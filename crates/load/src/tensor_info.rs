//! One tensor of a file, or a range of its rows.

use std::ops::Range;
use std::sync::Arc;

use crate::file_info::FileStamp;
use crate::{Dtype, LoadError, LoadErrorKind};

/// Name, type, shape and location of a tensor, or of a range of its rows.
///
/// Its size always matches type and shape, and its bytes lie inside the file as it was when opened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorInfo {
    pub(crate) name: Arc<str>,
    dtype: Dtype,
    shape: Arc<[u64]>,
    /// Set by the catalog, as is `stamp`.
    pub(crate) file: usize,
    /// Version of the file, to recognize tensors of other catalogs.
    pub(crate) stamp: Option<FileStamp>,
    bytes: Range<u64>,
}

impl TensorInfo {
    /// The caller has checked that `bytes` match type and shape.
    pub(super) fn new(name: String, dtype: Dtype, shape: Vec<u64>, bytes: Range<u64>) -> Self {
        debug_assert_eq!(dtype.bytes_of(&shape), Ok(bytes.end - bytes.start));
        Self {
            name: name.into(),
            dtype,
            shape: shape.into(),
            file: 0,
            stamp: None,
            bytes,
        }
    }

    /// The name: the key in a safetensors file, or the file name of an array without `.npy`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The dimensions, slowest first; empty for a scalar.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Position of the file in [`Catalog::files`](crate::Catalog::files).
    pub fn file(&self) -> usize {
        self.file
    }

    /// Byte range in the file.
    pub fn bytes(&self) -> Range<u64> {
        self.bytes.clone()
    }

    /// Size in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// A range of rows, that is, of the first dimension.
    ///
    /// ```
    /// # let catalog = pinlane::load::Catalog::open("tests/data/load/sharded")?;
    /// let whole = catalog.tensor("model.layers.0.weight")?; // F32 [4, 2]
    /// let rows = whole.rows(1..3)?;
    /// assert_eq!(rows.shape(), [2, 2]);
    /// assert_eq!(rows.bytes().start, whole.bytes().start + 8);
    /// assert_eq!(rows.len_bytes(), 16);
    /// assert!(whole.rows(3..5).is_err());
    /// # Ok::<(), pinlane::load::LoadError>(())
    /// ```
    ///
    /// # Errors
    /// [`LoadErrorKind::NoRows`] for a scalar, [`LoadErrorKind::RowsOutOfRange`] for rows past the
    /// end, and [`LoadErrorKind::RowsSplitByte`] for rows of sub-byte elements that start or end
    /// inside a byte.
    pub fn rows(&self, rows: Range<u64>) -> Result<Self, LoadError> {
        let [row_count, row @ ..] = &*self.shape else {
            return Err(self.error(LoadErrorKind::NoRows));
        };
        let (Range { start, end }, rows) = (rows, *row_count);
        if start > end || end > rows {
            return Err(self.error(LoadErrorKind::RowsOutOfRange { start, end, rows }));
        }
        // No overflow: the product of the non-zero dimensions was checked when the file was read.
        let row_bits = u128::from(row.iter().product::<u64>()) * u128::from(self.dtype.bits());
        let at = |row: u64| {
            let bits = u128::from(row) * row_bits;
            let bytes = u64::try_from(bits / 8).expect("inside the tensor");
            bits.is_multiple_of(8).then_some(self.bytes.start + bytes)
        };
        let (Some(start_bytes), Some(end_bytes)) = (at(start), at(end)) else {
            return Err(self.error(LoadErrorKind::RowsSplitByte {
                start,
                end,
                dtype: self.dtype,
                shape: self.shape.to_vec(),
            }));
        };
        let mut part = self.clone();
        Arc::make_mut(&mut part.shape)[0] = end - start;
        part.bytes = start_bytes..end_bytes;
        Ok(part)
    }

    /// The rows of one of `world` ranks. Every row belongs to exactly one rank, ranks have
    /// consecutive rows, and their row counts differ by at most one.
    ///
    /// ```
    /// # let catalog = pinlane::load::Catalog::open("tests/data/load/sharded")?;
    /// let whole = catalog.tensor("lm_head.weight")?; // F16 [3, 5]
    /// assert_eq!(whole.shard(0, 2)?.shape(), [1, 5]);
    /// assert_eq!(whole.shard(1, 2)?.shape(), [2, 5]);
    /// # Ok::<(), pinlane::load::LoadError>(())
    /// ```
    ///
    /// # Errors
    /// As [`rows`](Self::rows), and [`LoadErrorKind::InvalidRank`].
    pub fn shard(&self, rank: u64, world: u64) -> Result<Self, LoadError> {
        if rank >= world {
            return Err(self.error(LoadErrorKind::InvalidRank { rank, world }));
        }
        let rows = self.shape.first().copied().unwrap_or(0);
        let start_of = |rank: u64| {
            let start = u128::from(rows) * u128::from(rank) / u128::from(world);
            u64::try_from(start).expect("at most the number of rows")
        };
        self.rows(start_of(rank)..start_of(rank + 1))
    }

    pub(crate) fn error(&self, kind: LoadErrorKind) -> LoadError {
        LoadError::from(kind).with_tensor(&self.name)
    }
}

impl Dtype {
    /// Size of a tensor of this shape. The product of its dimensions other than 0 must not overflow.
    pub(super) fn bytes_of(self, shape: &[u64]) -> Result<u64, LoadErrorKind> {
        let overflow = || LoadErrorKind::SizeOverflow {
            dtype: self,
            shape: shape.to_vec(),
        };
        let elements = shape
            .iter()
            .filter(|dim| **dim != 0)
            .try_fold(1, |elements: u64, dim| elements.checked_mul(*dim))
            .ok_or_else(overflow)?;
        if shape.contains(&0) {
            return Ok(0);
        }
        let bits = u128::from(elements) * u128::from(self.bits());
        if !bits.is_multiple_of(8) {
            return Err(LoadErrorKind::PartialByte {
                dtype: self,
                shape: shape.to_vec(),
            });
        }
        u64::try_from(bits / 8).map_err(|_| overflow())
    }
}
