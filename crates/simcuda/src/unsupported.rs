//! Functions of the driver API that are exported but not supported: `build.rs` lists those that `api.txt`
//! marks.

use crate::error::NOT_SUPPORTED;
use crate::export_macros::export;
use crate::report;

/// Exports a function for each name, without its arguments.
macro_rules! unsupported {
    ($($name:ident)*) => { $(
        export! { always $name() {
            report::note_unsupported(stringify!($name));
            Err(NOT_SUPPORTED)
        } }
    )* };
}

include!(concat!(env!("OUT_DIR"), "/unsupported.rs"));

// Not found by `cuGetProcAddress`, and so not in `api.txt`.
unsupported! { cuEGLApiInit cuMemGetAttribute cuMemGetAttribute_v2 }
