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

/// Defines exported functions: `fn cuName(argument: Type, …) { body that returns Outcome<()> }`. The
/// first line names the wrapper, [`guard`] or [`always`].
macro_rules! exports {
    (through $wrapper:ident; $(
        $(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block
    )*) => { $(
        $(#[$meta])*
        #[allow(non_snake_case)] // the driver's own name
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type),*) -> u32 {
            crate::exports::$wrapper(move || $body)
        }
    )* };
}

/// Defines pairs of exported functions that differ in the meaning of stream 0, which the body gets as
/// `|mode|`: the legacy default stream for the first name, the thread's own for the second.
macro_rules! exports_by_default_stream {
    ($(
        $(#[$meta:meta])* fn $name:ident, $per_thread:ident($($arg:ident: $type:ty),* $(,)?)
        |$mode:ident| $body:block
    )*) => { $(
        $(#[$meta])*
        #[allow(non_snake_case)] // the driver's own name
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $type),*) -> u32 {
            let $mode = crate::stream::DefaultStream::Legacy;
            crate::exports::guard(move || $body)
        }

        $(#[$meta])*
        #[allow(non_snake_case)] // the driver's own name
        #[unsafe(no_mangle)]
        pub extern "C" fn $per_thread($($arg: $type),*) -> u32 {
            let $mode = crate::stream::DefaultStream::PerThread;
            crate::exports::guard(move || $body)
        }
    )* };
}

pub(crate) use {exports, exports_by_default_stream};
