//! Files that are truncated, modified, replaced or removed, before and during the load.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinlane::Device;
use pinlane::load::{Dtype, Io, LoadErrorKind, Weights};
use pinlane_driver::{Call, Hook, Intercepted, Result};

use super::rig::{MODEL, Rig, config, file, model};
use super::support::Scratch;
use pinlane_testing::{must_return, sim};

/// A change to a file.
type Change = fn(&Path);

fn shrink(path: &Path) {
    let file = File::options().write(true).open(path).expect("the file");
    let bytes = file.metadata().expect("our own file").len();
    file.set_len(bytes - 20_000).expect("our own file");
}

fn empty(path: &Path) {
    let file = File::options().write(true).open(path).expect("the file");
    file.set_len(0).expect("our own file");
}

fn grow(path: &Path) {
    let file = File::options().write(true).open(path).expect("the file");
    let bytes = file.metadata().expect("our own file").len();
    file.set_len(bytes + 1).expect("our own file");
}

fn write(path: &Path) {
    let file = File::options().write(true).open(path).expect("the file");
    let bytes = file.metadata().expect("our own file").len();
    file.write_all_at(&[1], bytes - 1).expect("our own file");
}

fn replace(path: &Path) {
    let other = path.with_extension("other");
    fs::copy(path, &other).expect("our own folder");
    fs::rename(other, path).expect("our own folder");
}

fn become_a_pipe(path: &Path) {
    fs::remove_file(path).expect("our own file");
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo is everywhere").success());
}

fn remove(path: &Path) {
    fs::remove_file(path).expect("our own file");
}

#[test]
fn changes_before_the_load() {
    let changes: [(Change, bool); 7] = [
        (shrink, true),
        (empty, true),
        (grow, true),
        (write, true),
        (replace, true),
        (become_a_pipe, true),
        (remove, false),
    ];
    for (change, is_change) in changes {
        let scratch = Scratch::new();
        let rig = Rig::new();
        let path = model(&scratch);
        let weights = Weights::open(&path).expect("a good file");
        change(&path);
        for io in [Io::Auto, Io::Buffered, Io::Direct] {
            let config = config(2).io(io);
            let (weights, device) = (weights.clone(), rig.device.clone());
            let loaded = must_return(move || weights.load(&device, &config));
            let error = loaded.expect_err("not what it was");
            assert_eq!(error.file(), Some(path.as_path()));
            match is_change {
                true => assert_eq!(error.kind(), &LoadErrorKind::FileChanged),
                false => assert!(matches!(
                    error.kind(),
                    LoadErrorKind::Io { action: "open", .. }
                )),
            }
        }
        rig.assert_clean();
    }
}

#[test]
fn unreadable_files() {
    let scratch = Scratch::new();
    let rig = Rig::new();
    let path = model(&scratch);
    let weights = Weights::open(&path).expect("a good file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("our own file");
    if File::open(&path).is_ok() {
        println!("skipped: this user may read everything");
        return;
    }
    let error = weights
        .load(&rig.device, &config(2))
        .expect_err("not readable");
    assert_eq!(error.file(), Some(path.as_path()));
    let denied = std::io::ErrorKind::PermissionDenied;
    assert!(
        matches!(error.kind(), LoadErrorKind::Io { kind, .. } if *kind == denied),
        "{error}"
    );
    rig.assert_clean();
}

/// Changes a file when a certain copy is submitted.
struct AtCopy {
    at: u64,
    copies: Arc<AtomicU64>,
    path: PathBuf,
    change: Change,
}

// SAFETY: it never fails.
unsafe impl Hook for AtCopy {
    fn before(&self, call: Call) -> Result<()> {
        if call == Call::CopyAsync && self.copies.fetch_add(1, Ordering::SeqCst) == self.at {
            (self.change)(&self.path);
        }
        Ok(())
    }
}

/// A device where submitting a copy changes a file.
fn changing(path: &Path, at: u64, change: Change) -> (Rig, Arc<AtomicU64>) {
    let sim = sim();
    let copies = Arc::new(AtomicU64::new(0));
    let hook = AtCopy {
        at,
        copies: Arc::clone(&copies),
        path: path.to_owned(),
        change,
    };
    let driver = Intercepted::new(sim.driver(), hook);
    let device = Device::from_driver(Arc::new(driver));
    (Rig::with(sim, device), copies)
}

#[test]
fn changes_during_the_load() {
    let changes: [Change; 4] = [shrink, empty, grow, write];
    for change in changes {
        for io in [Io::Auto, Io::Buffered, Io::Direct] {
            for threads in [1, 3] {
                must_return(move || {
                    let scratch = Scratch::new();
                    let path = many(&scratch);
                    let (rig, copies) = changing(&path, 20, change);
                    let weights = Weights::open(&path).expect("a good file");
                    let config = config(threads).io(io);
                    let landing = weights.start(&rig.device, &config).expect("it starts");
                    let mut tensors = Vec::new();
                    let mut errors = Vec::new();
                    for tensor in landing {
                        match tensor {
                            Ok(tensor) => tensors.push(tensor.name().to_owned()),
                            Err(error) => errors.push(error),
                        }
                    }
                    let [error] = &errors[..] else {
                        panic!("{errors:?}");
                    };
                    assert_eq!(error.kind(), &LoadErrorKind::FileChanged);
                    assert_eq!(error.file(), Some(path.as_path()));
                    assert!(
                        error
                            .tensor()
                            .is_some_and(|name| !tensors.iter().any(|n| n == name))
                    );
                    assert!(tensors.len() < 40, "not all of them came");
                    assert!(threads > 1 || !tensors.is_empty(), "those before it did");
                    assert!(copies.load(Ordering::SeqCst) >= 21);
                    rig.assert_clean();
                });
            }
        }
    }
}

/// Forty pieces with one tensor each.
fn many(scratch: &Scratch) -> PathBuf {
    let names: Vec<String> = (0..40).map(|number| format!("h.{number:02}")).collect();
    let tensors: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), Dtype::U8, &[16_384_u64][..]))
        .collect();
    file(scratch, "many.safetensors", &tensors, 3)
}

/// An open file keeps its contents when its path is replaced.
#[test]
fn a_file_replaced_during_the_load_is_read_to_its_end() {
    for change in [replace, remove] {
        let scratch = Scratch::new();
        let path = model(&scratch);
        let (rig, copies) = changing(&path, 2, change);
        let weights = Weights::open(&path).expect("a good file");
        let kept = path.with_extension("kept");
        fs::hard_link(&path, &kept).expect("our own folder");
        let tensors = weights.load(&rig.device, &config(1)).expect("it is open");
        assert!(copies.load(Ordering::SeqCst) > 2);
        let same = Weights::open(&kept).expect("the same file");
        for tensor in tensors.iter() {
            rig.check(&same, tensor, &config(1));
        }
        assert_eq!(tensors.len(), MODEL.len());
        drop(tensors);
        rig.assert_clean();
    }
}
