//! Extended headers of POSIX: lines of `length key=value`.

/// What matters here of an extended header.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) bytes: Option<u64>,
    /// The entry's data is not the file's, but parts of it with holes between them.
    pub(super) sparse: bool,
}

/// The last of several lines with one key counts. `None` if it cannot be understood.
pub(super) fn parse(mut text: &[u8]) -> Option<Pax> {
    let mut pax = Pax::default();
    while !text.is_empty() {
        let (line, behind) = line(text)?;
        let equals = line.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (&line[..equals], &line[equals + 1..]);
        match key {
            b"path" => pax.path = Some(value.to_vec()).filter(|path| !path.is_empty()),
            b"size" => pax.bytes = Some(decimal(value)?),
            _ if key.starts_with(b"GNU.sparse.") => pax.sparse = true,
            _ => {}
        }
        text = behind;
    }
    Some(pax)
}

/// The first line without its length and its end, and what is behind it.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = text.iter().position(|byte| *byte == b' ')?;
    let length = usize::try_from(decimal(&text[..blank])?).ok()?;
    let (line, behind) = text.split_at_checked(length)?;
    Some((line.get(blank + 1..)?.strip_suffix(b"\n")?, behind))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits)
        .ok()?
        .parse()
        .ok()
        .filter(|_| plain)
}
