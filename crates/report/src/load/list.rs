//! `load --list`: the tensors of files.

use serde::Serialize;

use super::text::tensors_in_files;
use crate::format::{counted, display_width, padded_left, sanitize, short_size};

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
        let mut rows = vec![["name", "dtype", "shape", "bytes", "file"].map(str::to_owned)];
        for tensor in &self.tensors {
            rows.push([
                sanitize(&tensor.name),
                tensor.types(),
                format!("{:?}", tensor.shape),
                tensor.bytes.to_string(),
                sanitize(&tensor.file),
            ]);
        }
        let mut text = String::new();
        if !self.tensors.is_empty() {
            text.push_str(&table(&rows));
        }
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
}

impl LoadListTensor {
    /// The type in the file, and after conversion.
    fn types(&self) -> String {
        let dtype = sanitize(&self.dtype);
        match &self.converted {
            Some(LoadListConverted { to, .. }) => format!("{dtype}→{}", sanitize(to)),
            None => dtype,
        }
    }

    fn loaded_bytes(&self) -> u64 {
        self.converted
            .as_ref()
            .map_or(self.bytes, |converted| converted.bytes)
    }
}

/// Columns as wide as their content; bytes are right-aligned.
fn table(rows: &[[String; 5]]) -> String {
    let width = |column: usize| rows.iter().map(|row| display_width(&row[column])).max();
    let [name, dtype, shape, bytes, _] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &[String; 5]| {
        let padding = " ".repeat(bytes - display_width(&row[3]));
        format!(
            "{}  {}  {}  {padding}{}  {}\n",
            padded_left(&row[0], name),
            padded_left(&row[1], dtype),
            padded_left(&row[2], shape),
            row[3],
            row[4]
        )
    };
    rows.iter().map(line).collect()
}
