//! Buffered and direct reads give the same bytes.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use pinlane::load::{Dtype, Io, LoadErrorKind, Weights};

use super::rig::{Rig, config, model};
use super::support::Scratch;

/// Evicts a range of a file from the page cache.
fn drop_from_cache(path: &Path, bytes: std::ops::Range<u64>) {
    if bytes.is_empty() {
        return; // a length of 0 means the whole file
    }
    let file = File::open(path).expect("the file");
    file.sync_all().expect("our own file");
    let (start, len) = (bytes.start as i64, (bytes.end - bytes.start) as i64);
    // SAFETY: advice about an open file.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), start, len, libc::POSIX_FADV_DONTNEED) };
}

#[test]
fn every_mode_gives_the_same_bytes() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let path = model(&scratch);
    let weights = Weights::open(&path).expect("a good file");
    let total: u64 = weights.tensors().iter().map(|info| info.len_bytes()).sum();
    let half = weights.catalog().files()[0].len_bytes() / 2;
    for io in [Io::Buffered, Io::Direct, Io::Auto] {
        for threads in [1, 2, 4] {
            for (cold, to) in [
                (0..0, None),
                (0..half, Some(Dtype::F32)),
                (0..2 * half, None),
            ] {
                drop_from_cache(&path, cold);
                let mut config = config(threads).io(io);
                config.convert = to;
                let tensors = match weights.load(&rig.device, &config) {
                    Ok(tensors) => tensors,
                    Err(error) => {
                        let refused =
                            matches!(error.kind(), LoadErrorKind::DirectIoUnsupported { .. });
                        assert!(refused && io == Io::Direct, "{error}");
                        assert_eq!(error.file(), Some(path.as_path()));
                        println!("skipped: {error}");
                        continue;
                    }
                };
                tensors
                    .iter()
                    .for_each(|tensor| rig.check(&weights, tensor, &config));
                let stats = tensors.stats();
                assert_eq!(stats.bytes(), total);
                match io {
                    Io::Buffered => assert_eq!(stats.direct_bytes, 0),
                    Io::Direct => assert_eq!(stats.buffered_bytes, 0),
                    _ => {}
                }
            }
        }
    }
    rig.assert_clean();
}

/// Rows that start and end anywhere in a page, up to the end of the file.
#[test]
fn direct_reads_of_any_rows() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let whole = Weights::open(model(&scratch)).expect("a good file");
    for name in ["h.0.w", "deep", "h.1.w", "tail"] {
        let tensor = whole.catalog().tensor(name).expect("there").clone();
        let rows = tensor.shape()[0];
        let parts = [
            (0, 1),
            (rows / 3, rows / 3 + 1),
            (1, rows),
            (rows - 1, rows),
        ];
        for (start, end) in parts {
            let part = tensor.rows(start..end).expect("rows");
            let weights = whole.clone().only(vec![part]);
            for config in [config(1), config(1).convert(Dtype::F64)] {
                let config = config.io(Io::Direct);
                match weights.load(&rig.device, &config) {
                    Ok(tensors) => rig.check(&weights, &tensors[name], &config),
                    Err(error) => {
                        assert!(
                            matches!(error.kind(), LoadErrorKind::DirectIoUnsupported { .. }),
                            "{error}"
                        );
                        println!("skipped: {error}");
                    }
                }
            }
        }
    }
    rig.assert_clean();
}

/// tmpfs supports direct I/O, or reports that it does not.
#[test]
fn direct_io_on_tmpfs() {
    let memory = Path::new("/dev/shm");
    let name = format!("pinlane-weights-{}.safetensors", std::process::id());
    let path = memory.join(name);
    let scratch = Scratch::new();
    if std::fs::copy(model(&scratch), &path).is_err() {
        println!("skipped: no {}", memory.display());
        return;
    }
    let rig = Rig::new();
    let weights = Weights::open(&path).expect("a good file");
    rig.load(&weights, &config(2).io(Io::Auto));
    let direct = config(2).io(Io::Direct);
    match weights.load(&rig.device, &direct) {
        Ok(tensors) => assert_eq!(tensors.stats().buffered_bytes, 0),
        Err(error) => {
            assert!(
                matches!(error.kind(), LoadErrorKind::DirectIoUnsupported { .. }),
                "{error}"
            );
            assert_eq!(error.file(), Some(path.as_path()));
        }
    }
    std::fs::remove_file(&path).expect("our own file");
    rig.assert_clean();
}
