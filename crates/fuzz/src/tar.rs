//! Tar archives, through the dataset.

use std::borrow::Cow;

use pinlane_load::{Dataset, Dtype, Field, SampleError, SampleMut, Tar, TarConfig};

use crate::catalog::check_error;
use crate::scratch;

const BLOCK_BYTES: usize = 512;

/// Bytes that the fields have room for.
const ROOMS: [usize; 2] = [700, 16];

/// An archive, as it is and with correct checksums: a fuzzer does not find those by chance.
pub fn tar(data: &[u8]) {
    open(data);
    if let Cow::Owned(repaired) = with_checksums(data) {
        open(&repaired);
    }
}

/// Opens an archive. Every field of its samples is somewhere in it, at the start of a block.
fn open(archive: &[u8]) {
    let path = scratch::file("tar/w.tar", archive);
    let config = TarConfig::new()
        .field("jpg", Field::variable("image", Dtype::U8, ROOMS[0]))
        .field(".cls", Field::variable("label", Dtype::U8, ROOMS[1]));
    let tar = match Tar::open([&path], config) {
        Ok(tar) => tar,
        Err(error) => {
            assert_eq!(error.file(), Some(path.as_path()), "{error}");
            check_error(&error);
            return;
        }
    };
    assert!(tar.len() <= archive.len() / BLOCK_BYTES);
    for index in 0..tar.len() {
        assert!(!tar.origin(index).contains(char::is_control));
        let fields = match read(&tar, index) {
            Ok(fields) => fields,
            Err(error) => {
                assert!(!error.to_string().contains(char::is_control), "{error}");
                continue;
            }
        };
        for field in fields {
            let mut blocks = (BLOCK_BYTES..=archive.len()).step_by(BLOCK_BYTES);
            assert!(blocks.any(|start| archive[start..].starts_with(&field)));
        }
    }
}

fn read(tar: &Tar, index: usize) -> Result<[Vec<u8>; 2], SampleError> {
    let mut places = ROOMS.map(|bytes| vec![0xee; bytes]);
    let mut sample = SampleMut::new();
    for (place, field) in places.iter_mut().zip(tar.fields()) {
        sample.push(field, place);
    }
    tar.read(index, &mut sample)?;
    let written = [0, 1].map(|field| sample.written(field).expect("it is written"));
    for (place, bytes) in places.iter_mut().zip(written) {
        place.truncate(bytes);
    }
    Ok(places)
}

/// The archive with the checksum of each header in it, as far as the sizes of the headers lead.
fn with_checksums(archive: &[u8]) -> Cow<'_, [u8]> {
    let mut archive = Cow::Borrowed(archive);
    let mut at = 0;
    while let Some(block) = archive.get(at..at + BLOCK_BYTES)
        && block.iter().any(|byte| *byte != 0)
    {
        let sum = block[..148].iter().chain(&block[156..]);
        let sum: u32 = sum.map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
        let text = format!("{sum:06o}\0 ");
        let size = block[124..135].iter().try_fold(0, |size, byte| match byte {
            b'0'..=b'7' => Some(size * 8 + usize::from(byte - b'0')),
            _ => None,
        });
        if block[148..156] != *text.as_bytes() {
            archive.to_mut()[at + 148..at + 156].copy_from_slice(text.as_bytes());
        }
        let Some(size) = size else {
            break;
        };
        at += BLOCK_BYTES + size.next_multiple_of(BLOCK_BYTES);
    }
    archive
}
