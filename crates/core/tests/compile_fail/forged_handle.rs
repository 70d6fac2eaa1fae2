use pinlane_driver::{Driver, EventHandle};

fn job(driver: &dyn Driver) {
    let _ = unsafe { driver.event_query(EventHandle(7)) };
}

fn main() {}
