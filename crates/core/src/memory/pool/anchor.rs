//! What keeps a store: the pool's handles, and each block that is out.

use std::sync::Arc;

use super::desk::{self, DESKS};
use super::store::Store;

/// Keeps the store. There is one for each desk, and blocks count theirs: if all of them counted
/// the store's own users, all threads would queue for that count.
// The count, which comes first, must not share a cache line with another's.
#[repr(align(128))]
pub(super) struct Anchor {
    pub(super) store: Arc<Store>,
}

/// Those of all desks.
pub(super) struct Anchors([Arc<Anchor>; DESKS]);

impl Anchors {
    pub(super) fn new(store: Store) -> Self {
        let store = Arc::new(store);
        Self(std::array::from_fn(|_| {
            let store = Arc::clone(&store);
            Arc::new(Anchor { store })
        }))
    }

    /// That of this thread's desk.
    pub(super) fn own(&self) -> &Arc<Anchor> {
        &self.0[desk::own()]
    }
}
