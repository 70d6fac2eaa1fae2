//! A device, files to load, and checks of the result.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pinlane::load::{
    Dtype, LoadConfig, LoadError, LoadErrorKind, Tensor, TensorInfo, Tensors, Weights,
};
use pinlane::{Error, Stream};
use pinlane_kernels::convert::{FloatKind, floats};

use super::support::{Scratch, written};

/// Smallest piece size.
pub const PIECE_BYTES: usize = 16 << 10;

/// Tensors of many types, most at odd offsets; about nine pieces of the smallest size.
pub const MODEL: [(&str, Dtype, &[u64]); 10] = [
    ("odd", Dtype::U8, &[5]),
    ("h.0.w", Dtype::F32, &[70, 100]),
    ("h.0.b", Dtype::F16, &[9001]),
    ("flag", Dtype::Bool, &[1]),
    ("h.1.w", Dtype::Bf16, &[100, 83]),
    ("none", Dtype::F32, &[0, 7]),
    ("one", Dtype::F64, &[]),
    ("h.1.ids", Dtype::I64, &[3001]),
    ("deep", Dtype::F64, &[11, 500]),
    ("tail", Dtype::I8, &[3]),
];

#[path = "../support/rig.rs"]
mod device;

pub use device::Rig;

impl Rig {
    /// Loads everything and compares every byte.
    #[track_caller]
    pub fn load(&self, weights: &Weights, config: &LoadConfig) -> Tensors {
        let tensors = weights.load(&self.device, config).expect("no fault");
        for tensor in tensors.iter() {
            self.check(weights, tensor, config);
        }
        tensors
    }

    /// Checks that the tensor matches its file.
    #[track_caller]
    pub fn check(&self, weights: &Weights, tensor: &Tensor, config: &LoadConfig) {
        check(&self.stream, weights, tensor, config).expect("the device is alive");
    }
}

/// Checks that the tensor matches its file.
#[track_caller]
pub fn check(
    stream: &Stream,
    weights: &Weights,
    tensor: &Tensor,
    config: &LoadConfig,
) -> pinlane::Result<()> {
    let (info, name) = (tensor.info(), tensor.name());
    let (dtype, bytes) = expected(weights, info, config.convert);
    assert_eq!(tensor.dtype(), dtype, "{name}");
    assert_eq!(tensor.shape(), info.shape(), "{name}");
    let found = stream.copy_to_vec(tensor.bytes())?;
    pinlane_testing::assert_same(&found, &bytes, &format!("{name}, {config:?}"));
    Ok(())
}

/// Expected type and bytes of a tensor on the device.
pub fn expected(weights: &Weights, info: &TensorInfo, convert: Option<Dtype>) -> (Dtype, Vec<u8>) {
    let file = &weights.catalog().files()[info.file()];
    let stored = read(file.path(), info);
    let to = convert.filter(|_| float_kind(info.dtype()).is_some());
    let Some((to, (from_kind, to_kind))) =
        to.and_then(|to| Some((to, (float_kind(info.dtype())?, float_kind(to)?))))
    else {
        return (info.dtype(), stored);
    };
    let mut converted = vec![0; stored.len() / from_kind.bytes() * to_kind.bytes()];
    floats(from_kind, to_kind, &stored, &mut converted);
    (to, converted)
}

/// The bytes of a tensor in its file.
pub fn read(path: &Path, info: &TensorInfo) -> Vec<u8> {
    let file = File::open(path).expect("the file");
    let mut bytes = vec![0; info.len_bytes() as usize];
    file.read_exact_at(&mut bytes, info.bytes().start)
        .expect("inside of the file");
    bytes
}

pub fn float_kind(dtype: Dtype) -> Option<FloatKind> {
    match dtype {
        Dtype::F16 => Some(FloatKind::F16),
        Dtype::Bf16 => Some(FloatKind::Bf16),
        Dtype::F32 => Some(FloatKind::F32),
        Dtype::F64 => Some(FloatKind::F64),
        _ => None,
    }
}

/// This many threads, smallest pieces.
pub fn config(threads: usize) -> LoadConfig {
    LoadConfig::default()
        .threads(threads)
        .piece_bytes(PIECE_BYTES)
}

/// A file with these tensors and an old modification time, so that any later write shows.
pub fn file(
    scratch: &Scratch,
    name: &str,
    tensors: &[(&str, Dtype, &[u64])],
    seed: u64,
) -> PathBuf {
    let path = scratch.file(name, written(tensors, seed));
    set_old(&path);
    path
}

/// The file of [`MODEL`].
pub fn model(scratch: &Scratch) -> PathBuf {
    file(scratch, "model.safetensors", &MODEL, 7)
}

/// Sets an old modification time.
pub fn set_old(path: &Path) {
    let file = File::options().write(true).open(path).expect("the file");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(long_ago).expect("our own file");
}

/// The device's error.
pub fn device_error(error: &LoadError) -> &Error {
    match error.kind() {
        LoadErrorKind::Device { error } => error,
        other => panic!("not of the device: {other:?}"),
    }
}
