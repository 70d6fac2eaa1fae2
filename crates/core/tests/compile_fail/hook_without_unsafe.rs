use pinlane_driver::{Call, Hook, Result};

struct Liar;

impl Hook for Liar {
    fn before(&self, _: Call) -> Result<()> {
        Ok(())
    }
}

fn main() {}
