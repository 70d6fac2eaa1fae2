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

/// What codes mean in any call.
const ANYWHERE: Meanings = &[
    (ErrorKind::NoDriver, &[CUDA_ERROR_STUB_LIBRARY]),
    (ErrorKind::NoDevice, &[CUDA_ERROR_NO_DEVICE]),
    (
        ErrorKind::DeviceBusy,
        &[
            CUDA_ERROR_DEVICE_UNAVAILABLE,
            CUDA_ERROR_CONTEXT_ALREADY_IN_USE,
        ],
    ),
    // Broken hardware, or a driver that has shut down.
    (
        ErrorKind::DeviceLost,
        &[
            CUDA_ERROR_DEINITIALIZED,
            CUDA_ERROR_ECC_UNCORRECTABLE,
            CUDA_ERROR_NVLINK_UNCORRECTABLE,
            CUDA_ERROR_CONTEXT_IS_DESTROYED,
            CUDA_ERROR_MPS_CLIENT_TERMINATED,
        ],
    ),
    // Each of these is documented to leave the context unusable.
    (
        ErrorKind::DeviceFault,
        &[
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
    ),
    (ErrorKind::OutOfMemory, &[CUDA_ERROR_OUT_OF_MEMORY]),
    (
        ErrorKind::AlreadyRegistered,
        &[CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED],
    ),
    (
        ErrorKind::NotRegistered,
        &[CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED],
    ),
    (
        ErrorKind::InvalidValue,
        &[
            CUDA_ERROR_INVALID_VALUE,
            CUDA_ERROR_INVALID_DEVICE,
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        ],
    ),
    (
        ErrorKind::InvalidHandle,
        &[CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_CONTEXT],
    ),
    (ErrorKind::NotFound, &[CUDA_ERROR_NOT_FOUND]),
    (
        ErrorKind::InvalidPtx,
        &[
            CUDA_ERROR_INVALID_IMAGE,
            CUDA_ERROR_NO_BINARY_FOR_GPU,
            CUDA_ERROR_INVALID_PTX,
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC,
            CUDA_ERROR_INVALID_SOURCE,
        ],
    ),
    (ErrorKind::NotReady, &[CUDA_ERROR_NOT_READY]),
    (
        ErrorKind::NotSupported,
        &[
            CUDA_ERROR_NOT_SUPPORTED,
            CUDA_ERROR_NOT_PERMITTED,
            CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
            CUDA_ERROR_JIT_COMPILATION_DISABLED,
        ],
    ),
    (
        ErrorKind::Capturing,
        &[
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
    ),
];

/// What differs when registering memory: the platform or the kind of memory does not allow it.
const WHEN_REGISTERING: Meanings = &[(
    ErrorKind::RegistrationRefused,
    &[
        CUDA_ERROR_INVALID_VALUE,
        CUDA_ERROR_OPERATING_SYSTEM,
        CUDA_ERROR_NOT_PERMITTED,
        CUDA_ERROR_NOT_SUPPORTED,
    ],
)];

/// What differs when unregistering memory: the address is known, but not as a base.
const WHEN_UNREGISTERING: Meanings = &[(ErrorKind::NotRegistered, &[CUDA_ERROR_INVALID_VALUE])];

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
            let mut codes: Vec<u32> = meanings
                .iter()
                .flat_map(|(_, codes)| codes.iter().map(|code| *code as u32))
                .collect();
            let listed = codes.len();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), listed);
        }
    }

    #[test]
    fn a_missing_driver_or_device_is_reported() {
        assert_eq!(kind(34), ErrorKind::NoDriver);
        assert_eq!(kind(100), ErrorKind::NoDevice);
        assert_eq!(kind(46), ErrorKind::DeviceBusy);
    }

    #[test]
    fn only_errors_that_break_the_context_are_fatal() {
        let fatal = |code| {
            let kind = kind(code);
            pinlane_driver::Error::new(kind, "a call").is_fatal()
        };
        for code in [
            4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719,
        ] {
            assert!(fatal(code), "{code}");
        }
        for code in [
            1, 2, 3, 201, 218, 304, 400, 500, 600, 701, 712, 713, 720, 800, 801, 900, 908, 999,
        ] {
            assert!(!fatal(code), "{code}");
        }
    }

    /// None of these means that the context is dead, and memory in flight must not be released on a
    /// guess.
    #[test]
    fn an_unavailable_gpu_is_not_a_dead_one() {
        for code in [46, 100, 101] {
            let error = pinlane_driver::Error::new(kind(code), "a call");
            assert!(!error.is_fatal(), "{code}");
        }
    }

    #[test]
    fn refused_registration_differs_from_misuse() {
        for code in [1, 304, 800, 801] {
            let kind = kind_when_registering(code);
            assert_eq!(kind, ErrorKind::RegistrationRefused, "{code}");
        }
        assert_eq!(kind_when_registering(2), ErrorKind::OutOfMemory);
        assert_eq!(kind_when_registering(712), ErrorKind::AlreadyRegistered);
        assert_eq!(kind_when_registering(713), ErrorKind::NotRegistered);
        assert_eq!(kind_when_registering(719), ErrorKind::DeviceFault);
    }

    #[test]
    fn unregistering_an_address_that_is_no_base_is_one_kind() {
        for code in [1, 713] {
            let kind = kind_when_unregistering(code);
            assert_eq!(kind, ErrorKind::NotRegistered, "{code}");
        }
        assert_eq!(kind_when_unregistering(719), ErrorKind::DeviceFault);
    }

    #[test]
    fn capture_errors_are_one_kind() {
        for code in 900..=908 {
            assert_eq!(kind(code), ErrorKind::Capturing, "{code}");
        }
        assert_eq!(kind(909), ErrorKind::Other { code: 909 });
    }

    #[test]
    fn an_unknown_code_keeps_its_number() {
        assert_eq!(kind(123_456), ErrorKind::Other { code: 123_456 });
        assert_eq!(kind(999), ErrorKind::Other { code: 999 });
    }
}
