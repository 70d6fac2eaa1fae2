//! Tar archives, through the dataset.

use std::borrow::Cow;

use pinlane_load::{Dataset, Dtype, Field, SampleError, SampleMut, Tar, TarConfig};

use crate::scratch;
use crate::tensor_file_headers::check_error;

const BLOCK_BYTES: usize = 512;

/// Extensions of the fields; a leading dot does not count.
const EXTENSIONS: [&str; 2] = ["jpg", ".cls"];

/// Bytes that the fields have room for.
const ROOMS: [usize; 2] = [700, 16];

/// An archive, as it is and with correct checksums: a fuzzer does not find those by chance.
pub fn tar(data: &[u8]) {
    open(data);
    if let Cow::Owned(repaired) = with_checksums(data) {
        open(&repaired);
    }
}

/// Opens an archive and reads its samples. A simple archive has those that a simple reader finds.
fn open(archive: &[u8]) {
    let path = scratch::file("tar/w.tar", archive);
    let [image, label] = EXTENSIONS;
    let config = TarConfig::new()
        .field(image, Field::variable("image", Dtype::U8, ROOMS[0]))
        .field(label, Field::variable("label", Dtype::U8, ROOMS[1]));
    let tar = match Tar::open([&path], config) {
        Ok(tar) => tar,
        Err(error) => {
            assert_eq!(error.file(), Some(path.as_path()), "{error}");
            check_error(&error);
            return;
        }
    };
    let expected = simple_samples(archive);
    if let Some(expected) = &expected {
        assert_eq!(tar.len(), expected.len());
    }
    assert!(tar.len() <= archive.len() / BLOCK_BYTES);
    for index in 0..tar.len() {
        assert!(!tar.origin(index).contains(char::is_control));
        let expected = expected.as_ref().map(|samples| &samples[index]);
        match read(&tar, index) {
            Ok(fields) => {
                for (number, field) in fields.iter().enumerate() {
                    let mut blocks = (BLOCK_BYTES..=archive.len()).step_by(BLOCK_BYTES);
                    assert!(blocks.any(|start| archive[start..].starts_with(field)));
                    assert!(expected.is_none_or(|sample| sample[number] == Some(field)));
                }
            }
            Err(error) => {
                assert!(!error.to_string().contains(char::is_control), "{error}");
                let fits = |(field, room): (&Option<&[u8]>, usize)| {
                    field.is_some_and(|bytes| bytes.len() <= room)
                };
                assert!(!expected.is_some_and(|sample| sample.iter().zip(ROOMS).all(fits)));
            }
        }
    }
}

/// The data of both fields.
type SimpleSample<'a> = [Option<&'a [u8]>; 2];

/// The samples of an archive that holds nothing but ordinary files in the oldest format.
fn simple_samples(archive: &[u8]) -> Option<Vec<SimpleSample<'_>>> {
    let (mut samples, mut last_key) = (Vec::new(), None);
    let mut rest = archive;
    while !rest.is_empty() && rest[..BLOCK_BYTES] != [0; BLOCK_BYTES] {
        let (header, after) = rest.split_at(BLOCK_BYTES);
        let name = header[..100].split(|byte| *byte == 0).next()?;
        let name = str::from_utf8(name).ok()?;
        let size = str::from_utf8(&header[124..135]).ok()?;
        let size = usize::from_str_radix(size, 8).ok()?;
        // Nothing may follow the size, and the name must need no rules.
        if header[135] != 0 || header[156] != b'0' || header[257..] != [0; 255] {
            return None;
        }
        let data;
        (data, rest) = after.split_at(size.next_multiple_of(BLOCK_BYTES));
        if name.contains(['/', '_']) || name.starts_with('.') {
            return None;
        }
        let Some((key, extension)) = name.split_once('.') else {
            continue;
        };
        if last_key != Some(key) {
            samples.push([None; 2]);
            last_key = Some(key);
        }
        let is_field = |known: &&str| {
            known
                .trim_start_matches('.')
                .eq_ignore_ascii_case(extension)
        };
        if let Some(number) = EXTENSIONS.iter().position(is_field) {
            let sample: &mut SimpleSample<'_> = samples.last_mut().expect("it was pushed");
            sample[number] = Some(&data[..size]);
        }
    }
    Some(samples)
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
