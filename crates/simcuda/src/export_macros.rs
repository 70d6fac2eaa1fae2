//! Macros that define exported functions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Outcome, SUCCESS, UNKNOWN};
use crate::machine;

/// Runs the body of an exported function. Panics do not cross into C. Fails if the settings make the
/// GPU lost.
pub fn guard(body: impl FnOnce() -> Outcome<()>) -> u32 {
    always(|| {
        machine::count_call()?;
        body()
    })
}

/// As [`guard`], for functions that also work when the GPU is lost.
pub fn always(body: impl FnOnce() -> Outcome<()>) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS.0,
        Ok(Err(code)) => code.0,
        Err(_) => UNKNOWN.0,
    }
}

/// Defines one exported function. In C's calling convention it may leave out arguments at the end that it
/// does not use.
macro_rules! export {
    ($wrapper:ident $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        #[allow(non_snake_case)] // the driver's own name
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type),*) -> u32 {
            crate::export_macros::$wrapper(move || $body)
        }
    };
}

/// Defines exported functions: `fn cuName(argument: Type, …) { body that returns Outcome<()> }`, or
/// `fn cuName(…), also cuOtherName { … }`. The first line names the wrapper, [`guard`] or [`always`].
macro_rules! exports {
    (through $wrapper:ident; $(
        $(#[$meta:meta])* fn $name:ident $arguments:tt $(, also $other:ident)* $body:block
    )*) => { $(
        crate::export_macros::export! { $wrapper $name $arguments $body }
        $(crate::export_macros::export! { $wrapper $other $arguments $body })*
    )* };
}

/// Defines pairs of exported functions that differ in the meaning of stream 0: the legacy default
/// stream for the first name, the thread's own for the second. `[stream = handle]` is the stream that
/// the body gets, by the program's handle.
macro_rules! exports_by_default_stream {
    ($(
        $(#[$meta:meta])* fn $name:ident, $per_thread:ident $arguments:tt
        $(, also $other:ident, $other_per_thread:ident)*
        [$stream:ident = $handle:expr] $body:block
    )*) => {
        crate::export_macros::exports! { through guard; $(
            fn $name $arguments $(, also $other)* {
                let $stream = crate::stream::StreamRef::find($handle, crate::stream::LEGACY)?;
                $body
            }
            fn $per_thread $arguments $(, also $other_per_thread)* {
                let $stream = crate::stream::StreamRef::find($handle, crate::stream::PER_THREAD)?;
                $body
            }
        )* }
    };
}

pub(crate) use {export, exports, exports_by_default_stream};
