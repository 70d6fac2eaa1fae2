//! Entries too large for octal sizes, in sparse files.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use pinlane::load::{Dataset, Dtype, Field, LoadErrorKind, Tar, TarConfig, TarError};

use super::support::{Scratch, data, entry, sample, sample_fault};

#[test]
fn entries_past_eight_gigabytes() {
    let large_bytes: u64 = (8 << 30) + 1;
    for name in ["large-gnu.head", "large-pax.head"] {
        let head = fs::read(data().join("tar").join(name)).expect("the header");
        let scratch = Scratch::new();
        let path = scratch.file("large.tar", &head);
        let file = File::options().write(true).open(&path).expect("the file");
        let behind = head.len() as u64 + large_bytes.next_multiple_of(512);
        file.write_all_at(&entry(b'0', b"small.bin", b"1234"), behind)
            .expect("it is written");

        let config = TarConfig::new().field("bin", Field::fixed("number", Dtype::U32, []));
        let tar = Tar::open([path], config).expect("a good archive");
        assert_eq!(tar.len(), 2, "{name}");
        match sample_fault(&tar, 0) {
            LoadErrorKind::Tar(TarError::Length { bytes, .. }) => assert_eq!(bytes, large_bytes),
            other => panic!("{other}"),
        }
        assert_eq!(sample(&tar, 1), [b"1234"]);
    }
}
