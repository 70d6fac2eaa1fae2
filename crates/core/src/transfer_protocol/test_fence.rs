//! A fence that a test fires by hand.

use std::sync::Arc; // not loom's: not part of the modelled races, and abandoned payloads leak it
use std::time::Duration;

use pinlane_driver::{Error, ErrorKind, Result};

use super::Fence;
use crate::sync::{AtomicUsize, Ordering};

const PENDING: usize = 0;
const FIRED: usize = 1;
const LOST: usize = 2;

/// A fence fired by hand. Waiting before it has fired is an error: models never block.
#[derive(Clone)]
pub(crate) struct TestFence(Arc<AtomicUsize>);

impl TestFence {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(PENDING)))
    }

    pub(crate) fn fire(&self) {
        self.0.store(FIRED, Ordering::Release);
    }

    #[cfg(not(loom))]
    pub(crate) fn lose_device(&self) {
        self.0.store(LOST, Ordering::Release);
    }
}

impl Fence for TestFence {
    fn is_done(&self) -> Result<bool> {
        match self.0.load(Ordering::Acquire) {
            LOST => Err(Error::new(ErrorKind::DeviceLost, "test")),
            state => Ok(state == FIRED),
        }
    }

    fn wait(&self) -> Result<()> {
        if self.is_done()? {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::NotReady, "test"))
        }
    }

    fn wait_timeout(&self, _: Duration) -> Result<bool> {
        self.is_done()
    }

    fn wait_hard(&self) -> Result<()> {
        self.wait()
    }

    fn note(&self, _: Error) {}
}
