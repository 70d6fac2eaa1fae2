//! One buffer for copies one way, a second one for copies both ways.

use anyhow::Context;
use pinlane_report::Route;

/// Buffers of one kind. Each is away while a copy is under way.
pub(super) struct Pair<B> {
    /// Holds what is sent. What comes back one way is the same, and lands here, too.
    first: Option<B>,
    /// What comes back while the first one is sent. Got when it is first needed.
    second: Option<B>,
}

impl<B> Pair<B> {
    pub(super) fn new(first: B) -> Self {
        Self {
            first: Some(first),
            second: None,
        }
    }

    /// See to it that there are as many as a direction needs.
    pub(super) fn provide(
        &mut self,
        route: Route,
        another: impl FnOnce() -> anyhow::Result<B>,
    ) -> anyhow::Result<()> {
        if route == Route::Both && self.second.is_none() {
            self.second = Some(another()?);
        }
        Ok(())
    }

    /// The place of what is sent.
    pub(super) fn outbound(&mut self) -> &mut Option<B> {
        &mut self.first
    }

    /// The place of what comes back.
    pub(super) fn inbound(&mut self, route: Route) -> &mut Option<B> {
        match route {
            Route::Both => &mut self.second,
            Route::H2d | Route::D2h => &mut self.first,
        }
    }
}

/// Takes a buffer from its place.
pub(super) fn take<B>(place: &mut Option<B>) -> anyhow::Result<B> {
    place.take().context("a buffer was lost with a failed copy")
}
