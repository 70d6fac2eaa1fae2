//! `load --list`: the tensors of files.

use serde::Serialize;

use super::text::tensors_in_files;
use crate::format::{counted, short_size};
use crate::text_layout::{display_width, padded_left, sanitize};

/// A tensor in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadListTensor {
    /// Its name.
    pub name: String,
    /// Element type, as named in safetensors files.
    pub dtype: String,
    /// Dimensions, the slowest first.
    pub shape: Vec<u64>,
    /// Bytes in the file.
    pub bytes: u64,
    /// Conversion on the way, if any.
    pub converted: Option<LoadListConverted>,
    /// Its file.
    pub file: String,
}

/// A tensor after conversion.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadListConverted {
    /// Element type.
    pub to: String,
    /// Bytes.
    pub bytes: u64,
}

/// The tensors of files, from their headers alone. Needs no device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadList {
    /// Files with any of the tensors.
    pub files: u64,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// Tensors in the files that their index does not list; these are not loaded.
    pub unlisted: u64,
    /// By file, in file order.
    pub tensors: Vec<LoadListTensor>,
}

impl LoadList {
    /// A list of these tensors, from this many files.
    #[must_use]
    pub fn new(files: u64, unlisted: u64, tensors: Vec<LoadListTensor>) -> Self {
        Self {
            files,
            bytes: tensors.iter().map(|tensor| tensor.bytes).sum(),
            unlisted,
            tensors,
        }
    }

    /// A table with a line per tensor, and totals.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = match self.tensors.is_empty() {
            true => String::new(),
            false => self.table(),
        };
        let tensors = self.tensors.len() as u64;
        text.push_str(&tensors_in_files(tensors, self.files, self.bytes));
        if self.tensors.iter().any(|tensor| tensor.converted.is_some()) {
            let loaded = self.tensors.iter().map(LoadListTensor::loaded_bytes).sum();
            text.push_str(&format!(", {} after conversion", short_size(loaded)));
        }
        text.push('\n');
        if self.unlisted > 0 {
            let unlisted = counted(self.unlisted, "tensor");
            text.push_str(&format!(
                "Not loaded: {unlisted} in the files that their index does not list.\n"
            ));
        }
        text
    }

    /// Columns as wide as their content; bytes are right-aligned.
    fn table(&self) -> String {
        let mut rows = vec![["name", "dtype", "shape", "bytes", "file"].map(str::to_owned)];
        rows.extend(self.tensors.iter().map(LoadListTensor::cells));
        let width = |column: usize| rows.iter().map(|row| display_width(&row[column])).max();
        let widths: [usize; 4] = std::array::from_fn(|column| width(column).unwrap_or(0));
        let line = |[name, dtype, shape, bytes, file]: &[String; 5]| {
            let [name, dtype, shape] = [(name, 0), (dtype, 1), (shape, 2)]
                .map(|(cell, column)| padded_left(cell, widths[column]));
            let padding = " ".repeat(widths[3] - display_width(bytes));
            format!("{name}  {dtype}  {shape}  {padding}{bytes}  {file}\n")
        };
        rows.iter().map(line).collect()
    }
}

impl LoadListTensor {
    fn cells(&self) -> [String; 5] {
        [
            sanitize(&self.name),
            self.types(),
            format!("{:?}", self.shape),
            self.bytes.to_string(),
            sanitize(&self.file),
        ]
    }

    /// The type in the file, and after conversion.
    fn types(&self) -> String {
        let dtype = sanitize(&self.dtype);
        match &self.converted {
            Some(LoadListConverted { to, .. }) => format!("{dtype}→{}", sanitize(to)),
            None => dtype,
        }
    }

    fn loaded_bytes(&self) -> u64 {
        let converted = self.converted.as_ref();
        converted.map_or(self.bytes, |converted| converted.bytes)
    }
}
