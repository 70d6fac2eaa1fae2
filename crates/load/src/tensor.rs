//! One tensor of a file, or some rows of it.

use std::ops::Range;
use std::sync::Arc;

use super::file::Stamp;
use super::{Dtype, Fault, LoadError};

/// Where a tensor lies, and what it is; or some of its rows, as if the file held only those.
///
/// The size always is that of type and shape, and the bytes are inside of the file, as it was when
/// it was opened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorInfo {
    /// Cheap to clone, as both are shared.
    name: Arc<str>,
    dtype: Dtype,
    shape: Arc<[u64]>,
    file: usize,
    /// Which file that was, so that tensors of another catalog are known as such.
    stamp: Option<Stamp>,
    bytes: Range<u64>,
}

impl TensorInfo {
    /// The caller has checked that `bytes` are what type and shape take.
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

    pub(super) fn in_file(mut self, file: usize, stamp: Stamp) -> Self {
        (self.file, self.stamp) = (file, Some(stamp));
        self
    }

    /// Whether it is of the same file as another one.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        (self.file, self.stamp) == (other.file, other.stamp)
    }

    /// Its name: the key in a safetensors file, the file's name without `.npy` for an array.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its dimensions, the slowest first; none for a scalar.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of its file in [`Catalog::files`](super::Catalog::files).
    pub fn file(&self) -> usize {
        self.file
    }

    /// Its bytes, counted from the start of the file.
    pub fn bytes(&self) -> Range<u64> {
        self.bytes.clone()
    }

    /// How many bytes it has.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Some of its rows: a part along the first dimension.
    ///
    /// ```
    /// # use pinlane::load::{Catalog, Fault};
    /// # let path = std::env::temp_dir().join(format!("pinlane-doc-rows-{}.safetensors", std::process::id()));
    /// # let header = br#"{"w":{"dtype":"F16","shape":[4,3],"data_offsets":[0,24]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header);
    /// # file.extend([0; 24]);
    /// # std::fs::write(&path, file)?;
    /// let catalog = Catalog::open(&path)?;
    /// let whole = catalog.tensor("w")?; // F16 [4, 3]
    /// let rows = whole.rows(1..3)?;
    /// assert_eq!(rows.shape(), [2, 3]);
    /// assert_eq!(rows.bytes().start, whole.bytes().start + 6);
    /// assert_eq!(rows.len_bytes(), 12);
    /// assert!(whole.rows(3..5).is_err());
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Fault::NoRows`] for a scalar, [`Fault::RowsOutOfRange`] for rows that are not there, and
    /// [`Fault::RowsSplitByte`] where elements of less than a byte would be torn.
    pub fn rows(&self, rows: Range<u64>) -> Result<Self, LoadError> {
        self.part(rows)
            .map_err(|fault| LoadError::from(fault).with_tensor(&self.name))
    }

    /// The rows of one rank, where `world` ranks share the tensor: all rows belong to exactly one
    /// rank, in order, and no rank has more than one row more than another.
    ///
    /// ```
    /// # use pinlane::load::Catalog;
    /// # let path = std::env::temp_dir().join(format!("pinlane-doc-shard-{}.safetensors", std::process::id()));
    /// # let header = br#"{"w":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}}"#;
    /// # let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// # file.extend(header);
    /// # file.extend([0; 20]);
    /// # std::fs::write(&path, file)?;
    /// let catalog = Catalog::open(&path)?;
    /// let whole = catalog.tensor("w")?; // F32 [5]
    /// assert_eq!(whole.shard(0, 2)?.shape(), [2]);
    /// assert_eq!(whole.shard(1, 2)?.shape(), [3]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows), and [`Fault::BadRank`].
    pub fn shard(&self, rank: u64, world: u64) -> Result<Self, LoadError> {
        if rank >= world {
            return Err(LoadError::from(Fault::BadRank { rank, world }).with_tensor(&self.name));
        }
        let rows = self.shape.first().copied().unwrap_or(0);
        let start_of = |rank: u64| {
            let start = u128::from(rows) * u128::from(rank) / u128::from(world);
            u64::try_from(start).expect("at most the number of rows")
        };
        self.rows(start_of(rank)..start_of(rank + 1))
    }

    fn part(&self, rows: Range<u64>) -> Result<Self, Fault> {
        let [all, row @ ..] = &*self.shape else {
            return Err(Fault::NoRows);
        };
        if rows.start > rows.end || rows.end > *all {
            return Err(Fault::RowsOutOfRange {
                start: rows.start,
                end: rows.end,
                rows: *all,
            });
        }
        // No overflow: the dimensions that are not zero were multiplied when the file was read.
        let row_bits = u128::from(row.iter().product::<u64>()) * u128::from(self.dtype.bits());
        let at = |row: u64| {
            let bits = u128::from(row) * row_bits;
            let bytes = u64::try_from(bits / 8).expect("inside of the tensor");
            bits.is_multiple_of(8).then_some(self.bytes.start + bytes)
        };
        let (Some(start), Some(end)) = (at(rows.start), at(rows.end)) else {
            return Err(Fault::RowsSplitByte {
                start: rows.start,
                end: rows.end,
                dtype: self.dtype,
                shape: self.shape.to_vec(),
            });
        };
        let mut part = self.clone();
        Arc::make_mut(&mut part.shape)[0] = rows.end - rows.start;
        part.bytes = start..end;
        Ok(part)
    }
}
