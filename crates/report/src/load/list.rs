//! What is in files.

use serde::Serialize;

use super::text::{count, tensors_of_files};
use crate::SCHEMA_VERSION;
use crate::format::amount;
use crate::timeline::layout::words::{clean, columns};

/// A tensor in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadListTensor {
    /// Its name.
    pub name: String,
    /// Type of its elements, as safetensors files name it.
    pub dtype: String,
    /// Its dimensions, the slowest first.
    pub shape: Vec<u64>,
    /// Its bytes in the file.
    pub bytes: u64,
    /// What it becomes on the way, where that is another type.
    pub converted: Option<LoadListConverted>,
    /// Its file.
    pub file: String,
}

/// What a tensor becomes on the way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadListConverted {
    /// The type.
    pub to: String,
    /// Its bytes then.
    pub bytes: u64,
}

/// What is in files, from their headers alone. No device is behind it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoadList {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Files that have some of the tensors.
    pub files: u64,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// Tensors that the files have and their index does not name there, so that they are not
    /// loaded.
    pub unlisted: u64,
    /// File by file, in the order of their bytes.
    pub tensors: Vec<LoadListTensor>,
}

impl LoadList {
    /// A list of these, of so many files.
    #[must_use]
    pub fn new(files: u64, unlisted: u64, tensors: Vec<LoadListTensor>) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            files,
            bytes: tensors.iter().map(|tensor| tensor.bytes).sum(),
            unlisted,
            tensors,
        }
    }

    /// The list as JSON, over several lines, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("plain data becomes JSON");
        json.push('\n');
        json
    }

    /// A table, a line for each tensor, and how many there are.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut rows = vec![["name", "dtype", "shape", "bytes", "file"].map(str::to_owned)];
        for tensor in &self.tensors {
            rows.push([
                clean(&tensor.name),
                tensor.types(),
                format!("{:?}", tensor.shape),
                tensor.bytes.to_string(),
                clean(&tensor.file),
            ]);
        }
        let mut text = String::new();
        if !self.tensors.is_empty() {
            text.push_str(&table(&rows));
        }
        let tensors = self.tensors.len() as u64;
        text.push_str(&tensors_of_files(tensors, self.files, self.bytes));
        if self.tensors.iter().any(|tensor| tensor.converted.is_some()) {
            let loaded = self.tensors.iter().map(LoadListTensor::loaded_bytes).sum();
            text.push_str(&format!(", {} as they are loaded", amount(loaded)));
        }
        text.push('\n');
        if self.unlisted > 0 {
            let more = count(self.unlisted, "tensor");
            text.push_str(&format!(
                "The files have {more} more, which their index does not name there.\n"
            ));
        }
        text
    }
}

impl LoadListTensor {
    /// The type in the file, and what becomes of it.
    fn types(&self) -> String {
        let dtype = clean(&self.dtype);
        match &self.converted {
            Some(LoadListConverted { to, .. }) => format!("{dtype}→{}", clean(to)),
            None => dtype,
        }
    }

    /// Bytes of it that are loaded.
    fn loaded_bytes(&self) -> u64 {
        self.converted
            .as_ref()
            .map_or(self.bytes, |converted| converted.bytes)
    }
}

/// Columns as wide as what is in them, numbers of bytes to the right, the last column open.
fn table(rows: &[[String; 5]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| columns(&row[column]));
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        for (number, (cell, width)) in row.iter().zip(widths).enumerate() {
            let pad = " ".repeat(width - columns(cell));
            match number {
                3 => text.push_str(&format!("{pad}{cell}  ")),
                4 => text.push_str(cell),
                _ => text.push_str(&format!("{cell}{pad}  ")),
            }
        }
        text.push('\n');
    }
    text
}
