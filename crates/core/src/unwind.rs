//! Cleanup after a panic of the driver or of a callback.

/// Runs `work`, and `cleanup` if it panics.
pub(crate) fn on_unwind<T>(cleanup: impl Fn(), work: impl FnOnce() -> T) -> T {
    struct Guard<F: Fn()>(F);

    impl<F: Fn()> Drop for Guard<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    let guard = Guard(cleanup);
    let result = work();
    std::mem::forget(guard);
    result
}
