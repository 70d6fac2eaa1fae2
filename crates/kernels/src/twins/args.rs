//! Arguments by type. The caller has checked them against `params`.

use pinlane_driver::{DevicePtr, KernelArg};

pub(super) fn u64_of(arg: &KernelArg) -> u64 {
    match arg {
        KernelArg::U64(value) => *value,
        other => panic!("expected u64, found {other:?}"),
    }
}

pub(super) fn u32_of(arg: &KernelArg) -> u32 {
    match arg {
        KernelArg::U32(value) => *value,
        other => panic!("expected u32, found {other:?}"),
    }
}

pub(super) fn f32_of(arg: &KernelArg) -> f32 {
    match arg {
        KernelArg::F32(value) => *value,
        other => panic!("expected f32, found {other:?}"),
    }
}

pub(super) fn ptr_of(arg: &KernelArg) -> DevicePtr {
    match arg {
        KernelArg::Ptr(value) => *value,
        other => panic!("expected a device address, found {other:?}"),
    }
}
