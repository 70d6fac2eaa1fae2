//! A compiler that is not there, or is something else. The only test of its process, since it changes the
//! environment.

use pinlane_nvrtc::{Compiler, NvrtcError};

fn failure_with(path: &str) -> String {
    // SAFETY: no other thread of this process reads the environment.
    unsafe { std::env::set_var("PINLANE_NVRTC", path) };
    let error = Compiler::load().expect_err("no compiler");
    assert!(matches!(error, NvrtcError::NotFound { .. }));
    error.to_string()
}

#[test]
fn a_compiler_that_is_missing_or_broken_is_reported_with_the_remedy() {
    let missing = failure_with("/no/such/libnvrtc.so");
    assert!(missing.contains("/no/such/libnvrtc.so"), "{missing}");
    assert!(
        missing.contains("pip install nvidia-cuda-nvrtc"),
        "{missing}"
    );
    let empty = std::env::temp_dir().join(format!("pinlane-empty-{}", std::process::id()));
    std::fs::create_dir_all(&empty).expect("a folder");
    let nothing = failure_with(empty.to_str().expect("a plain name"));
    assert!(nothing.contains("PINLANE_NVRTC names"), "{nothing}");
    let text = empty.join("libnvrtc.so.13");
    std::fs::write(&text, "not a library").expect("written");
    let broken = failure_with(empty.to_str().expect("a plain name"));
    assert!(broken.contains("libnvrtc.so.13"), "{broken}");
    let other = failure_with("libc.so.6");
    assert!(other.contains("nvrtcVersion"), "{other}");
    std::fs::remove_dir_all(&empty).expect("removed");
}
