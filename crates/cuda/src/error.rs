//! Maps libcuda's result codes to errors.
//!
//! Codes are plain numbers: a newer driver may return one that the enum lacks.

use cudarc::driver::sys::CUresult::{self, *};
use pinlane_driver::ErrorKind;

/// The call succeeded.
pub(crate) const SUCCESS: u32 = CUDA_SUCCESS as u32;

/// The work is not done yet.
pub(crate) const NOT_READY: u32 = CUDA_ERROR_NOT_READY as u32;

type Meanings = &'static [(ErrorKind, &'static [CUresult])];

/// Lists kinds of errors with their codes.
macro_rules! meanings {
    ($($kind:ident => [$($code:ident),* $(,)?],)*) => {
        &[$((ErrorKind::$kind, &[$($code),*])),*]
    };
}

/// What codes mean in any call.
const ANYWHERE: Meanings = meanings! {
    NoDriver => [CUDA_ERROR_STUB_LIBRARY],
    NoDevice => [CUDA_ERROR_NO_DEVICE],
    DeviceBusy => [CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_CONTEXT_ALREADY_IN_USE],
    // Broken hardware, or a driver that has shut down.
    DeviceLost => [
        CUDA_ERROR_DEINITIALIZED,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_MPS_CLIENT_TERMINATED,
    ],
    // Each of these is documented to leave the context unusable.
    DeviceFault => [
        CUDA_ERROR_CONTAINED,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_TENSOR_MEMORY_LEAK,
        CUDA_ERROR_EXTERNAL_DEVICE,
    ],
    OutOfMemory => [CUDA_ERROR_OUT_OF_MEMORY],
    AlreadyRegistered => [CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED],
    NotRegistered => [CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED],
    InvalidValue => [
        CUDA_ERROR_INVALID_VALUE,
        CUDA_ERROR_INVALID_DEVICE,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
    ],
    InvalidHandle => [CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_CONTEXT],
    NotFound => [CUDA_ERROR_NOT_FOUND],
    InvalidPtx => [
        CUDA_ERROR_INVALID_IMAGE,
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC,
        CUDA_ERROR_INVALID_SOURCE,
    ],
    NotReady => [CUDA_ERROR_NOT_READY],
    NotSupported => [
        CUDA_ERROR_NOT_SUPPORTED,
        CUDA_ERROR_NOT_PERMITTED,
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
        CUDA_ERROR_JIT_COMPILATION_DISABLED,
    ],
    Capturing => [
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        CUDA_ERROR_STREAM_CAPTURE_MERGE,
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        CUDA_ERROR_CAPTURED_EVENT,
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
    ],
};

/// What differs when registering memory: the platform or the kind of memory does not allow it.
const WHEN_REGISTERING: Meanings = meanings! {
    RegistrationRefused => [
        CUDA_ERROR_INVALID_VALUE,
        CUDA_ERROR_OPERATING_SYSTEM,
        CUDA_ERROR_NOT_PERMITTED,
        CUDA_ERROR_NOT_SUPPORTED,
    ],
};

/// What differs when unregistering memory: the address is known, but not as a base.
const WHEN_UNREGISTERING: Meanings = meanings! { NotRegistered => [CUDA_ERROR_INVALID_VALUE], };

/// What a code means in most calls.
pub(crate) fn kind(code: u32) -> ErrorKind {
    find(ANYWHERE, code).unwrap_or(ErrorKind::Other { code })
}

/// What a code means when registering memory.
pub(crate) fn kind_when_registering(code: u32) -> ErrorKind {
    find(WHEN_REGISTERING, code).unwrap_or_else(|| kind(code))
}

/// What a code means when unregistering memory.
pub(crate) fn kind_when_unregistering(code: u32) -> ErrorKind {
    find(WHEN_UNREGISTERING, code).unwrap_or_else(|| kind(code))
}

fn find(meanings: Meanings, code: u32) -> Option<ErrorKind> {
    let listed = |codes: &[CUresult]| codes.iter().any(|listed| *listed as u32 == code);
    let (kind, _) = meanings.iter().find(|(_, codes)| listed(codes))?;
    Some(kind.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_has_two_meanings() {
        for meanings in [ANYWHERE, WHEN_REGISTERING, WHEN_UNREGISTERING] {
            let codes = meanings.iter().flat_map(|(_, codes)| codes.iter());
            let mut codes: Vec<u32> = codes.map(|code| *code as u32).collect();
            let listed = codes.len();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), listed);
        }
    }

    #[test]
    fn only_errors_that_break_the_context_are_fatal() {
        let fatal = |code| pinlane_driver::Error::new(kind(code), "a call").is_fatal();
        for code in [
            4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719,
        ] {
            assert!(fatal(code), "{code}");
        }
        // An unavailable GPU (46, 100, 101) is not a dead one: memory in flight must not be released
        // on a guess.
        for code in [
            1, 2, 3, 46, 100, 101, 201, 218, 304, 400, 500, 600, 701, 712, 713, 720, 800, 801, 900,
            908, 999,
        ] {
            assert!(!fatal(code), "{code}");
        }
    }

    #[test]
    fn codes_have_their_kinds() {
        use ErrorKind::*;

        let other = |code| (code, Other { code });
        for (code, expected) in [
            (34, NoDriver),
            (100, NoDevice),
            (46, DeviceBusy),
            other(909),
            // An unknown code keeps its number.
            other(123_456),
            other(999),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
        for code in 900..=908 {
            assert_eq!(kind(code), Capturing, "{code}");
        }
        // A refused registration differs from misuse.
        for (code, expected) in [
            (1, RegistrationRefused),
            (304, RegistrationRefused),
            (800, RegistrationRefused),
            (801, RegistrationRefused),
            (2, OutOfMemory),
            (712, AlreadyRegistered),
            (713, NotRegistered),
            (719, DeviceFault),
        ] {
            assert_eq!(kind_when_registering(code), expected, "{code}");
        }
        // An address that is no base is one kind, known to the driver or not.
        for (code, expected) in [(1, NotRegistered), (713, NotRegistered), (719, DeviceFault)] {
            assert_eq!(kind_when_unregistering(code), expected, "{code}");
        }
    }
}
