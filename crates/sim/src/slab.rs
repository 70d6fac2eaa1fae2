//! Tables of handles: an index and a generation, so that stale handles are detected.

/// The key of a value in a [`Slab`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Id {
    index: u32,
    generation: u32,
}

impl Id {
    /// The caller's handle; never 0.
    pub(crate) fn handle(self) -> u64 {
        (u64::from(self.generation) << 32) | (u64::from(self.index) + 1)
    }

    /// The id of a caller's handle.
    pub(crate) fn of(handle: u64) -> Option<Self> {
        let index = (handle as u32).checked_sub(1)?;
        let generation = (handle >> 32) as u32;
        Some(Self { index, generation })
    }
}

/// Values by handle, with constant-time access.
pub(crate) struct Slab<T> {
    /// Generation and value of each slot.
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Id {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 handles")
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(value);
        let generation = slot.0;
        Id { index, generation }
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let (generation, value) = self.slots.get(id.index as usize)?;
        value.as_ref().filter(|_| *generation == id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(id.index as usize)?;
        value.as_mut().filter(|_| *generation == id.generation)
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        self.get(id)?;
        let (generation, value) = &mut self.slots[id.index as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(id.index);
        value.take()
    }

    /// Removes the values for which `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        for (index, (generation, value)) in (0..).zip(&mut self.slots) {
            if value.as_mut().is_some_and(|value| !keep(value)) {
                *generation = generation.wrapping_add(1);
                self.free.push(index);
                *value = None;
            }
        }
    }

    /// All values, in order of index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(index, &(generation, ref value))| {
            Some((Id { index, generation }, value.as_ref()?))
        })
    }
}
