//! Hides exported symbols of a shared library, as if it were an older version.

use std::path::Path;
use std::{fs, io};

/// Size of a symbol table entry in a 64-bit ELF file.
const SYMBOL_BYTES: usize = 24;
/// Type of the section with exported and imported symbols.
const SECTION_DYNSYM: u32 = 11;

/// Copies a library from `source` to `target` so that `dlsym` does not find `symbols` in the copy:
/// their entries become unused imports.
///
/// # Errors
/// If a file cannot be read or written, is not a 64-bit little-endian ELF file, or does not export
/// one of the symbols.
pub fn omit(source: &Path, target: &Path, symbols: &[&str]) -> io::Result<()> {
    let mut image = fs::read(source)?;
    let invalid = |what: &str| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {what}", source.display()),
        )
    };
    if !image.starts_with(b"\x7fELF\x02\x01") {
        return Err(invalid("not a 64-bit little-endian ELF file"));
    }
    for symbol in symbols {
        let entry = find(&image, symbol).ok_or_else(|| invalid(&format!("no export {symbol}")))?;
        // Section index, value and size: an undefined symbol without address.
        image[entry + 6..entry + SYMBOL_BYTES].fill(0);
    }
    fs::write(target, image)
}

/// The offset of a symbol's entry in the symbol table.
fn find(image: &[u8], name: &str) -> Option<usize> {
    let table = sections(image)?.find(|section| section.kind == SECTION_DYNSYM)?;
    let strings = sections(image)?.nth(table.link)?;
    let entries = (table.offset..table.offset + table.bytes).step_by(SYMBOL_BYTES);
    entries.into_iter().find(|entry| {
        let start = number(image, *entry, 4).map(|offset| strings.offset + offset);
        let rest = start.and_then(|start| image.get(start..));
        let is_defined = number(image, entry + 6, 2) != Some(0);
        let wanted =
            |rest: &[u8]| rest.starts_with(name.as_bytes()) && rest.get(name.len()) == Some(&0);
        is_defined && rest.is_some_and(wanted)
    })
}

/// The relevant fields of a section header.
struct Section {
    kind: u32,
    offset: usize,
    bytes: usize,
    link: usize,
}

fn sections(image: &[u8]) -> Option<impl Iterator<Item = Section>> {
    let start = number(image, 0x28, 8)?;
    let header_bytes = number(image, 0x3a, 2)?;
    let count = number(image, 0x3c, 2)?;
    Some((0..count).map_while(move |index| {
        let header = start + index * header_bytes;
        Some(Section {
            kind: number(image, header + 4, 4)? as u32,
            offset: number(image, header + 0x18, 8)?,
            bytes: number(image, header + 0x20, 8)?,
            link: number(image, header + 0x28, 4)?,
        })
    }))
}

/// A little-endian number of up to 8 bytes.
fn number(image: &[u8], offset: usize, bytes: usize) -> Option<usize> {
    let field = image.get(offset..offset.checked_add(bytes)?)?;
    let digits = field.iter().rev();
    Some(digits.fold(0, |number, byte| number << 8 | usize::from(*byte)))
}
