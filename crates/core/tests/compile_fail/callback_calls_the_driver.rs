use std::sync::Arc;

use pinlane::driver::{Driver, Result};

fn job(driver: &Arc<dyn Driver>) -> Result<()> {
    let inner = Arc::clone(driver);
    let callback = move |_| inner.synchronize().expect("it waits for itself");
    driver.host_callback(driver.default_stream(), Box::new(callback))
}

fn main() {}
