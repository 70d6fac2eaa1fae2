//! One suite, run against every driver.
