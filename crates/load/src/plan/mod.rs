//! How selected tensors get from files to a device: where each lies there, and what is read when.
//!
//! A pure function of the tensors and some sizes. Memory grows with the number of tensors, not of
//! bytes: pieces are made as they are asked for.

mod convert;
mod options;
mod pieces;
mod place;

pub use options::PlanOptions;
pub(super) use pieces::Cursor;
pub use pieces::{Piece, PieceCopy, PiecePart, Pieces};
pub use place::Placement;

use super::{Dtype, Fault, LoadError, TensorInfo};
use convert::Conversion;

/// Where tensors lie on the device, and in which pieces they are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    options: PlanOptions,
    allocations: Vec<u64>,
    placements: Vec<Placement>,
    /// What there is to read, by file and offset.
    sources: Vec<pieces::Source>,
}

impl Plan {
    /// Plan for these tensors. They may repeat or overlap: each gets a place of its own, and the
    /// bytes that they share are read once.
    ///
    /// # Errors
    ///
    /// [`Fault::BadPlan`](super::Fault::BadPlan) for sizes that are not possible, and
    /// [`Fault::TooMuch`](super::Fault::TooMuch).
    pub fn new(tensors: &[TensorInfo], options: PlanOptions) -> Result<Self, LoadError> {
        Self::converting(tensors, None, options)
    }

    /// The same, with tensors of floating-point numbers turned into those of another type on the
    /// way. Tensors of other types stay as they are.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`Fault::NotAFloat`](super::Fault::NotAFloat) for a type that
    /// numbers cannot be turned into. Pieces must have room for an element wherever it starts.
    pub fn converting(
        tensors: &[TensorInfo],
        to: Option<Dtype>,
        options: PlanOptions,
    ) -> Result<Self, LoadError> {
        options.check()?;
        if let Some(to) = to.filter(|to| to.float_kind().is_none()) {
            return Err(Fault::NotAFloat { to }.into());
        }
        let conversions: Vec<_> = tensors
            .iter()
            .map(|tensor| Conversion::of(tensor, to))
            .collect();
        let elements = conversions.iter().flatten().map(|c| c.element_bytes());
        options.check_elements(elements.max().unwrap_or(1))?;
        let sources = pieces::sources(tensors, &conversions);
        let (allocations, placements) = place::place(tensors, &conversions, &options)?;
        Ok(Self {
            options,
            allocations,
            placements,
            sources,
        })
    }

    /// Bytes of the device allocations to make.
    pub fn allocations(&self) -> &[u64] {
        &self.allocations
    }

    /// Where each tensor lies, in the order in which they were given.
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// What to read, by file and offset. No byte is read twice, and none that is not wanted.
    pub fn pieces(&self) -> Pieces<'_> {
        Pieces::new(self)
    }

    /// The next piece behind a cursor.
    pub(super) fn next(&self, cursor: &mut Cursor) -> Option<Piece> {
        cursor.next(self)
    }
}
