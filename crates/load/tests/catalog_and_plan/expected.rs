//! Contents of the files written by the real Python packages, as these read them back.

use std::fs;

use super::support::data;

/// A line of `expected.tsv`.
pub struct Expected {
    pub file: String,
    pub tensor: String,
    pub dtype: String,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

/// All lines.
pub fn expected() -> Vec<Expected> {
    let text = fs::read_to_string(data().join("expected.tsv")).expect("the list");
    let lines = text.lines().map(|line| {
        let [file, tensor, dtype, shape, hex] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("five columns: {line}");
        };
        let numbers = shape.split(',').filter(|dim| !dim.is_empty());
        let pairs = (0..hex.len()).step_by(2);
        Expected {
            file: file.to_owned(),
            tensor: serde_json::from_str(tensor).expect("a string"),
            dtype: dtype.to_owned(),
            shape: numbers.map(|dim| dim.parse().expect("a number")).collect(),
            bytes: pairs
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
                .collect(),
        }
    });
    lines.collect()
}
