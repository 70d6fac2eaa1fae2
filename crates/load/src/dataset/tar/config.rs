//! What is read from an archive.

use crate::Field;

/// Files with one extension, as a field of the samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TarField {
    /// What their names end with, behind the first dot, large or small: `jpg`, `seg.png`. A dot before
    /// it changes nothing.
    pub extension: String,
    /// The field. Its bytes are the file's.
    pub field: Field,
}

/// What is read from archives.
///
/// ```
/// use pinlane::load::Dtype;
/// use pinlane::load::dataset::{Field, TarConfig};
///
/// let config = TarConfig::new()
///     .field("jpg", Field::variable("image", Dtype::U8, 1 << 20))
///     .field("cls", Field::fixed("label", Dtype::U8, [1]));
/// assert_eq!(config.fields.len(), 2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TarConfig {
    /// The fields of the samples. Files with other extensions are not read.
    pub fields: Vec<TarField>,
}

impl TarConfig {
    /// No fields yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Files with this extension are one more field.
    #[must_use]
    pub fn field(mut self, extension: impl Into<String>, field: Field) -> Self {
        self.fields.push(TarField {
            extension: extension.into(),
            field,
        });
        self
    }
}
